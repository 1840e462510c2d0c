"""Draws the properties of the set's pages, and writes them as `pages.csv`:

    python -m record.web.draw

Each marginal gives as many equally spaced values as there are pages, so the set has its percentiles by construction.
A Gaussian copula assigns the values to pages: a page has a size, which all its numbers share in part, and a kind, which
raises some and lowers others. Then values are exchanged between pages until each page is possible: it has at least as
many requests and bytes as its parts have together, for example.
"""

import csv
import sys
from dataclasses import fields
from pathlib import Path
from statistics import NormalDist

from record.web.dice import Dice
from record.web.quantiles import marginals
from record.web.spec import FILE, Spec

SEED = "eyelevel web 2025"
EXCHANGES = 400_000
# The part of a number's spread that pages of all kinds share.
COMMON, OWN = 0.7, 0.55
# Exchanges keep the copula's order as far as possible; this is the price of a step in it.
PRICE_OF_RANK = 0.0004
FONT_KB = 32
# The share of requests to third parties of pages that have any, of those with the fewest servers and with the most.
THIRD_SHARES = (0.3, 0.62)

KINDS = {"text": 8, "news": 7, "shop": 8, "app": 5, "gallery": 4, "video": 3, "office": 5}
LANGUAGES = {
    "text": "en en de ru fr en el es",
    "news": "en de es ar pl en pt",
    "shop": "en en fr de it tr en ru",
    "app": "en en en nl pt",
    "gallery": "en it en fr",
    "video": "en es ru",
    "office": "de fr pl en ar",
}
MEDIA = {"web-video-1", "web-video-2", "web-video-3", "web-shop-2", "web-shop-6", "web-news-3", "web-app-4"}
WITHOUT_THIRD_PARTIES = ("web-text-4", "web-office-1", "web-office-4", "web-text-7")
LIGHT = dict.fromkeys(("requests", "js_requests", "js_bytes", "bytes", "servers", "cookies", "blocking_ms"), -0.5)
# By how much, in standard deviations, pages of a kind exceed others: guesses.
TENDENCIES: dict[str, dict[str, float]] = {
    "text": {**LIGHT, "image_requests": -0.6, "image_bytes": -0.6, "html_requests": -0.3},
    "news": dict.fromkeys(
        ("requests", "servers", "html_requests", "js_requests", "cookies", "blocking_ms", "shift"), 0.8
    ),
    "shop": {"image_requests": 0.5, "image_bytes": 0.3, "css_bytes": 0.3, "requests": 0.3, "html_bytes": 0.5},
    "app": {"js_bytes": 0.8, "html_requests": -0.5, "image_requests": -0.5, "image_bytes": -0.4, "css_requests": -0.5},
    "gallery": {"image_bytes": 1.2, "image_requests": 0.9, "bytes": 0.8, "js_bytes": -0.3, "unsized_images": 0.6},
    "video": {"bytes": 1.0, "js_bytes": 0.5, "requests": 0.3},
    "office": {**LIGHT, "servers": -1.2, "cookies": -1.0, "image_requests": -0.5, "html_requests": -0.5},
}
DRAWN = (
    *("requests", "html_requests", "css_requests", "js_requests", "image_requests", "font_requests", "bytes"),
    *("html_bytes", "css_bytes", "js_bytes", "image_bytes", "servers", "blocking_ms", "shift", "unsized_images"),
    *("cookies", "injected"),
)
Page = dict[str, int | str | bool]


def draw() -> list[Spec]:
    """The properties of all pages."""
    dice = Dice(SEED)
    names = [f"web-{kind}-{number + 1}" for kind, count in KINDS.items() for number in range(count)]
    kinds = {name: name.split("-")[1] for name in names}
    sizes = {name: _normal(dice) for name in names}
    columns = {key: _assigned(key, names, kinds, sizes, dice) for key in DRAWN}
    pages = [{key: columns[key][place] for key in DRAWN} for place in range(len(names))]
    _make_possible(pages, names, dice)
    _add_third_parties(pages, names)
    flags = _flags(pages, names, dice)
    languages = {kind: texts.split() for kind, texts in LANGUAGES.items()}
    return [
        Spec(
            name=name,
            kind=kinds[name],
            language=languages[kinds[name]][int(name.rpartition("-")[2]) - 1],
            **pages[place],  # type: ignore[arg-type]
            **{key: name in chosen for key, chosen in flags.items() if key not in ("text", "background")},
            lcp="text" if name in flags["text"] else "background" if name in flags["background"] else "image",
            media=name in MEDIA,
        )
        for place, name in enumerate(names)
    ]


