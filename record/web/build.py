"""Makes the pages of the set: the files of a plan, and what a recorder would have seen of their servers."""

import hashlib
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

import jinja2

from record.connections import Connection
from record.demo.builder import http_date
from record.http1 import Headers, Response
from record.site import Exchange, Recording
from record.web import code
from record.web.dice import Dice
from record.web.fonts import font
from record.web.pictures import drawing, picture
from record.web.plan import GOLDEN, KB, Item, Plan, brand, by_share, plan
from record.web.quantiles import marginals
from record.web.spec import Spec, specs
from record.web.text import Writer

TEMPLATES = Path(__file__).with_name("templates")
VISITED = datetime(2025, 11, 3, 9, 30, tzinfo=UTC)
VIEWPORT = (1366, 768)
RECORDER = {"name": "eyelevel web", "version": "1"}
CONTENT_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "data": "application/json; charset=utf-8",
    "media": "video/mp4",
    "jpg": "image/jpeg",
    "png": "image/png",
    "webp": "image/webp",
    "avif": "image/avif",
    "gif": "image/gif",
    "svg": "image/svg+xml",
    "woff2": "font/woff2",
}
# How long files may be stored (Cache-Control), and the share of the files that say so: guesses.
LIFETIMES = (
    *(("public, max-age=31536000, immutable", 0.3), ("public, max-age=31536000", 0.15)),
    *(("public, max-age=2592000", 0.2), ("max-age=604800", 0.15), ("max-age=14400", 0.12), ("no-cache", 0.08)),
)
SOFTWARE = ("nginx", "cloudflare", "Apache", "AmazonS3", "nginx/1.26.2", "Varnish", "gws", "LiteSpeed")
# How long servers take for other responses than pages, in ms, from and to: guesses.
THINK_MS = {"data": (15, 140), "redirect": (3, 40), "beacon": (2, 25), "html": (10, 90)}
STATIC_MS = (0.4, 9)
# The sizes of places for advertisements, and how many a page of a kind has.
PLACES = ((728, 90), (300, 250), (300, 250), (300, 600))
NARROW = (300, 250)
COUNTS = {"news": 4, "text": 2, "video": 2, "shop": 2, "gallery": 1, "app": 1, "office": 0}
MOTIFS = {"shop": "still", "app": "street", "office": "street", "news": "street", "text": "landscape"}
INTERMEDIATE_BYTES = 1150
# Where a document has the state that its server sends with it, if that is not too short.
STATE, LEAST_STATE_BYTES = "<!--state-->", 200
# A lazy image may be loaded late, but must be loaded: those near the top are, whatever the connection. Galleries have
# their first images below each other.
LAZY_IMAGES, LAZY_IN_GALLERIES = 9, 4
# Pictures are smaller than asked for, in the mean.
LARGER = 1.04
PROMO = (
    code.WHEN_LOADED + '(function(){setTimeout(function(){var p=document.createElement("div");p.className="promo";'
    'p.style.height="%dpx";p.textContent=%s;document.body.insertBefore(p,document.body.firstChild)},300)});'
)


@dataclass(frozen=True)
class Look:
    """The colours and measures of a site."""

    ink: str
    paper: str
    accent: str
    bar: str
    on_bar: str
    dark: str
    text: str
    title: str
    round: int
    width: int
    side: int
    columns: int
    card: int
    hero: int
    search: int
    spacing: int


def recording(spec: Spec) -> Recording:
    """The page as a recording; the same for the same `spec`."""
    return _Builder(plan(spec)).recording()


def digest(recorded: Recording) -> str:
    """A checksum (SHA-256) of everything that a site stores of a recording."""
    sum_ = hashlib.sha256(repr((recorded.url, recorded.viewport, recorded.connections)).encode())
    for one in recorded.exchanges:
        response = one.response
        sum_.update(
            repr((one.method, one.url, one.recorded_ip, one.ttfb_ms, response.status, response.headers)).encode()
        )
        sum_.update(response.body)
    return sum_.hexdigest()


