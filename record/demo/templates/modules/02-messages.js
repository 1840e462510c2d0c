e.exports={locale:"en",domain:"{{ writer.write("thing") }}",messages:{
{% for _ in range(9) %}
"{{ writer.write("thing") }}.{{ writer.write("state") }}.{{ loop.index }}":"{{ writer.write(["teaser", "warning", "headline", "comment"][loop.index0 % 4]) }}",
{% endfor %}
"":{{ writer.number(100, 9999) }}},plural:function(e){return 1===e?0:1}};