def _normal(dice: Dice) -> float:
    return NormalDist().inv_cdf(min(max(dice.share(), 1e-9), 1 - 1e-9))


def _assigned(key: str, names: list[str], kinds: dict[str, str], sizes: dict[str, float], dice: Dice) -> list[int]:
    """The values of the marginal `key`, one for each page."""
    heights = [COMMON * sizes[name] + TENDENCIES[kinds[name]].get(key, 0) + OWN * _normal(dice) for name in names]
    order = sorted(range(len(names)), key=heights.__getitem__)
    values = [0] * len(names)
    for rank, place in enumerate(order):
        values[place] = round(marginals()[key].value((rank + 0.5) / len(names)))
    return values


def _make_possible(pages: list[dict[str, int]], names: list[str], dice: Dice) -> None:
    """Exchange values between pages until all are possible."""
    ranks = {key: {v: r for r, v in enumerate(sorted(page[key] for page in pages))} for key in DRAWN}
    wanted = [{key: ranks[key][page[key]] for key in DRAWN} for page in pages]

    def price(place: int) -> float:
        moved = sum(abs(ranks[key][pages[place][key]] - wanted[place][key]) for key in DRAWN)
        return _impossibility(pages[place], names[place]) + PRICE_OF_RANK * moved

    prices = [price(place) for place in range(len(pages))]
    for _ in range(EXCHANGES):
        key, first, second = dice.pick(DRAWN), dice.number(0, len(pages) - 1), dice.number(0, len(pages) - 1)
        one, other = pages[first], pages[second]
        one[key], other[key] = other[key], one[key]
        after = price(first), price(second)
        if sum(after) < prices[first] + prices[second]:
            prices[first], prices[second] = after
        else:
            one[key], other[key] = other[key], one[key]
    costs = {name: round(_impossibility(page, name), 2) for page, name in zip(pages, names, strict=True)}
    print({name: cost for name, cost in costs.items() if cost}, file=sys.stderr)


def _impossibility(page: dict[str, int], name: str) -> float:
    """How far `page` is from one that can be made; 0 if it can."""
    media, alone = name in MEDIA, name in WITHOUT_THIRD_PARTIES
    requests, size = page["requests"], page["bytes"]
    parts = sum(page[f"{kind}_requests"] for kind in ("html", "css", "js", "image", "font"))
    rest = requests - parts
    filled = sum(page[f"{kind}_bytes"] for kind in ("html", "css", "js", "image")) + FONT_KB * page["font_requests"]
    spare = size - filled
    mean_js, mean_css = page["js_bytes"] / page["js_requests"], page["css_bytes"] / page["css_requests"]
    mean_image = page["image_bytes"] / page["image_requests"]
    # Pages with many images have few small ones, or the images of all pages together would be too small.
    least_image = 9 if page["image_requests"] < 12 else 26 if page["image_requests"] < 30 else 42
    most_servers = 3 if alone else 1 + requests * 0.28
    return sum(
        (
            3 * _outside(rest, 2 + 0.05 * requests + (6 if media else 0), 0.42 * requests + 2) / requests,
            2 * _outside(spare, *((0.1 * size, 0.8 * size) if media else (0.005 * size, 0.06 * size + 10))) / size,
            _outside(mean_js, 7, 80) / 50,
            _outside(mean_css, 1.2, 45) / 20,
            _outside(mean_image, least_image, 330) / 100 + _outside(mean_image, least_image, 9999) / 12,
            _outside(page["html_bytes"], 3 + page["html_requests"], 400) / 20,
            _outside(page["servers"], 3 if not alone else 1, most_servers) / 5,
            _outside(page["cookies"], 0, requests * 0.5) / 10,
            _outside(page["blocking_ms"], 0, page["js_bytes"] * 1.2) / 200,
            _outside(page["unsized_images"], 0, page["image_requests"] * 0.6) / 5,
            _outside(page["html_requests"], 1, 2 if alone else 1 + page["js_requests"]) / 5,
            _outside(page["font_requests"], 1, 20) if name in ("web-news-4", "web-office-5") else 0,
            _outside(page["injected"], 0, 8 if alone else 100) / 20,
        )
    )


