{% set name = writer.write("Thing") + writer.write("Thing") %}
var i=n(0);
function {{ name }}(e,t){if(!(this instanceof {{ name }}))return new {{ name }}(e,t);this.root=e,this.options=i.extend({ {%- for _ in range(4) %}{{ writer.write("function") }}:{{ [writer.number(0, 999), "!0", "!1", "null", '"' + writer.write("state") + '"'][writer.number(0, 4)] }},{% endfor %}selector:".{{ writer.write("thing") }}--{{ writer.write("state") }}"},t),this.state="{{ writer.write("state") }}"}
{% for _ in range(4) %}
{{ name }}.prototype.{{ writer.write("function") }}=function(e,t){
{% if loop.index is odd %}
if("{{ writer.write("state") }}"===this.state)throw new Error("{{ writer.write("warning") }}".replace("%s",e));var n=this.root&&this.root.getBoundingClientRect?this.root.getBoundingClientRect():{top:{{ writer.number(0, 99) }},height:0};return this.state=t||"{{ writer.write("state") }}",n.top+n.height>{{ writer.number(0, 2000) }}
{% else %}
var n=this,r=e||this.options.selector;return this.root?[].slice.call(this.root.querySelectorAll(r)).filter(function(e){return e.classList.toggle("{{ writer.write("thing") }}-{{ writer.write("state") }}",!!t),n.state!==e.dataset.{{ writer.write("thing") }}}).length:{{ writer.number(-1, 7) }}
{% endif %}
};
{% endfor %}
e.exports={{ name }};
