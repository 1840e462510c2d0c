"""JavaScript by the kilobyte, as a bundler leaves it: what pages load besides the code that does something."""

from functools import cache
from pathlib import Path

import jinja2

from record.demo.text import Writer

MODULES = Path(__file__).with_name("templates") / "modules"


def library(writer: Writer, size: int) -> str:
    """An expression that defines and runs modules of at least `size` bytes together.

    Modules take turns; names, numbers and messages in them are the writer's, so that the code packs
    about as well as real code does.
    """
    sources = _modules()
    parts: list[str] = []
    while size > 0:
        source = sources[len(parts) % len(sources)]
        parts.append(f"{len(parts)}:function(e,t,n){{{source.render(writer=writer)}}}".replace("\n", ""))
        size -= len(parts[-1])
    runtime = "!function(m){var c={};function r(i){if(c[i])return c[i].exports;var x=c[i]={exports:{}};"
    runtime += "m[i](x,x.exports,r);return x.exports}for(var i in m)r(i)}"
    return runtime + "({" + ",\n".join(parts) + "});"


@cache
def _modules() -> list[jinja2.Template]:
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return [environment.from_string(path.read_text()) for path in sorted(MODULES.glob("*.js"))]
