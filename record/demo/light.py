"""`demo-light`: an encyclopaedia's article, from 2 servers."""

from record.demo.builder import Host, SiteBuilder
from record.demo.fonts import Face, woff2
from record.demo.pictures import icon

WWW, STATIC = "https://www.demo-light.example", "https://static.demo-light.example"
ASSETS = f"{STATIC}/2019.3"

HOSTS = (
    Host("www.demo-light.example", "192.0.2.10", software="Apache/2.4.38 (Debian)"),
    Host("static.demo-light.example", "192.0.2.11", encoding="br", is_cdn=True),
)
SECTIONS = ("Building the tower", "The optic", "Keepers", "Automation", "The light today")


def build(site: SiteBuilder) -> None:
    """Add the site's exchanges."""
    site.render(f"{WWW}/", "light/index.html", title="Aldermouth Light", sections=SECTIONS, assets=ASSETS)
    site.render(f"{ASSETS}/style.css", "light/style.css", assets=ASSETS)
    site.render(f"{ASSETS}/article.js", "light/article.js")
    site.file(f"{ASSETS}/coast.jpg", site.painter.photograph(660, 380))
    site.render(f"{ASSETS}/section.svg", "light/section.svg")
    site.file(f"{ASSETS}/beacon-regular.woff2", woff2(Face("Beacon", 400, "DejaVuSerif")))
    site.file(f"{ASSETS}/beacon-bold.woff2", woff2(Face("Beacon", 700, "DejaVuSerif-Bold")))
    site.file(f"{WWW}/favicon.ico", icon("L", (184, 64, 42)))