def _outside(value: float, low: float, high: float) -> float:
    return max(low - value, 0, value - high)


def _add_third_parties(pages: list[dict[str, int]], names: list[str]) -> None:
    """Give each page a number of requests to third parties; of all, together the published share."""
    with_them = [p for p, name in zip(pages, names, strict=True) if name not in WITHOUT_THIRD_PARTIES]
    low, high = THIRD_SHARES
    for page in pages:
        page["third_requests"] = 0
    order = sorted(with_them, key=lambda page: page["servers"] / page["requests"])
    shares = [low + (high - low) * rank / (len(order) - 1) for rank in range(len(order))]
    target = marginals()["third_party_requests"].percent / 100 * sum(page["requests"] for page in pages)
    scale = target / sum(share * page["requests"] for share, page in zip(shares, order, strict=True))
    for share, page in zip(shares, order, strict=True):
        page["third_requests"] = round(min(scale * share, 0.8) * page["requests"])


def _flags(pages: list[dict[str, int]], names: list[str], dice: Dice) -> dict[str, set[str]]:
    """Which pages have which properties; as many as published."""
    by_name = dict(zip(names, pages, strict=True))

    def some(key: str, among: list[str], of: int | None = None) -> set[str]:
        count = round(marginals()[key].percent / 100 * (len(names) if of is None else of))
        return set(dice.shuffled(among)[:count])

    poor = sorted(names, key=lambda name: by_name[name]["image_bytes"])
    text = set(poor[: round(marginals()["lcp_text"].percent / 100 * len(names))])
    rich = [name for name in names if name not in text]
    background = some("lcp_background", [name for name in rich if name.split("-")[1] != "news"])
    images = [name for name in rich if name not in background]
    several = [name for name in rich if by_name[name]["servers"] > 3]
    priority = some("lcp_priority", images, len(rich))
    # On long pages of these kinds, the images are too far down to be lazy.
    near = [name for name in names if name.split("-")[1] not in ("app", "office") or by_name[name]["html_bytes"] < 20]
    lazy_lcp = some("lcp_lazy", [name for name in images if name in near and name not in priority], len(images))
    others = [name for name in near if name not in lazy_lcp]
    lazy = lazy_lcp | set(
        dice.shuffled(others)[: round(marginals()["with_lazy"].percent / 100 * len(names)) - len(lazy_lcp)]
    )
    with_fonts = [name for name in names if by_name[name]["font_requests"] and by_name[name]["third_requests"] > 2]
    preload_lcp = some("lcp_preload", sorted(background), len(rich))
    more = [name for name in names if by_name[name]["font_requests"] and name not in preload_lcp]
    preload = preload_lcp | set(
        dice.shuffled(more)[: round(marginals()["with_preload"].percent / 100 * len(names)) - len(preload_lcp)]
    )
    third = [name for name in names if by_name[name]["third_requests"] > 2]
    # A page whose style sheets do not block has them in its document, too, which must be large enough.
    free = [name for name in rich if name not in preload and by_name[name]["html_bytes"] > 12]
    return {
        "text": text,
        "background": background,
        "lcp_cross": some("lcp_cross_host", several),
        "lcp_priority": priority,
        "lcp_lazy": lazy_lcp,
        "lcp_preload": preload_lcp,
        "font_service": some("with_font_service", with_fonts),
        "lazy": lazy,
        "preload": preload,
        "preconnect": some("with_preconnect", third),
        "dns_prefetch": some("with_dns_prefetch", third),
        "no_store": some("with_no_store", names),
        "blocking": set(names)
        - set(dice.shuffled(free)[: len(names) - round(0.01 * marginals()["with_blocking"].percent * len(names))]),
    }


def write(drawn: list[Spec], file: Path = FILE) -> None:
    """Write the properties of pages as a table."""
    with file.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(one.name for one in fields(Spec))
        for spec in drawn:
            values = (getattr(spec, one.name) for one in fields(Spec))
            table.writerow(("no", "yes")[value] if isinstance(value, bool) else value for value in values)


if __name__ == "__main__":
    write(draw())
