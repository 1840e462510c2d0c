"""`demo-news`: a newspaper's front page with advertisements, widgets and counters, from 12 servers."""

from typing import Any

from record.demo import services
from record.demo.builder import Host, SiteBuilder
from record.demo.fonts import Face
from record.demo.pictures import icon, logo
from record.demo.services import Advertisement, allowing, json_body
from record.demo.text import slug

WWW, API = "https://www.demo-news.example", "https://api.demo-news.example"
STATIC = "https://static.demo-news.example"
ASSETS = f"{STATIC}/a/12.7.3"
IMAGES = ("https://img1.demo-news.example", "https://img2.demo-news.example")
CHIRRUP, CHIRRUP_PICTURES = "https://widgets.chirrup.example", "https://pics.chirrup.example"
READNEXT, READNEXT_PICTURES = "https://www.readnext.example", "https://thumbs.readnext.example"

HOSTS = (
    Host("www.demo-news.example", "192.0.2.20", cookie="edition=coast"),
    Host("api.demo-news.example", "192.0.2.20"),
    Host("static.demo-news.example", "198.51.100.20", software="Varnish", encoding="br", days=3650, is_cdn=True),
    Host("img1.demo-news.example", "198.51.100.21", software="Varnish", days=3650, is_cdn=True),
    Host("img2.demo-news.example", "198.51.100.21", software="Varnish", days=3650, is_cdn=True),
    *services.HOSTS,
    Host("widgets.chirrup.example", "203.0.113.60", software="tsa_o", days=7),
    Host("pics.chirrup.example", "203.0.113.60", software="tsa_o", days=7, is_cdn=True),
    Host("www.readnext.example", "203.0.113.70", software="Apache/2.4.41 (Unix)", days=1, is_cdn=True),
    Host("thumbs.readnext.example", "203.0.113.70", days=7, is_cdn=True),
)
SECTIONS = ("Politics", "Business", "World", "Science", "Culture", "Sport", "Travel", "Weather")
FACES = (
    Face("Gazette Headline", 400, "DejaVuSerif"),
    Face("Gazette Headline", 700, "DejaVuSerif-Bold"),
    Face("Gazette Text", 400, "DejaVuSans"),
    Face("Gazette Text", 700, "DejaVuSans-Bold"),
)
NAVY, RED = (20, 32, 46), (163, 20, 44)
TIMELINE = "5.2.0"


ADVERTISEMENTS = (
    Advertisement("top", 970, 90, "Night ferries from 29. Wake up somewhere else."),
    Advertisement("side", 300, 250, "The coast path in nine easy days", is_rich=True),
    Advertisement("foot", 728, 90, "Warm coats for cold quays"),
)


def build(site: SiteBuilder) -> None:
    """Add the site's exchanges."""
    lead = _story(site, 0, 800, 450)
    seconds = [_story(site, number, 280, 188) for number in range(1, 6)]
    desks = [
        (section, [_story(site, 6 + 6 * desk + number, 760, 428) for number in range(6)])
        for desk, section in enumerate(SECTIONS[:3])
    ]
    stories = [lead, *seconds, *(story for _, cards in desks for story in cards)]
    portraits = [f"{IMAGES[1]}/authors/{number}.jpg" for number in range(1, 5)]
    columnists = [
        {"name": site.writer.write("person"), "headline": site.writer.write("headline"), "portrait": portrait}
        for portrait in portraits
    ]

    site.render(
        f"{WWW}/",
        "news/index.html",
        www=WWW,
        api=API,
        assets=ASSETS,
        font_list=services.font_list("gazette"),
        scripts=services,
        sections=SECTIONS,
        lead=lead,
        seconds=seconds,
        desks=desks,
        stories=stories,
        columnists=columnists,
    )
    services.list_fonts(site, "gazette", FACES)
    site.render(f"{ASSETS}/css/main.css", "news/main.css", assets=ASSETS)
    site.render(f"{ASSETS}/css/front.css", "news/front.css", assets=ASSETS)
    site.render(f"{ASSETS}/js/vendor.js", "news/vendor.js")
    site.render(services.TAG, "services/tag.js")
    site.render(services.ANALYTICS, "services/analytics.js", site=site.name)
    site.render(f"{ASSETS}/js/main.js", "news/main.js")
    site.render(f"{READNEXT}/loader.js", "news/readnext.js")
    site.redirect(f"{CHIRRUP}/embed/latest.js", f"{CHIRRUP}/embed/{TIMELINE}.js")
    site.render(f"{CHIRRUP}/embed/{TIMELINE}.js", "news/chirrup.js", version=TIMELINE)
    site.render(f"{ASSETS}/img/masthead.svg", "news/masthead.svg")
    for story in stories:
        site.photographs([story["picture"]], story["width"], story["height"])
    site.photographs(portraits, 144, 144)
    site.file(f"{ASSETS}/img/seal.png", logo("Gazette", (255, 255, 255), 44))
    site.file(f"{ASSETS}/img/weave.png", site.painter.texture(NAVY))
    site.render(f"{ASSETS}/img/arrow.svg", "news/arrow.svg")
    services.send_fonts(site, FACES)
    services.advertise(site, ADVERTISEMENTS, NAVY)
    _most_read(site, stories)
    _weather(site)
    _timeline(site)
    _related(site)
    services.count_visit(site, WWW)
    site.file(f"{WWW}/favicon.ico", icon("G", RED))


