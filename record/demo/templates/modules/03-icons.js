var i={
{% for _ in range(6) %}
{{ writer.write("thing") }}{{ loop.index }}:["0 0 24 24","M{{ writer.number(1, 22) }}.{{ writer.number(1, 99) }} {{ writer.number(1, 22) }}
{%- for _ in range(writer.number(4, 11)) %}
{{ ["c", "l", "s", "q"][writer.number(0, 3)] }}{{ writer.number(-9, 9) }}.{{ writer.number(1, 99) }} {{ writer.number(-9, 9) }}.{{ writer.number(1, 99) }}-{{ writer.number(0, 4) }}.{{ writer.number(1, 99) }} {{ writer.number(1, 9) }}
{%- endfor %}z"],
{% endfor %}
blank:["0 0 1 1",""]};
e.exports={names:Object.keys(i),{{ writer.write("function") }}:function(e,t){var n=i[e]||i.blank;return'<svg viewBox="'+n[0]+'" width="'+(t||{{ writer.number(12, 48) }})+'" aria-hidden="true"><path d="'+n[1]+'"/></svg>'}};
