"""Generates kilobytes of JavaScript in the style of a bundler's output: the code that pages load but hardly use."""

import jinja2

from record.demo.text import Writer


def library(templates: jinja2.Environment, writer: Writer, size: int) -> str:
    """A JavaScript expression that defines and runs modules of at least `size` bytes in total.

    Templates of modules are used in turn. The writer fills in names, numbers and messages, so that the code compresses
    about as well as real code.
    """
    sources = [templates.get_template(name) for name in templates.list_templates() if name.startswith("modules/")]
    parts: list[str] = []
    while size > 0:
        source = sources[len(parts) % len(sources)]
        parts.append(f"{len(parts)}:function(e,t,n){{{source.render(writer=writer)}}}".replace("\n", ""))
        size -= len(parts[-1])
    runtime = "!function(m){var c={};function r(i){if(c[i])return c[i].exports;var x=c[i]={exports:{}};"
    runtime += "m[i](x,x.exports,r);return x.exports}for(var i in m)r(i)}"
    return runtime + "({" + ",\n".join(parts) + "});"
