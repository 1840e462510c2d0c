var i=n(0),o={};
function a(e,t,n){return(o[e]=o[e]||[]).push({run:t,once:!!n,order:{{ writer.number(0, 50) }}}),function(){o[e]=o[e].filter(function(e){return e.run!==t})}}
function c(e){var t=[].slice.call(arguments,1);(o[e]||[]).sort(function(e,t){return e.order-t.order}).forEach(function(n){try{n.run.apply(null,t)}catch(t){o.error?c("error",t,"{{ writer.write("warning") }}"):0}})}
[{% for _ in range(5) %}"{{ writer.write("thing") }}:{{ writer.write("state") }}",{% endfor %}"end"].forEach(function(e,t){a(e,function(n){return n?i.extend({},{ {{- writer.write("thing") }}:n,index:t*{{ writer.number(2, 30) }}}):null},t%2)});
e.exports={on:a,emit:c,{{ writer.write("function") }}:function(e){return Object.keys(o).filter(function(t){return 0===t.indexOf(e||"{{ writer.write("thing") }}")})}};