def _story(site: SiteBuilder, number: int, width: int, height: int) -> dict[str, Any]:
    """What the front page has of an article; its picture's size is in pixels."""
    headline, section, teaser, kicker, author = map(
        site.writer.write, ("headline", "section", "teaser", "kicker", "person")
    )
    return {
        "headline": headline,
        "teaser": teaser,
        "kicker": kicker,
        "section": section,
        "author": author,
        "time": f"{7 - number // 6:02}:{59 - 7 * (number % 6) - number // 6:02}",
        "path": f"/{slug(section)}/2019/10/08/{slug(headline)}-{4000 + number}",
        "picture": f"{IMAGES[number % 2]}/{width}x{height}/{slug(headline)}-{number}.jpg",
        "width": width,
        "height": height,
    }


def _most_read(site: SiteBuilder, stories: list[dict[str, Any]]) -> None:
    """A list from the API. Its request has a header field of its own, and therefore a preflight."""
    url = f"{API}/v2/most-read.json?section=front&count=5"
    allowed = (("Access-Control-Allow-Methods", "GET, OPTIONS"), ("Access-Control-Allow-Headers", "X-Client"))
    site.nothing(url, method="OPTIONS", extra=(*allowing(WWW), *allowed, ("Access-Control-Max-Age", "600")))
    thumbnails = [f"{IMAGES[1]}/168x112/most-read-{number}.jpg" for number in range(1, 6)]
    entries = [
        {key: story[key] for key in ("headline", "path")}
        | {"thumbnail": thumbnail, "reads": site.writer.number(900, 40_000)}
        for story, thumbnail in zip(stories[8:13], thumbnails, strict=True)
    ]
    site.file(url, json_body({"section": "front", "stories": entries}), extra=allowing(WWW))
    site.photographs(thumbnails, 168, 112)


def _weather(site: SiteBuilder) -> None:
    days = [
        {"name": name, "sky": sky, "degrees": degrees}
        for name, sky, degrees in (("Today", "cloud", 13), ("Wednesday", "rain", 11), ("Thursday", "sun", 15))
    ]
    site.file(f"{API}/v2/weather.json?place=aldermouth", json_body({"days": days}), extra=allowing(WWW))
    for day in days:
        site.render(f"{ASSETS}/img/weather/{day['sky']}.svg", "news/weather.svg", sky=day["sky"])


def _timeline(site: SiteBuilder) -> None:
    avatars = [f"{CHIRRUP_PICTURES}/u/{number}.jpg" for number in range(1, 5)]
    photograph = f"{CHIRRUP_PICTURES}/media/1.jpg"
    posts = [
        {
            "name": site.writer.write("person"),
            "text": site.writer.write("headline"),
            "avatar": avatar,
            "photo": photograph if avatar == avatars[0] else "",
            "count": site.writer.number(3, 900),
        }
        for avatar in avatars
    ]
    site.render(f"{CHIRRUP}/timeline/demonews.html", "news/timeline.html", posts=posts, version=TIMELINE)
    site.render(f"{CHIRRUP}/timeline/{TIMELINE}.css", "news/timeline.css")
    site.render(f"{CHIRRUP}/timeline/{TIMELINE}.js", "news/timeline.js")
    site.photographs(avatars[:1], 80, 80)
    site.photographs([photograph], 532, 300)
    site.photographs(avatars[1:], 80, 80)


def _related(site: SiteBuilder) -> None:
    pictures = [f"{READNEXT_PICTURES}/360x240/{number}.jpg" for number in range(1, 7)]
    items = [
        {
            "headline": site.writer.write("headline"),
            "source": f"{site.writer.write('place')} Post",
            "url": f"https://post.example/{number}",
            "picture": picture,
        }
        for number, picture in enumerate(pictures, 1)
    ]
    site.file(f"{READNEXT}/api/related.json?site=demo-news&count=6", json_body({"items": items}))
    site.photographs(pictures, 360, 240)
