"""Plans a page of the set: its hosts, and each request with its size and with what causes it.

A plan is a tree: a document causes requests of style sheets, scripts, images and frames; scripts cause further ones.
`record.web.build` makes the files.
"""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from record.web.dice import Dice
from record.web.quantiles import Marginal, marginals
from record.web.spec import Spec
from record.web.text import ENDINGS, SYLLABLES

KB = 1024
PARTIES = Path(__file__).with_name("parties.toml")
FIRST_NETWORK, THIRD_NETWORK = "192.0.2", "203.0.113"
# The largest script and the largest image of a page, so that its bytes are spread over several.
LARGEST = {"js": 235 * KB, "css": 140 * KB, "image": 900 * KB}
SVG_SHARE, GIF_SHARE = 0.064, 0.187
# The part of a page's files of a kind, the largest, whose sizes depend on the page: a ninth.
TOP = 0.11
RASTER = (("jpg", 0.4), ("png", 0.375), ("webp", 0.205), ("avif", 0.02))
# Larger pictures are JPEG and PNG; these encoders are slow.
MODERN_MOST = 90 * KB
# The golden ratio's fractions of consecutive integers are spread evenly over 0 to 1.
GOLDEN = 0.6180339887498949
ENCODINGS = ("br", "gzip", "")


@dataclass(frozen=True)
class Host:
    """A host, and the server at `ip`, to which a round trip takes `rtt_ms`. `party` owns it; none, if empty: the page's
    own. `encoding`: of its text."""

    name: str
    ip: str
    party: str
    rtt_ms: float
    encoding: str
    is_http1: bool


@dataclass(eq=False)
class Item:
    """A request, and `children` that its response causes.

    `kind`: html, css, js, image, font, data, beacon, redirect or media. `size`: of its body, in bytes. `mode`: how a
    script is included (sync, defer, async, module, bottom, or inserted), or an image (hero, content, or script, which
    asks for it). `form`: the format of an image or a font.
    """

    kind: str
    host: Host
    path: str
    size: int = 0
    mode: str = ""
    form: str = ""
    children: list["Item"] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"https://{self.host.name}{self.path}"

    @property
    def is_third(self) -> bool:
        return bool(self.host.party)

    def of(self, *kinds: str) -> list["Item"]:
        """The children of these kinds."""
        return [child for child in self.children if child.kind in kinds]

    def all(self) -> Iterable["Item"]:
        """It and everything below it, in the order of a browser that asks for all of a response's children at once."""
        level = [self]
        while level:
            yield from level
            level = [child for item in level for child in item.children]


@dataclass(frozen=True)
class Plan:
    """The document of a page, with everything below it, and the hosts."""

    spec: Spec
    page: Item
    hosts: tuple[Host, ...]


