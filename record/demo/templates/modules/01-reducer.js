{% set kind = writer.write("thing") %}
var i=n(0),o={ {%- for _ in range(5) %}{{ writer.write("function") }}:"{{ kind }}/{{ writer.write("function") }}{{ loop.index }}",{% endfor %}version:"{{ writer.number(1, 9) }}.{{ writer.number(0, 40) }}.{{ writer.number(0, 12) }}"};
function a(e,t){switch(void 0===e&&(e={status:"{{ writer.write("state") }}",{{ kind }}s:[],total:{{ writer.number(0, 500) }}}),t.type){
{% for _ in range(4) %}
case "{{ kind }}/{{ writer.write("function") }}{{ loop.index }}":return Object.assign({},e,{status:"{{ writer.write("state") }}",{{ writer.write("function") }}:t.payload||{{ writer.number(0, 99) }}});
{% endfor %}
default:return e}}
e.exports={types:o,reducer:a,initial:a(void 0,{type:"@@init"}),parent:i};
