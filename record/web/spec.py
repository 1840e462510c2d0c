"""The properties that each page of the set is made to have: `pages.csv`, which `record.web.draw` writes."""

import csv
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("pages.csv")


@dataclass(frozen=True)
class Spec:
    """A page to generate. Sizes are in KB (1024 bytes), as transferred; CLS is in hundredths.

    `lcp`: the kind of the largest contentful element: `image`, `background` or `text`; `lcp_cross`: whether it is on
    another host than the page, and `lcp_priority`, `lcp_lazy`, `lcp_preload`: whether it has a high fetchpriority, is
    loaded lazily, is preloaded. `third_requests`: the number of requests to third parties. `media`: whether the page
    loads pieces of a video. The other fields are marginals (`marginals.toml`), or say whether a page has a property of
    one.
    """

    name: str
    kind: str
    language: str
    requests: int
    html_requests: int
    css_requests: int
    js_requests: int
    image_requests: int
    font_requests: int
    bytes: int
    html_bytes: int
    css_bytes: int
    js_bytes: int
    image_bytes: int
    servers: int
    third_requests: int
    blocking_ms: int
    shift: int
    unsized_images: int
    cookies: int
    injected: int
    lcp: str
    lcp_cross: bool
    lcp_priority: bool
    lcp_lazy: bool
    lcp_preload: bool
    media: bool
    font_service: bool
    lazy: bool
    preload: bool
    preconnect: bool
    dns_prefetch: bool
    no_store: bool
    blocking: bool

    @property
    def place(self) -> int:
        """The page's place in the set, from 0."""
        return list(specs()).index(self.name)


@cache
def specs() -> dict[str, Spec]:
    """The pages of the set, by name."""
    with FILE.open(newline="", encoding="utf-8") as file:
        return {row["name"]: _spec(row) for row in csv.DictReader(file)}


def _spec(row: dict[str, str]) -> Spec:
    kinds = {"str": str, "int": int, "bool": "yes".__eq__}
    return Spec(**{one.name: kinds[getattr(one.type, "__name__", "")](row[one.name]) for one in fields(Spec)})  # type: ignore[operator]
