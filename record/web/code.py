"""Scripts and style sheets of a given size: what a page needs of them, and the rest of a library or a theme.

Both look like what a bundler writes, so that they compress as such files do. All files draw their modules from the same
two thousand, each in another order.
"""

import json
from collections.abc import Iterable
from functools import cache

from record.content import encode
from record.web.dice import Dice

VERBS = [
    "get",
    "set",
    "merge",
    "toggle",
    "resolve",
    "commit",
    "flush",
    "measure",
    "observe",
    "detach",
    "format",
    "parse",
    "normalize",
    "schedule",
    "render",
    "select",
    "attach",
    "compare",
    "fetch",
    "build",
    "clear",
    "reduce",
    "wrap",
    "emit",
    "bind",
    "patch",
    "queue",
    "split",
    "trace",
    "scroll",
    "focus",
    "validate",
]
THINGS = [
    "Node",
    "Rect",
    "Session",
    "Slot",
    "Viewport",
    "Locale",
    "Token",
    "Header",
    "Query",
    "Cache",
    "Frame",
    "Model",
    "Event",
    "Target",
    "Offset",
    "Image",
    "Region",
    "Entry",
    "Option",
    "Schema",
    "Payload",
    "Field",
    "Route",
    "Batch",
    "Cursor",
    "Theme",
    "Marker",
    "Chunk",
    "Label",
    "Range",
    "Price",
    "Basket",
    "Teaser",
    "Player",
    "Consent",
]
STATES = [
    "idle",
    "pending",
    "ready",
    "failed",
    "stale",
    "visible",
    "hidden",
    "active",
    "disabled",
    "loading",
    "expanded",
    "selected",
    "checked",
]
PROPERTIES = [
    "margin",
    "padding",
    "gap",
    "border-radius",
    "font-size",
    "line-height",
    "max-width",
    "min-height",
    "top",
    "left",
    "letter-spacing",
    "flex-basis",
]
MODULES, RULES = 1800, 10_000
RUNTIME = "!function(m){for(var c={},i=0;i<m.length;i++)m[i].call(c,c,i)}(["
# By how much the codings shrink scripts and style sheets, to estimate how long a file of a given size is.
TYPICAL_BYTES, GROWTH = 15_000, 0.06
RATIOS = {"js": {"br": 3.65, "gzip": 3.45, "": 1.0}, "css": {"br": 4.4, "gzip": 4.0, "": 1.0}}


def script(size_bytes: int, encoding: str, steps: str, seed: str) -> str:
    """A script that takes about `size_bytes` in this content-encoding, and runs `steps` at its end."""
    modules = _fitting(_modules(), size_bytes, "js", encoding, steps, seed)
    head = f"/*! {seed} */\n"
    return head + (RUNTIME + ",\n".join(modules) + "]);\n" if modules else "") + steps


def styles(size_bytes: int, encoding: str, rules: str, seed: str) -> str:
    """A style sheet that takes about `size_bytes` in this content-encoding, with `rules` first."""
    return rules + "\n" + "\n".join(_fitting(_rules(), size_bytes, "css", encoding, rules, seed)) + "\n"


def state(size_bytes: int, encoding: str, seed: str) -> str:
    """JSON that takes about `size_bytes` in this content-encoding: the state that a server sends with a page."""
    dice, entries = Dice(f"state {seed}"), []
    length, wanted = 0, size_bytes * (RATIOS["js"][encoding] * 0.87)
    while length < wanted:
        entry = {
            "id": dice.number(10_000, 9_999_999),
            "key": dice.token(10),
            "type": dice.pick(THINGS) + dice.pick(THINGS),
            "state": dice.pick(STATES),
            "rank": dice.number(1, 400),
            "tags": [dice.pick(VERBS), dice.pick(STATES), dice.pick(VERBS)],
            "path": f"/{dice.pick(VERBS)}/{dice.pick(THINGS).lower()}-{dice.number(1, 999)}",
        }
        entries.append(entry)
        length += 150
    return json.dumps({"entries": entries}, separators=(",", ":"))