class _Builder:
    def __init__(self, planned: Plan) -> None:
        self._plan, self._spec = planned, planned.spec
        self._dice, self._page = Dice(f"web files {self._spec.name}"), planned.page
        self._items = list(self._page.all())
        self._writer = Writer(self._spec.language, Dice(f"web text {self._spec.name}"))
        self._look = _look(self._spec, Dice(f"web look {self._spec.name}"))
        self._bodies: dict[Item, bytes] = {}
        self._sizes: dict[Item, tuple[int, int]] = {}
        self._count = 0
        first = [item for item in self._items if item.kind == "js" and not item.is_third]
        self._main = next((item for item in first if item in self._page.children), first[0] if first else None)

    def recording(self) -> Recording:
        """The finished page."""
        self._make_images()
        self._families = [self._family(place) for place, _ in enumerate(self._of("font"))]
        for place, item in enumerate(self._of("font")):
            self._bodies[item] = font(self._writer.script, place, item.size)
        self._frames = self._placed_frames()
        self._make_documents()
        self._make_texts("js", self._script)
        self._make_texts("css", self._style)
        self._make_others()
        cookies = self._cookies()
        exchanges = tuple(self._exchange(item, cookies.get(item, [])) for item in self._items)
        return Recording(
            self._page.url, exchanges, dict(RECORDER), viewport=VIEWPORT, connections=tuple(self._connections())
        )

    def _of(self, *kinds: str) -> list[Item]:
        return [item for item in self._items if item.kind in kinds]

    def _even(self) -> float:
        """The next of numbers that are evenly spread over 0 to 1."""
        self._count += 1
        return (self._spec.place * 0.7548776662466927 + self._count * GOLDEN) % 1

    # Pictures and fonts ----------------------------------------------------------------------------------------------

    def _make_images(self) -> None:
        pictures = self._of("image")
        # The largest comes last, and has the bytes that are left of the page's.
        remaining = self._spec.image_bytes * KB
        for item in sorted(pictures, key=lambda one: one.size):
            last = item is max(pictures, key=lambda one: one.size)
            size = min(max(remaining, item.size // 2), round(1.15 * item.size)) if last else item.size
            if item.form == "svg":
                self._bodies[item], self._sizes[item] = self._packed_drawing(item), (64, 64)
            else:
                motif = MOTIFS.get(self._spec.kind, "landscape")
                if self._even() < 0.3 or item.mode == "hero":
                    motif = self._dice.pick(("landscape", "street", "landscape" if item.mode == "hero" else "still"))
                shape = 2.0 if item.mode == "hero" else self._dice.pick((1.0, 1.5, 1.5, 0.8, 1.78, 1.33))
                self._bodies[item], *size_ = picture(round(LARGER * size), item.form, shape, motif, self._dice)
                self._sizes[item] = (size_[0], size_[1])
            remaining -= len(self._bodies[item])

    def _packed_drawing(self, item: Item) -> bytes:
        plain = item.size * 2.4 if item.host.encoding else item.size
        return code.packed(drawing(round(plain), self._dice).decode(), item.host.encoding)

    def _family(self, place: int) -> str:
        use = ("Text", "Head", "Sans", "Label", "Action", "Small")[place % 6]
        return f"{brand(self._spec).capitalize()} {use} {place}"

    # Documents -------------------------------------------------------------------------------------------------------

    def _placed_frames(self) -> dict[Item, int]:
        """Frame → the number of its place in the page; frames without one are not visible."""
        frames = [item for item in self._of("html") if item is not self._page]
        return {frame: place for place, frame in enumerate(frames[: COUNTS[self._spec.kind]])}

    def _place(self, frame: Item) -> tuple[int, int]:
        """The width and height of a visible frame."""
        return NARROW if self._spec.kind == "video" else PLACES[self._frames[frame]]

    def _make_documents(self) -> None:
        for frame in self._of("html"):
            if frame is not self._page:
                self._fit(frame, self._frame(frame))
        self._fit(self._page, self._document(self._markup()), "<script>self.__STATE__=%s</script>")

    def _fit(self, item: Item, text: str, filling: str = '<script type="application/json">%s</script>') -> None:
        """Fill a document with state up to its size."""
        encoding = item.host.encoding
        body = code.packed(text.replace(STATE, ""), encoding)
        missing = item.size - len(body)
        for _ in range(3):
            if missing < LEAST_STATE_BYTES:
                break
            body = code.packed(text.replace(STATE, filling % code.state(missing, encoding, item.path)), encoding)
            missing += item.size - len(body)
        self._bodies[item] = body

    def _frame(self, item: Item) -> str:
        """A document in a frame: an advertisement, or an invisible one."""
        head = f'<!doctype html><html><head><meta charset="utf-8"><title>{item.host.party or "embed"}</title>'
        if item not in self._frames:
            return f"{head}</head><body>{STATE}</body></html>"
        width, height = self._place(item)
        hue, writer = self._dice.number(0, 359), self._writer
        claim = writer.headline() if height > 100 else writer.noun()
        return (
            f"{head}<style>body{{margin:0;width:{width}px;height:{height}px;display:flex;flex-direction:column;"
            f"justify-content:center;align-items:center;text-align:center;color:#fff;"
            f"font:600 {22 if height > 100 else 26}px "
            f"Arial,sans-serif;background:linear-gradient(135deg,hsl({hue},65%,38%),hsl({(hue + 50) % 360},70%,55%))}}"
            f"span{{font-size:13px;padding:7px 18px;margin-top:10px;background:rgba(0,0,0,.35);border-radius:20px}}"
            "</style>"
            f"</head><body dir={writer.direction}>{claim}<span>{writer.words['more']}</span>{STATE}</body></html>"
        )

    def _markup(self) -> str:
        spec = self._spec
        content = [item for item in self._page.of("image") if item.mode == "content"]
        content.sort(key=lambda item: item.form == "svg")  # emblems come last
        unsized = max(0, len(content) - spec.unsized_images)
        lazy = min(unsized, LAZY_IN_GALLERIES if spec.kind == "gallery" else LAZY_IMAGES) if spec.lazy else 0
        images = [
            {
                "src": item.url,
                "width": self._sizes[item][0],
                "height": self._sizes[item][1],
                "sized": place < unsized,
                "lazy": place < lazy,
                "priority": False,
            }
            for place, item in enumerate(content)
        ]
        hero = next((item for item in self._page.of("image") if item.mode == "hero"), None)
        width, height = self._sizes[hero] if hero else (0, 0)
        in_page = self._page.of("html")
        return (
            _templates()
            .get_template("page.html")
            .render(
                w=self._writer,
                kind=spec.kind,
                lcp=spec.lcp,
                brand=brand(spec),
                look=self._look,
                families=self._families,
                images=images,
                length=max(1, min(14, spec.html_bytes // 5)),
                picture=hero
                and {
                    "src": hero.url,
                    "width": width,
                    "height": height,
                    "sized": True,
                    "lazy": spec.lcp_lazy,
                    "priority": spec.lcp_priority,
                },
                slots=[
                    {
                        "width": self._place(frame)[0],
                        "height": self._place(frame)[1],
                        "src": frame.url * (frame in in_page),
                    }
                    for frame in self._frames
                ],
            )
        )

    def _document(self, content: str) -> str:
        """The page's document, with a place for its state."""
        spec, writer, page = self._spec, self._writer, self._page
        scripts = page.of("js")
        hidden = [frame for frame in page.of("html") if frame not in self._frames]
        lines = [
            f'<!doctype html><html lang="{writer.language}" dir="{writer.direction}"><head><meta charset="utf-8">',
            f"<title>{brand(spec).capitalize()}</title>",
            # Without an icon in the page, some browsers would request one, others not.
            '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">',
            *self._hints(),
            *self._style_links(),
            *(_tag(script) for script in scripts if script.mode != "bottom"),
            "</head><body>",
            content,
            *(
                f'<iframe style="position:absolute;top:-99px" src="{frame.url}" width="1" height="1" frameborder="0" '
                'title=""></iframe>'
                for frame in hidden
            ),
            STATE,
            *(_tag(script) for script in scripts if script.mode == "bottom"),
            "</body></html>",
        ]
        return "\n".join(line for line in lines if line)

    def _style_links(self) -> list[str]:
        styles = self._page.of("css")
        if self._spec.blocking:
            return [f'<link rel="stylesheet" href="{style.url}">' for style in styles]
        late = 'media="print" onload="this.media=\'all\'"'
        return [
            f"<style>{self._theme([])}</style>",
            *(f'<link rel="stylesheet" href="{one.url}" {late}>' for one in styles),
        ]

    def _theme(self, faces: Sequence[dict[str, str]]) -> str:
        hero = next((one for one in self._page.of("image") if one.mode == "hero"), None)
        rules = (
            _templates()
            .get_template("theme.css")
            .render(
                look=self._look,
                families=self._families,
                faces=faces,
                background=hero.url if hero and self._spec.lcp == "background" else "",
            )
        )
        return rules.replace("\n\n", "\n")

    def _hints(self) -> list[str]:
        spec, hints = self._spec, []
        others = list(dict.fromkeys(item.host.name for item in self._items if item.is_third))
        fonts = self._of("font")
        if spec.preconnect and others:
            names = dict.fromkeys([*(item.host.name for item in fonts if item.is_third), *others])
            hints += [f'<link rel="preconnect" href="https://{name}">' for name in list(names)[:2]]
        if spec.dns_prefetch:
            hints += [f'<link rel="dns-prefetch" href="//{name}">' for name in others[:3]]
        if spec.preload:
            hero = next((item for item in self._page.of("image") if item.mode == "hero"), None)
            script = next((item for item in self._page.of("js") if item.mode in ("async", "defer", "sync")), None)
            if spec.lcp_preload and hero:
                hints.append(f'<link rel="preload" as="image" href="{hero.url}">')
            elif spec.place % 3 == 1 or not script:
                hints.append(f'<link rel="preload" as="font" href="{fonts[0].url}" crossorigin>')
            elif spec.place % 3 == 2:
                hints.append(f'<link rel="preload" as="style" href="{self._page.of("css")[0].url}">')
            else:
                hints.append(f'<link rel="preload" as="script" href="{script.url}">')
        return hints

    # Scripts, style sheets and data ----------------------------------------------------------------------------------

    def _make_texts(self, kind: str, write: Any) -> None:
        """Make the files of a kind, the largest last, which has the bytes that are left of the page's."""
        total = getattr(self._spec, f"{kind}_bytes") * KB
        items = sorted(self._of(kind), key=lambda one: one.size)
        for item in items[:-1]:
            self._bodies[item] = code.packed(write(item, item.size), item.host.encoding)
        last, wanted = items[-1], max(200, total - sum(len(self._bodies[item]) for item in items[:-1]))
        size = wanted
        for _ in range(3):
            self._bodies[last] = code.packed(write(last, size), last.host.encoding)
            size = round(size * wanted / len(self._bodies[last]))
            if abs(len(self._bodies[last]) - wanted) < 0.01 * wanted:
                break

    def _script(self, item: Item, size: int) -> str:
        busy = sorted(self._of("js"), key=lambda one: -one.size)[: 1 + self._spec.blocking_ms // 110]
        more = ""
        if item is self._main and self._spec.shift:
            height = round(self._spec.shift / 100 * VIEWPORT[0])
            more = PROMO % (height, json.dumps(self._promo, ensure_ascii=False))
        # A task blocks for as long as it takes beyond 50 ms.
        work_ms = round(self._spec.blocking_ms / len(busy)) + 50 if item in busy and self._spec.blocking_ms else 0
        frames = [
            (frame.url, f"slot{self._frames[frame]}" if frame in self._frames else "") for frame in item.of("html")
        ]
        steps = code.steps(
            scripts=[one.url for one in item.of("js")],
            images=[one.url for one in item.of("image", "redirect")],
            data=[one.url for one in item.of("data")],
            beacons=[one.url for one in item.of("beacon")],
            frames=frames,
            media=[one.url for one in item.of("media")],
            work_ms=work_ms,
            more=more,
        )
        return code.script(size, item.host.encoding, steps, f"{item.host.party or brand(self._spec)} {item.path}")

    @property
    def _promo(self) -> str:
        return Writer(self._spec.language, Dice(f"web promo {self._spec.name}")).headline()

    def _style(self, item: Item, size: int) -> str:
        fonts = self._of("font")
        faces = [
            {
                "family": self._families[fonts.index(one)],
                "url": one.url,
                "form": one.form,
                "display": ("swap", "swap", "block", "fallback")[fonts.index(one) % 4],
            }
            for one in item.of("font")
        ]
        if self._spec.blocking and item is self._page.of("css")[0]:
            rules = self._theme(faces)
        else:
            rules = "".join(
                f'@font-face{{font-family:"{face["family"]}";src:url("{face["url"]}") format("{face["form"]}");'
                f"font-display:{face['display']}}}\n"
                for face in faces
            )
        return code.styles(size, item.host.encoding, rules, item.path)

    def _make_others(self) -> None:
        data, media = self._of("data"), self._of("media")
        spare = self._spec.bytes * KB - sum(len(body) for body in self._bodies.values())
        planned = sum(item.size for item in data)
        # Data make up for what the other files have less or more than planned; unless there is a video.
        share = 1.0 if media else min(max(spare / max(planned, 1), 0.2), 6.0)
        for item in data:
            text = code.state(round(item.size * share), item.host.encoding, item.path)
            self._bodies[item] = code.packed(text, item.host.encoding)
            spare -= len(self._bodies[item])
        for item in media:
            self._bodies[item] = _piece(max(1000, spare // len(media)), item.path)

    # Responses -------------------------------------------------------------------------------------------------------

    def _cookies(self) -> dict[Item, list[str]]:
        """Which responses set which cookies: of five, two are the page's own."""
        third = [
            item
            for item in self._items
            if item.kind in ("redirect", "beacon") or item.mode == "script" or item in self._frames
        ]
        third = [item for item in third if item.is_third]
        count = self._spec.cookies
        first = count if not third else min(count, round(0.4 * count + 0.3))
        own_items = [self._page, *(item for item in self._of("data") if not item.is_third)][:3]
        cookies: dict[Item, list[str]] = {}
        for number in range(count):
            item = own_items[number % len(own_items)] if number < first else third[(number - first) % len(third)]
            value = f"{self._dice.token(4)}={self._dice.token(self._dice.number(12, 46))}"
            scope = (
                "; SameSite=None; Secure"
                if number >= first
                else ("; Secure; HttpOnly", "", "; SameSite=Lax")[number % 3]
            )
            cookies.setdefault(item, []).append(
                f"{value}; Max-Age={self._dice.pick((3600, 86400, 31536000))}; Path=/{scope}"
            )
        return cookies

    def _exchange(self, item: Item, cookies: Sequence[str]) -> Exchange:
        host, body = item.host, self._bodies.get(item, b"")
        status = {"redirect": 302, "beacon": 204}.get(item.kind, 200)
        fields: list[tuple[str, str]] = [("Server", SOFTWARE[zlib.crc32(host.ip.encode()) % len(SOFTWARE)])]
        fields.append(("Date", http_date(VISITED)))
        if item.kind == "redirect":
            fields += [("Location", item.children[0].url), ("Cache-Control", "no-store")]
        elif item.kind == "beacon":
            fields.append(("Cache-Control", "no-store"))
        else:
            fields += self._fields(item, body)
        fields += [("Set-Cookie", cookie) for cookie in cookies]
        if status != 204:
            fields.append(("Content-Length", str(len(body))))
        response = Response(status, HTTPStatus(status).phrase, tuple(fields), body)
        method = "POST" if item.kind == "beacon" else "GET"
        return Exchange(method, item.url, response, host.ip, ttfb_ms=round(host.rtt_ms + self._think_ms(item), 1))

    def _fields(self, item: Item, body: bytes) -> Headers:
        kind = item.form if item.form in CONTENT_TYPES else item.kind
        fields = [("Content-Type", CONTENT_TYPES[kind])]
        if item.kind in ("html", "css", "js", "data") or item.form == "svg":
            fields += (
                [("Content-Encoding", item.host.encoding), ("Vary", "Accept-Encoding")] if item.host.encoding else []
            )
        if item is self._page:
            fields.append(("Cache-Control", "private, no-store" if self._spec.no_store else "private, no-cache"))
            fields += [("Strict-Transport-Security", "max-age=31536000"), ("X-Content-Type-Options", "nosniff")]
        elif item.kind in ("html", "data") or item.form == "gif":
            fields.append(("Cache-Control", ("no-store", "private, max-age=0")[self._even() < 0.4]))
        else:
            modified = VISITED - timedelta(minutes=90 + zlib.crc32(item.path.encode()) % 400_000)
            fields += [("Last-Modified", http_date(modified)), ("ETag", f'"{zlib.crc32(body):08x}"')]
            values, shares = [value for value, _ in LIFETIMES], [share for _, share in LIFETIMES]
            lifetime = by_share(values, shares, self._even())
            fields.append(("Cache-Control", lifetime))
        if item is not self._page:
            fields += [("Access-Control-Allow-Origin", "*"), ("Timing-Allow-Origin", "*")]
        return tuple(fields)

    def _think_ms(self, item: Item) -> float:
        if item is self._page:
            order = sorted(range(len(specs())), key=lambda place: place * GOLDEN % 1)
            return marginals()["think_ms"].value((order.index(self._spec.place) + 0.5) / len(order))
        low, high = THINK_MS.get(item.kind, STATIC_MS)
        return low + (high - low) * self._even() ** 2

    def _connections(self) -> list[Connection]:
        hosts: dict[str, list[str]] = {}
        by_name = {host.name: host for host in self._plan.hosts}
        for item in self._items:
            names = hosts.setdefault(item.host.ip, [])
            if item.host.name not in names:
                names.append(item.host.name)
        connections = []
        for ip, names in hosts.items():
            host = by_name[names[0]]
            chain = round(marginals()["chain_bytes"].value(min(max(self._even(), 0.01), 0.99)))
            connections.append(
                Connection(
                    server=ip,
                    host=host.name,
                    handshake_ms=host.rtt_ms,
                    tls_ms=round(host.rtt_ms * 1.05 + 1.5, 1),
                    alpn="http/1.1" if host.is_http1 else "h2",
                    certificates=(chain - INTERMEDIATE_BYTES, INTERMEDIATE_BYTES),
                    names=tuple(names),
                )
            )
        return connections


def _tag(script: Item) -> str:
    attribute = {"async": " async", "defer": " defer", "module": ' type="module"'}.get(script.mode, "")
    return f'<script src="{script.url}"{attribute}></script>'


def _piece(size_bytes: int, seed: str) -> bytes:
    """A piece of a video: a box that players ignore (ISO/IEC 14496-12, `free`), full of noise."""
    return size_bytes.to_bytes(4, "big") + b"free" + hashlib.shake_128(seed.encode()).digest(size_bytes - 8)


def _look(spec: Spec, dice: Dice) -> Look:
    hue, dark = dice.number(0, 359), spec.kind == "video" or (spec.kind in ("gallery", "app") and spec.place % 2 == 0)
    serif = spec.kind in ("text", "news") and dice.share() < 0.6
    coloured = dice.share() < 0.5
    faces = 'Georgia,"Liberation Serif",serif' if serif else 'Arial,"Liberation Sans",sans-serif'
    return Look(
        ink="#e9ebf0" if dark else "#1d2129",
        paper=f"hsl({hue},14%,11%)"
        if dark
        else dice.pick(("#fff", f"hsl({hue},24%,97%)", f"hsl({(hue + 40) % 360},30%,96%)")),
        accent=f"hsl({hue},62%,{58 if dark else 40}%)",
        bar=f"hsl({hue},58%,26%)" if coloured else "#15181f" if dark else "#fff",
        on_bar="#fff" if coloured or dark else "#1d2129",
        dark=f"hsl({hue},22%,17%)",
        text=faces,
        title=dice.pick((faces, 'Georgia,"Liberation Serif",serif')),
        round=dice.pick((0, 3, 6, 12)),
        width=dice.pick((1180, 1240, 1300)),
        side=300 if spec.kind != "video" else 380,
        columns={"gallery": 4, "shop": dice.pick((4, 5)), "text": 3}.get(spec.kind, 4),
        card=dice.pick((150, 180, 210)),
        hero={"gallery": 430, "video": 440, "office": 260, "app": 260}.get(spec.kind, 390),
        search=dice.pick((160, 220, 300)),
        spacing=dice.pick((-1, 0, 1, 3)),
    )


@cache
def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
