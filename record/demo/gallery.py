"""`demo-gallery`: a photographers' community with many pictures, a map, comments and a shop, from 30 servers."""

from itertools import cycle, islice, product
from typing import Any

from record.demo import services
from record.demo.builder import Host, SiteBuilder
from record.demo.fonts import Face
from record.demo.pictures import icon, logo
from record.demo.services import Advertisement, allowing, json_body

WWW, API = "https://www.demo-gallery.example", "https://api.demo-gallery.example"
ASSETS = "https://assets.demo-gallery.example/b71"
STORES = tuple(f"https://p{number}.lumenstore.example" for number in range(1, 9))
FACES_STORE = "https://faces.lumenstore.example"
MAP, TILES = "https://js.mapsheet.example/1.5", tuple(f"https://{letter}.tiles.mapsheet.example" for letter in "abcd")
MANAGER = "https://load.tagshelf.example"
BANNERS = "https://serve.bannerly.example"
CHIRRUP, CHIRRUP_PICTURES = "https://widgets.chirrup.example", "https://pics.chirrup.example"
TALK = "https://talk.threadbox.example"
SHOP, SHOP_PICTURES = "https://shop.printworks.example", "https://media.printworks.example"

HOSTS = (
    *services.HOSTS,
    Host("www.demo-gallery.example", "192.0.2.30", encoding="br", cookie="visitor=n1"),
    Host("api.demo-gallery.example", "192.0.2.30", encoding="br"),
    Host("assets.demo-gallery.example", "198.51.100.30", software="Varnish", encoding="br", days=3650, is_cdn=True),
    *(
        Host(f"p{number}.lumenstore.example", f"198.51.100.{40 + number}", software="AmazonS3", days=3650, is_cdn=True)
        for number in range(1, 9)
    ),
    Host("faces.lumenstore.example", "198.51.100.49", software="AmazonS3", days=3650, is_cdn=True),
    Host("js.mapsheet.example", "203.0.113.80", encoding="br", is_cdn=True),
    *(
        Host(f"{letter}.tiles.mapsheet.example", f"203.0.113.{81 + number}", software="Apache/2.4.38 (Debian)", days=7)
        for number, letter in enumerate("abcd")
    ),
    Host("load.tagshelf.example", "203.0.113.90", days=1, is_cdn=True),
    Host("serve.bannerly.example", "203.0.113.100", software="nginx/1.14.0 (Ubuntu)", days=1, cookie="bly=2f6d"),
    Host("widgets.chirrup.example", "203.0.113.60", software="tsa_o", days=7, is_cdn=True),
    Host("pics.chirrup.example", "203.0.113.61", software="tsa_o", days=7, is_cdn=True),
    Host("talk.threadbox.example", "203.0.113.110", software="gunicorn/19.9.0", days=1, is_cdn=True),
    Host("shop.printworks.example", "203.0.113.120", software="Apache/2.4.29 (Ubuntu)", cookie="basket=0"),
    Host("media.printworks.example", "203.0.113.121", software="Apache/2.4.29 (Ubuntu)"),
)
FACES = (Face("Lumen", 300, "DejaVuSans"), Face("Lumen", 400, "DejaVuSans"), Face("Lumen", 700, "DejaVuSans-Bold"))
PLUM, ORANGE = (58, 44, 84), (244, 162, 59)
ADVERTISEMENTS = (Advertisement("billboard", 970, 250, "Lenses that see in the dark", is_rich=True),)

ROW_HEIGHT = 500
ROWS = ((1.5, 1.5, 0.7, 1.6), (1.0, 1.75, 1.5, 1.2), (1.6, 0.7, 1.5, 1.5), (1.33, 1.33, 1.33, 1.33))
SHOTS = 44
MAP_COLUMNS, MAP_ROWS = 5, 2


