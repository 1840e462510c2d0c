window.adkiosk.fill({"page": "{{ name }}", "winners": [
{%- for ad in advertisements %}
{"frame": "https://frames.adkiosk-media.example/{{ slug(ad.claim) }}/{{ ad.slot }}.html", "price": {{ (2.4 / ad.width)|round(5) }}, "slot": "{{ ad.slot }}"}{{ ", " if not loop.last }}
{%- endfor %}
]});
