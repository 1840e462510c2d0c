var r=Object.prototype.hasOwnProperty,s=Array.prototype.slice;
function i(e,t){for(var n in t)r.call(t,n)&&(e[n]=t[n]&&"object"==typeof t[n]&&!Array.isArray(t[n])?i(e[n]||{},t[n]):t[n]);return e}
function o(e,t){if(e===t)return!0;if(typeof e!=typeof t||"object"!=typeof e||!e||!t)return e!=e&&t!=t;var n=Object.keys(e),a=Object.keys(t);return n.length===a.length&&n.every(function(n){return r.call(t,n)&&o(e[n],t[n])})}
function {{ writer.write("function") }}(e,t,n){var r=0,i=null;return function(){var o=s.call(arguments),a=+new Date;return a-r>(t||{{ writer.number(16, 400) }})?(r=a,i=e.apply(n||this,o)):i}}
function u(e){var t={};return e.replace(/^[?#]/,"").split("&").forEach(function(e){var n=e.split("=");n[0]&&(t[decodeURIComponent(n[0])]=decodeURIComponent(n[1]||""))}),t}
e.exports={extend:i,equal:o,query:u,{{ writer.write("function") }}:function(e){return s.call(e).map(function(e){return e&&e.nodeType?e:document.createTextNode(String(e))})},limit:{{ writer.number(8, 9000) }}};