def build(site: SiteBuilder) -> None:
    """Add the site's exchanges."""
    shapes = islice(cycle(shape for row in ROWS for shape in row), SHOTS)
    shots = [_shot(site, number, shape) for number, shape in enumerate(shapes)]
    hero = f"{STORES[0]}/hero/1366x620/week-41.jpg"

    site.render(
        f"{WWW}/",
        "gallery/index.html",
        api=API,
        assets=ASSETS,
        rows=[shots[start : start + 4] for start in range(0, SHOTS, 4)],
        font_list=services.font_list("lumen"),
        manager=f"{MANAGER}/shelf.js?id=GA-2041",
        map_script=f"{MAP}/map.js",
        talk=TALK,
        shop=f"{SHOP}/embed/demo-gallery.html",
        banners=f"{BANNERS}/show.js?zone=418",
        chirrup=f"{CHIRRUP}/share/2.js",
    )
    services.list_fonts(site, "lumen", FACES)
    site.render(f"{ASSETS}/gallery.css", "gallery/gallery.css", hero=hero, assets=ASSETS)
    site.render(f"{ASSETS}/frameworks.js", "gallery/frameworks.js")
    site.render(f"{MANAGER}/shelf.js?id=GA-2041", "gallery/shelf.js", scripts=[services.ANALYTICS, services.TAG])
    site.render(f"{ASSETS}/app.js", "gallery/app.js")
    site.render(f"{MAP}/map.js", "gallery/map.js", tiles=TILES, columns=MAP_COLUMNS, rows=MAP_ROWS)
    site.render(f"{TALK}/embed.js", "gallery/talk.js", talk=TALK)
    site.render(f"{BANNERS}/show.js?zone=418", "gallery/show.js", banners=BANNERS)
    site.render(f"{CHIRRUP}/share/2.js", "gallery/share.js", pictures=CHIRRUP_PICTURES)
    site.render(f"{ASSETS}/logo.svg", "gallery/logo.svg")
    site.render(f"{ASSETS}/heart.svg", "gallery/heart.svg")
    site.file(hero, site.painter.photograph(1366, 620))
    for shot in shots:
        site.file(shot["url"], site.painter.photograph(shot["width"], shot["height"], quality=88))
    services.send_fonts(site, FACES)
    site.render(services.ANALYTICS, "services/analytics.js", site=site.name)
    site.render(services.TAG, "services/tag.js")
    services.advertise(site, ADVERTISEMENTS, PLUM)
    _photographers(site)
    _map(site)
    _shop(site)
    _comments(site)
    _share_buttons(site)
    _banner(site)
    services.count_visit(site, WWW)
    site.file(f"{WWW}/favicon.ico", icon("D", ORANGE))


def _shot(site: SiteBuilder, number: int, shape: float) -> dict[str, Any]:
    """A photograph on the page; `shape` is its width over its height."""
    return {
        "title": site.writer.write("Title"),
        "author": site.writer.write("person"),
        "camera": site.writer.write("camera"),
        "likes": site.writer.number(12, 4800),
        "url": f"{STORES[number % 8]}/{site.writer.letters(2)}/{site.writer.letters(12)}_{ROW_HEIGHT}.jpg",
        "shape": shape,
        "width": round(ROW_HEIGHT * shape),
        "height": ROW_HEIGHT,
    }


def _photographers(site: SiteBuilder) -> None:
    """Portraits that the page's own script inserts."""
    faces = [f"{FACES_STORE}/m/{number}.jpg" for number in range(1, 9)]
    people = [
        {"name": site.writer.write("person"), "shots": site.writer.number(8, 900), "face": face} for face in faces
    ]
    site.file(f"{API}/v1/photographers.json?featured=8", json_body({"people": people}), extra=allowing(WWW))
    site.photographs(faces, 192, 192)


def _map(site: SiteBuilder) -> None:
    """Tiles from four host names in turn, as `map.js` asks for them."""
    for row, column in product(range(MAP_ROWS), range(MAP_COLUMNS)):
        url = f"{TILES[(row + column) % len(TILES)]}/12/{2140 + column}/{1370 + row}.png"
        site.file(url, site.painter.map_tile())


def _shop(site: SiteBuilder) -> None:
    """A frame of a printing company's."""
    pictures = [f"{SHOP_PICTURES}/prints/{number}.jpg" for number in range(1, 5)]
    prints = [
        {"title": site.writer.write("Title"), "price": site.writer.number(19, 140), "picture": picture}
        for picture in pictures
    ]
    site.render(f"{SHOP}/embed/demo-gallery.html", "gallery/shop.html", prints=prints, media=SHOP_PICTURES)
    site.render(f"{SHOP_PICTURES}/embed/shop.css", "gallery/shop.css")
    site.render(f"{SHOP_PICTURES}/embed/shop.js", "gallery/shop.js")
    site.file(f"{SHOP_PICTURES}/embed/logo.png", logo("Printworks", (30, 90, 82), 40))
    site.photographs(pictures, 360, 270)


def _comments(site: SiteBuilder) -> None:
    """A thread that its script loads and styles."""
    faces = [f"{TALK}/faces/{number}.jpg" for number in range(1, 6)]
    comments = [
        {"name": site.writer.write("person"), "text": site.writer.write("comment"), "hours": 2 * number, "face": face}
        for number, face in enumerate(faces, 1)
    ]
    site.render(f"{TALK}/embed.css", "gallery/talk.css")
    site.file(f"{TALK}/threads/demo-gallery-week-41.json", json_body({"total": 218, "comments": comments}))
    site.photographs(faces, 96, 96)


def _share_buttons(site: SiteBuilder) -> None:
    for name, ink in (("Chirrup", (40, 132, 199)), ("Pinnery", (189, 38, 60))):
        site.file(f"{CHIRRUP_PICTURES}/buttons/{name.lower()}.png", logo(name, ink, 36))


def _banner(site: SiteBuilder) -> None:
    picture = f"{BANNERS}/c/winter-728x90.jpg"
    site.redirect(f"{BANNERS}/creative?zone=418&size=728x90", picture)
    site.file(picture, site.painter.banner(728, 90, "Hand-made frames, sent flat", (30, 90, 82)))
