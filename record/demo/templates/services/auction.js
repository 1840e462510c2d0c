window.adkiosk.fill({{ auction|tojson }});
