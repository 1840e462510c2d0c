"""Third parties of more than one demo site: fonts, visit counts, advertisements."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from record.demo.builder import Host, SiteBuilder
from record.demo.fonts import Face, woff2
from record.demo.pictures import RGB, pixel
from record.demo.text import slug

FONT_LISTS, FONT_FILES = "https://css.lettercase.example", "https://files.lettercase.example"
COUNTER, COLLECTOR = "https://cdn.tallyboard.example", "https://collect.tallyboard.example"
ADS, BIDS = "https://tags.adkiosk.example", "https://bids.adkiosk.example"
CREATIVES = "https://frames.adkiosk-media.example"
MATCH = "https://match.datapool.example"

TAG, ANALYTICS = f"{ADS}/tag.js", f"{COUNTER}/v3/a.js"

HOSTS = (
    Host("css.lettercase.example", "203.0.113.10", software="ESF", is_cdn=True),
    Host("files.lettercase.example", "203.0.113.11", software="sffe", days=365, is_cdn=True),
    Host("cdn.tallyboard.example", "203.0.113.50", encoding="br", days=1, is_cdn=True),
    Host("collect.tallyboard.example", "203.0.113.51", software="Apache/2.4.41 (Unix)"),
    Host("tags.adkiosk.example", "203.0.113.30", software="openresty/1.15.8.2", encoding="br", days=1),
    Host("bids.adkiosk.example", "203.0.113.30", software="openresty/1.15.8.2", cookie="akid=5b2e91c4"),
    Host("frames.adkiosk-media.example", "203.0.113.31", software="AmazonS3", days=7, is_cdn=True),
    Host("match.datapool.example", "203.0.113.40", software="Jetty(9.4.20)", cookie="dp=c1f07a"),
)


@dataclass(frozen=True)
class Advertisement:
    """An advertisement that won the auction for a place on a page; sizes in pixels."""

    slot: str
    width: int
    height: int
    claim: str
    is_rich: bool = False
    """Whether its frame has a style sheet and a script, and reports the visit to another company."""

    @property
    def folder(self) -> str:
        return f"{CREATIVES}/{slug(self.claim)}"

    @property
    def frame(self) -> str:
        return f"{self.folder}/{self.slot}.html"


def font_list(family: str) -> str:
    """The style sheet that names a family's files."""
    return f"{FONT_LISTS}/family/{family}.css"


def font_files(faces: Iterable[Face]) -> list[tuple[Face, str]]:
    """Each face with the address of its file."""
    return [(face, f"{FONT_FILES}/s/{slug(face.family)}/v9/{face.weight}.woff2") for face in faces]


def list_fonts(site: SiteBuilder, family: str, faces: Iterable[Face]) -> None:
    """Add the style sheet of a family."""
    site.render(font_list(family), "services/fonts.css", files=font_files(faces))


def send_fonts(site: SiteBuilder, faces: Iterable[Face]) -> None:
    """Add the font files, which browsers ask for when they lay out text."""
    for face, url in font_files(faces):
        site.file(url, woff2(face))


def count_visit(site: SiteBuilder, page: str) -> None:
    """Add the requests of the script that counts visits: its settings, an image without content, and a beacon."""
    settings = {"site": site.name, "sample": 1, "events": ["view", "session"]}
    site.file(f"{COUNTER}/v3/sites/{site.name}.json", json_body(settings))
    site.nothing(f"{COLLECTOR}/hit?site={site.name}&event=view&path=%2F")
    site.nothing(f"{COLLECTOR}/session?site={site.name}", method="POST", extra=allowing(page))


def advertise(site: SiteBuilder, advertisements: tuple[Advertisement, ...], ink: RGB) -> None:
    """Add the advertisements' requests: an auction, and for each winner a frame with a picture and pixels."""
    winners = [{"slot": ad.slot, "frame": ad.frame, "price": round(2.4 / ad.width, 5)} for ad in advertisements]
    slots = ",".join(ad.slot for ad in advertisements)
    url = f"{BIDS}/auction.js?site=www.{site.name}.example&slots={slots}"
    site.render(url, "services/auction.js", auction={"page": site.name, "winners": winners})
    for ad in advertisements:
        _show(site, ad, ink)


def _show(site: SiteBuilder, ad: Advertisement, ink: RGB) -> None:
    picture = f"{ad.folder}/{ad.width}x{ad.height}.jpg"
    stylesheet, script = f"{ad.folder}/frame.css", f"{ad.folder}/render.js"
    seen, sync = f"{BIDS}/seen.gif?slot={ad.slot}", f"{MATCH}/sync?partner=adkiosk&slot={ad.slot}"
    site.render(
        ad.frame,
        "services/ad.html",
        ad=ad,
        picture=picture,
        stylesheet=stylesheet,
        script=script,
        pixels=[seen, sync] if ad.is_rich else [seen],
    )
    if ad.is_rich:
        site.render(stylesheet, "services/ad.css")
        site.render(script, "services/ad.js")
    site.file(picture, site.painter.banner(ad.width, ad.height, ad.claim, ink))
    site.file(seen, pixel())
    if ad.is_rich:
        match = f"{MATCH}/done.gif?partner=adkiosk&uid=5b2e91c4"
        site.redirect(sync, match)
        site.file(match, pixel())


def allowing(origin: str) -> tuple[tuple[str, str], ...]:
    """The headers that let the scripts of `origin` read a response, cookies and all."""
    return (("Access-Control-Allow-Origin", origin), ("Access-Control-Allow-Credentials", "true"))


def json_body(data: object) -> bytes:
    """`data` as the body of a response."""
    return json.dumps(data, ensure_ascii=False).encode()