def brand(spec: Spec) -> str:
    """The name of the site that a page belongs to."""
    return (
        SYLLABLES[spec.place % len(SYLLABLES)] + ENDINGS[(spec.place * 3 + spec.place // len(SYLLABLES)) % len(ENDINGS)]
    )


def plan(spec: Spec) -> Plan:
    """The plan of a page; the same for the same `spec`."""
    return _Planner(spec).plan()


class _Planner:
    def __init__(self, spec: Spec) -> None:
        self._spec, self._dice = spec, Dice(f"web plan {spec.name}")
        self._count = 0
        first = 1 + (spec.servers > 2) + (spec.servers > 7) if spec.third_requests else spec.servers
        self._first = [self._first_host(number) for number in range(first)]
        self._third = self._services(spec.servers - first)
        self._www, self._static, self._images = self._first[0], self._first[min(1, first - 1)], self._first[-1]
        self._turn = 0

    def plan(self) -> Plan:
        """The plan."""
        spec = self._spec
        page = Item("html", self._www, "/" if spec.place % 3 == 0 else f"/{spec.kind}/{self._dice.number(100, 9999)}")
        frames = [self._item("html", third=bool(self._third)) for _ in range(spec.html_requests - 1)]
        fonts = self._fonts()
        styles = self._styles(fonts)
        rest = spec.requests - spec.html_requests - spec.css_requests - spec.js_requests
        rest -= spec.image_requests + spec.font_requests
        pixels = self._pixels()
        spent = sum(item.is_third for item in [*frames, *fonts, *styles, *pixels])
        of_scripts, of_rest, of_images = self._shares(spec.third_requests - spent, rest, len(pixels))
        scripts = self._scripts(of_scripts)
        images = [*self._pictures(of_images, len(pixels)), *pixels]
        others = self._others(rest, of_rest, pixels)
        self._size(page, frames, styles, scripts, images, fonts, others)
        for font in fonts:
            next((one for one in styles if one.is_third == font.is_third), styles[0]).children.append(font)
        self._connect(page, frames, styles, scripts, images, others)
        hosts = list({item.host.name: item.host for item in page.all()}.values())
        return Plan(spec, page, tuple(hosts))

    # Hosts -----------------------------------------------------------------------------------------------------------

    def _even(self, step: float = GOLDEN) -> float:
        """The next of numbers that are evenly spread over 0 to 1, over all pages together."""
        self._count += 1
        return (self._spec.place * 0.7548776662466927 + self._count * step) % 1

    def _host(self, name: str, ip: str, party: str, rtt_ms: float) -> Host:
        shares = (0.5, 0.37, 0.13) if party else (0.62, 0.28, 0.1)
        return Host(name, ip, party, round(rtt_ms, 1), by_share(ENCODINGS, shares, self._even()), self._even() < 0.12)

    def _first_host(self, number: int) -> Host:
        name = f"{('www', 'static', 'img', 'api')[min(number, 3)]}.{brand(self._spec)}.example"
        # The page's own servers are farther away than those of services.
        far = 0.3 + 0.65 * self._even() if number == 0 else self._even()
        return self._host(name, f"{FIRST_NETWORK}.{number + 1}", "", marginals()["rtt_ms"].value(_inside(far)))

    def _services(self, count: int) -> list[list[Host]]:
        """The hosts of each of `count` third parties, the usual ones more often."""
        chosen = sorted(
            range(len(parties())),
            key=lambda place: (place > 0 or not self._spec.font_service, place + 26 * self._dice.share()),
        )[:count]
        services = []
        for place in chosen:
            name, role = parties()[place].split()
            rtt_ms = marginals()["rtt_ms"].value(_inside(self._even()))
            hosts = [
                self._host(f"{label}.{name}.example", f"{THIRD_NETWORK}.{place + 1}", name, rtt_ms)
                for label in (("tags", "stats", "fonts") if role == "suite" else ("cdn", "px"))
            ]
            services.append([Host(**{**vars(host), "is_http1": hosts[0].is_http1}) for host in hosts])
        return services

    def _service(self) -> list[Host]:
        """The hosts of the next third party in turn."""
        self._turn += 1
        return self._third[(self._turn - 1) % len(self._third)]

    def _item(self, kind: str, *, third: bool, mode: str = "", form: str = "", host: Host | None = None) -> Item:
        """A request to a host that has such files."""
        active = kind in ("image", "beacon", "redirect", "data")
        if third and not host:
            service = self._service()
            host = service[1] if active else service[0]
        first = {"html": self._www, "data": self._first[-1], "image": self._images}.get(kind, self._static)
        return Item(kind, host or first, f"/{self._path(kind, form)}", mode=mode, form=form)

    def _path(self, kind: str, form: str) -> str:
        """A path without its slash; no two items of a page have the same."""
        self._count += 1
        token, number = self._dice.token(6), self._count
        match kind:
            case "html":
                return f"embed/{token}{number}.html"
            case "image":
                return f"i/{token}{number}.{form}"
            case "data":
                return f"v2/{token}?page={number}"
            case "beacon":
                return f"collect?v=2&e={token}&n={number}"
            case "redirect":
                return f"match?to={token}&n={number}"
            case "media":
                return f"video/{token}/seg-{number}.m4s"
        return f"assets/{token}.{number}.{form or kind}"

    # Requests by kind ------------------------------------------------------------------------------------------------

    def _fonts(self) -> list[Item]:
        count = self._spec.font_requests
        third = 0 if not self._spec.font_service else count if self._even() < 0.5 else (count + 1) // 2
        host = self._third[0][-1] if third else None
        fonts = []
        for place in range(count):
            # Sizes are spread over all quantiles if numbers of two are skipped between them, not of one.
            self._count += 1
            fonts.append(self._item("font", third=place < third, host=host if place < third else None, form="woff2"))
        return fonts

    def _styles(self, fonts: Sequence[Item]) -> list[Item]:
        count = self._spec.css_requests
        items = [self._item("css", third=False) for _ in range(count)]
        third = next((font.host for font in fonts if font.is_third), None)
        if third and count > 1:
            items[-1] = self._item("css", third=True, host=third)
        return items

    def _pixels(self) -> list[Item]:
        if not self._third:
            return []
        count = round(GIF_SHARE * self._spec.image_requests)
        return [
            self._item("image", third=True, form="gif", mode="script")
            for _ in range(min(count, self._spec.image_requests - 1))
        ]

    def _shares(self, budget: int, rest: int, pixels: int) -> tuple[int, int, int]:
        """How many scripts, other requests and pictures go to third parties, of a budget."""
        spec = self._spec
        if not self._third:
            return 0, 0, 0
        most_scripts, most_rest = max(0, spec.js_requests - max(1, spec.js_requests // 5)), max(0, rest - rest // 6)
        most_images = max(0, (spec.image_requests - pixels - 1) * 3 // 4)
        budget = max(0, budget)
        usual = min(1.0, budget / max(1, most_scripts + most_rest))
        scripts, others = round(usual * most_scripts), round(usual * most_rest)
        return scripts, others, min(most_images, max(0, budget - scripts - others))

    def _scripts(self, third: int) -> list[Item]:
        first = self._spec.js_requests - third
        return [self._item("js", third=False) for _ in range(first)] + [
            self._item("js", third=True) for _ in range(third)
        ]

    def _pictures(self, third: int, pixels: int) -> list[Item]:
        """The pictures, without formats: the first is the hero."""
        count = self._spec.image_requests - pixels
        items = [
            self._item("image", third=place >= count - third, mode="content", form="jpg") for place in range(count)
        ]
        if self._spec.lcp != "text":
            host = self._www if not self._spec.lcp_cross else self._images
            if self._spec.lcp_cross and host is self._www and self._third:
                host = self._third[-1][0]
            items[0] = Item("image", host, items[0].path, mode="hero", form="jpg")
        return items

    def _others(self, rest: int, third: int, pixels: Sequence[Item]) -> list[Item]:
        redirects = min(round(0.055 * self._spec.requests), len(pixels), third, rest)
        items = [self._item("redirect", third=True) for _ in range(redirects)]
        rest, third = rest - redirects, third - redirects
        if self._spec.media:
            pieces = min(max(3, rest // 2), rest - 1)
            items += [self._item("media", third=False, host=self._static) for _ in range(pieces)]
            rest -= pieces
        third = min(third, rest)
        beacons = third * 2 // 5
        items += [self._item("beacon", third=True) for _ in range(beacons)]
        items += [self._item("data", third=True) for _ in range(third - beacons)]
        return items + [self._item("data", third=False) for _ in range(rest - third)]

    # Sizes -----------------------------------------------------------------------------------------------------------

    def _size(
        self,
        page: Item,
        frames: list[Item],
        styles: list[Item],
        scripts: list[Item],
        images: list[Item],
        fonts: list[Item],
        others: list[Item],
    ) -> None:
        spec = self._spec
        for frame in frames:
            frame.size = min(round((0.5 + 2.5 * self._even()) * KB), (spec.html_bytes - 3) * KB // len(frames))
        page.size = spec.html_bytes * KB - sum(frame.size for frame in frames)
        js = marginals()["js_file_bytes"]
        sizes = spread(js, len(scripts), spec.js_bytes * KB, LARGEST["js"])
        # The page's own script is the largest; the others have sizes in any order.
        for script, size in zip(scripts, [sizes[0], *self._dice.shuffled(sizes[1:])], strict=True):
            script.size = size
        for style, size in zip(styles, spread(js, len(styles), spec.css_bytes * KB, LARGEST["css"]), strict=True):
            style.size = size
        self._size_images(images)
        for font in fonts:
            font.size = round(marginals()["font_file_bytes"].value(_inside(self._even())) * KB)
        self._size_others(others, [page, *frames, *styles, *scripts, *images, *fonts])

    def _size_images(self, images: list[Item]) -> None:
        pictures = [item for item in images if item.form != "gif"]
        total = self._spec.image_bytes * KB - 43 * (len(images) - len(pictures))
        sizes = spread(marginals()["image_file_bytes"], len(pictures), total, LARGEST["image"], skip=GIF_SHARE)
        drawings = min(round(SVG_SHARE * len(images) + 0.5 * self._even() - 0.2), len(pictures) - 1)
        hero, *others = pictures
        small = sizes[len(sizes) - drawings :] if drawings else []
        hero.size = sizes[0]
        rest = self._dice.shuffled([*sizes[1 : len(sizes) - drawings], *small])
        for item, size in zip(others, rest, strict=True):
            item.size = size
        for item in sorted(others, key=lambda one: one.size)[:drawings]:
            item.form = "svg"
        for item in pictures:
            if item.form != "svg":
                item.form = by_share([form for form, _ in RASTER], [share for _, share in RASTER], self._even())
                if item.form in ("webp", "avif") and item.size > MODERN_MOST:
                    item.form = "jpg" if self._even() < 0.55 else "png"
            item.path = item.path.rpartition(".")[0] + f".{item.form}"

    def _size_others(self, others: list[Item], sized: Iterable[Item]) -> None:
        media = [item for item in others if item.kind == "media"]
        data = [item for item in others if item.kind == "data"]
        spare = max(0, self._spec.bytes * KB - sum(item.size for item in sized))
        texts = min(spare, len(data) * 2 * KB) if media else spare
        for item, size in zip(data, self._dice.shuffled(_falling(len(data), texts)), strict=True):
            item.size = max(60, size)
        for item in media:
            item.size = max(1000, (spare - texts) // len(media))

    # Causes --------------------------------------------------------------------------------------------------------

    def _connect(
        self,
        page: Item,
        frames: list[Item],
        styles: list[Item],
        scripts: list[Item],
        images: list[Item],
        others: list[Item],
    ) -> None:
        spec = self._spec
        first = [script for script in scripts if not script.is_third]
        third = [script for script in scripts if script.is_third]
        inserted = self._inserted(first, third, round(spec.injected / 100 * len(scripts) + 0.1))
        in_page = [script for script in scripts if script not in inserted]
        page.children += styles
        self._include(in_page)
        page.children += in_page
        main = next((script for script in first if script in in_page), in_page[0])
        for script in inserted:
            earlier = [one for one in scripts if one is not script and (one in in_page or one.mode == "placed")]
            chain = [one for one in earlier if one.mode == "placed"]
            parent = (
                chain[-1]
                if chain and self._even() < 0.45
                else self._dice.pick([one for one in earlier if one.is_third] or [main])
            )
            script.mode = "placed"
            parent.children.append(script)
        for script in inserted:
            script.mode = "inserted"
        page.children += [image for image in images if image.mode in ("hero", "content")]
        redirects = [item for item in others if item.kind == "redirect"]
        pixels = [image for image in images if image.mode == "script"]
        for redirect, pixel in zip(redirects, pixels, strict=False):
            redirect.children.append(pixel)
        for item in [*redirects, *pixels[len(redirects) :], *(o for o in others if o.kind != "redirect"), *frames]:
            party = item.host.party
            theirs = [script for script in scripts if script.is_third and script.host.party == party]
            parent = (
                self._dice.pick(theirs)
                if theirs
                else main
                if item.kind == "media"
                else self._dice.pick(third or [main])
            )
            if not item.is_third:
                parent = self._dice.pick(first) if first and item.kind != "media" else main
            if item.kind == "html" and self._even() < 0.35:
                parent = page
            parent.children.append(item)

    def _inserted(self, first: list[Item], third: list[Item], count: int) -> list[Item]:
        """The scripts that others insert."""
        if not third:
            return first[1 : count + 1]
        return (third[1:] + first[1:])[:count]

    def _include(self, scripts: Iterable[Item]) -> None:
        heads = 0
        for script in scripts:
            even = self._even()
            if script.is_third:
                script.mode = "async" if even < 0.75 or not self._spec.blocking else "sync"
            else:
                script.mode = by_share(("async", "defer", "module", "sync"), (0.28, 0.175, 0.025, 0.52), even)
            if script.mode == "sync":
                heads += 1
                script.mode = "sync" if heads <= 4 and self._spec.blocking else "bottom"


def spread(marginal: Marginal, count: int, total: int, largest: int, skip: float = 0.0) -> list[int]:
    """Sizes in bytes of `count` files that have `total` bytes together, the largest first: as `marginal` has them for
    files of all pages (in KB), narrower or wider. `skip`: the share of the smallest that are others."""
    shares = [skip + (1 - skip) * (place + 0.5) / count for place in range(count)]
    usual = [marginal.value(_inside(share)) for share in reversed(shares)]
    middle = marginal.values[2]

    # The largest ninth has what the others leave, if that is not less than theirs.
    top = max(1, round(TOP * count))
    rest = total - KB * sum(usual[top:])
    if count > top and top * KB * usual[top] <= rest <= top * largest * 0.9:
        low, high = 1e-3, 1e3
        for _ in range(60):
            scale = (low * high) ** 0.5
            heads = [min(largest, max(KB * usual[top], KB * size * scale)) for size in usual[:top]]
            low, high = (scale, high) if sum(heads) < rest else (low, scale)
        return [max(43, round(size)) for size in [*heads, *(KB * size for size in usual[top:])]]

    def sizes(width: float) -> list[float]:
        return [min(KB * middle * (size / middle) ** width, largest) for size in usual]

    low, high = 0.35, 2.6
    for _ in range(40):
        width = (low + high) / 2
        low, high = (width, high) if sum(sizes(width)) < total else (low, width)
    chosen = sizes(low)
    # Beyond these widths, all are larger or smaller.
    for _ in range(20):
        free = sum(size for size in chosen if size < largest) or 1
        missing = total - sum(chosen)
        chosen = [min(largest, size + missing * size / free) if size < largest else size for size in chosen]
    return [max(43, round(size)) for size in chosen]


def _falling(count: int, total: int) -> list[int]:
    """`count` sizes that have `total` together, each two thirds of the one before, down to a hundredth of the first."""
    weights = [max(0.66**place, 0.01) for place in range(count)]
    return [int(total * weight / sum(weights)) for weight in weights]


def by_share(values: Sequence[str], shares: Sequence[float], place: float) -> str:
    """The one of `values` at `place`, from 0 to 1, if each takes its share."""
    for value, share in zip(values, shares, strict=True):
        place -= share / sum(shares)
        if place < 0:
            return value
    return values[-1]


def _inside(share: float) -> float:
    return min(max(share, 0.004), 0.996)


@cache
def parties() -> list[str]:
    """The third parties, with their roles, the usual ones first."""
    names: list[str] = tomllib.loads(PARTIES.read_text(encoding="utf-8"))["parties"]
    return names