def packed(text: str, encoding: str) -> bytes:
    """`text` in a content-encoding; none if that is empty. gzip is that of pyarrow, which brings its zlib along: those
    of systems differ."""
    if encoding != "gzip":
        return encode(text.encode(), encoding)
    import pyarrow

    return bytes(pyarrow.Codec("gzip", compression_level=6).compress(text.encode(), asbytes=True))


def _fitting(pieces: list[str], size_bytes: int, kind: str, encoding: str, needed: str, seed: str) -> list[str]:
    """As many of `pieces`, from a place that `seed` decides, as make a file of about `size_bytes` with `needed`."""
    # Short files repeat less.
    ratio = RATIOS[kind][encoding] * ((max(size_bytes, 200) / TYPICAL_BYTES) ** GROWTH if encoding else 1)
    rest = size_bytes * ratio - len(needed) * (ratio / 2.2 if encoding else 1)
    taken: list[str] = []
    place = Dice(seed).number(0, len(pieces) - 1)
    while rest > len(pieces[place]) / 2 and len(taken) < len(pieces):
        taken.append(pieces[place])
        rest -= len(pieces[place])
        place = (place + 1) % len(pieces)
    return taken


@cache
def _modules() -> list[str]:
    dice = Dice("modules")
    return [_module(dice) for _ in range(MODULES)]


def _name(dice: Dice) -> str:
    return dice.pick(VERBS) + dice.pick(THINGS) + (dice.pick(THINGS) if dice.share() < 0.4 else "")


def _module(dice: Dice) -> str:
    kind = dice.number(0, 9)
    if kind < 4:
        name, cases = _name(dice), []
        for _ in range(dice.number(2, 6)):
            action, value = _name(dice), dice.number(0, 9999)
            cases.append(
                f'case"{dice.pick(THINGS).lower()}/{action}":'
                f"return Object.assign({{}},t,{{{_name(dice)}:n.{_name(dice)}"
                f'||{value},status:"{dice.pick(STATES)}"}});'
            )
        head, end = (
            f"function(e){{e.{name}=function(t,n){{switch(n&&n.type){{",
            f"default:return t||{dice.number(0, 99)}}}}}}}",
        )
        return head + "".join(cases) + end
    if kind < 7:
        methods = ",".join(
            f"{_name(dice)}:function(t,n){{if(!t)return n||{dice.number(0, 999)};var r=this.{_name(dice)}(t),"
            f'o=r&&r.{_name(dice)};return"{dice.pick(STATES)}"===o?[].slice.call(r.children).filter(function(e)'
            f"{{return e.{_name(dice)}>{dice.number(1, 2000)}}}):this.{_name(dice)}=o}}"
            for _ in range(dice.number(2, 5))
        )
        return f"function(e){{e.{_name(dice)}={{{methods}}}}}"
    if kind < 8:
        texts = ",".join(
            f'"{dice.pick(THINGS).lower()}.{dice.pick(STATES)}":"{_name(dice)} {dice.pick(STATES)} {dice.pick(VERBS)} '
            f'%s {dice.pick(THINGS)} ({dice.number(1, 9999)})"'
            for _ in range(dice.number(6, 16))
        )
        return f'function(e){{e.{_name(dice)}={{locale:"x",{texts}}}}}'
    if kind < 9:
        path = "".join(
            f"{dice.pick('clsq')}{dice.number(-9, 9)}.{dice.number(1, 99)} {dice.number(-9, 9)}" for _ in range(40)
        )
        return f'function(e){{e.{_name(dice)}=["0 0 {dice.number(12, 48)} 24","{path}z"]}}'
    numbers = ",".join(str(dice.number(17, 65_535)) for _ in range(90))
    return (
        f"function(e,t){{for(var n=[{numbers}],r=t,o=0;o<n.length;o++)r=(r<<5)-r+n[o]|0;e.{_name(dice)}=r;"
        f'e.{_name(dice)}="{dice.token(60)}"}}'
    )


@cache
def _rules() -> list[str]:
    dice = Dice("rules")
    rules = []
    for _ in range(RULES):
        names = ",".join(
            f".{dice.pick(THINGS).lower()}-{dice.pick(STATES)}{dice.pick(('', ':hover', ' a', '>li', '::before'))}"
            for _ in range(dice.number(1, 3))
        )
        values = ";".join(f"{dice.pick(PROPERTIES)}:{dice.number(0, 96)}px" for _ in range(dice.number(1, 4)))
        colour = f";color:#{dice.number(0, 0xFFFFFF):06x}" if dice.share() < 0.3 else ""
        rules.append(f".x-{dice.pick(VERBS)} {names}{{{values}{colour}}}")
    return rules


# The steps of a script ---------------------------------------------------------------------------------------------


def steps(
    *,
    scripts: Iterable[str] = (),
    images: Iterable[str] = (),
    data: Iterable[str] = (),
    beacons: Iterable[str] = (),
    frames: Iterable[tuple[str, str]] = (),
    media: Iterable[str] = (),
    work_ms: int = 0,
    more: str = "",
) -> str:
    """The code with which a script goes on: it inserts scripts, images and frames (URL, and the id of their place, or
    nothing), fetches data, sends beacons once the page is loaded, loads the pieces of a video one after the other, and
    keeps the main thread busy."""
    parts = [WORK % work_ms] if work_ms else []
    if urls := list(scripts):
        parts.append(f"{_list(urls)}.forEach(function(u){{{INSERT}}});")
    if urls := list(images):
        parts.append(
            f"self._i=(self._i||[]).concat({_list(urls)}.map(function(u){{var i=new Image;i.src=u;return i}}));"
        )
    if urls := list(data):
        parts.append(f"{_list(urls)}.forEach(function(u){{fetch(u).then(function(r){{return r.text()}})}});")
    if places := [list(frame) for frame in frames]:
        parts.append(FRAMES % _list(places))
    if urls := list(beacons):
        parts.append(
            f'{WHEN_LOADED}(function(){{{_list(urls)}.forEach(function(u){{navigator.sendBeacon(u,"v=1")}})}});'
        )
    if urls := list(media):
        parts.append(MEDIA % _list(urls))
    return "!function(){" + "".join(parts) + more + "}();\n" if parts or more else ""


def _list(values: list[str] | list[list[str]]) -> str:
    return json.dumps(values, separators=(",", ":"), ensure_ascii=False)


INSERT = 'var s=document.createElement("script");s.async=!0;s.src=u;document.head.appendChild(s)'
WHEN_LOADED = '(function(f){document.readyState=="complete"?f():addEventListener("load",f)})'
WHEN_PARSED = '(function(f){document.readyState!="loading"?f():addEventListener("DOMContentLoaded",f)})'
FRAMES = (
    WHEN_PARSED + "(function(){%s.forEach(function(a){var p=a[1]&&document.getElementById(a[1]),"
    'f=document.createElement("iframe");f.src=a[0];f.width=p?p.dataset.w:1;f.height=p?p.dataset.h:1;'
    'f.setAttribute("frameborder","0");f.scrolling="no";p||(f.style.cssText="position:absolute;top:-99px");'
    "(p||document.body).appendChild(f)})});"
)
MEDIA = (
    "!function n(l){l.length&&fetch(l[0]).then(function(r){return r.arrayBuffer()})"
    ".then(function(){n(l.slice(1))})}(%s);"
)
# One unit is assumed to take a millisecond (a guess).
WORK = (
    "var work=%d,t=[];for(var k=0;k<work;k++){for(var a=[],h=k+1,q=0;q<700;q++)h=Math.imul(h^q,2654435761)>>>0,"
    'a.push({k:h%%997,v:"item "+h});a.sort(function(x,y){return x.k-y.k});t.push(JSON.stringify(a).length)}self._w=t;'
)
