"""Items that a demo site uses in several places: a newspaper's stories, a gallery's photographs."""

from itertools import cycle, islice
from typing import Any

from record.demo.text import Writer, slug

Values = dict[str, Any]

# The shapes (width over height) of a gallery's photographs, in order, and their common height in pixels.
SHAPES = (1.5, 1.5, 0.7, 1.6, 1.0, 1.75, 1.5, 1.2, 1.6, 0.7, 1.5, 1.5, 1.33, 1.33, 1.33, 1.33)
SHOT_HEIGHT = 500
SHOTS = 44


def front_page(writer: Writer) -> Values:
    """The stories of `demo-news`, the lead first, and its columnists; sizes of pictures are in pixels."""
    sizes = [(800, 450), *5 * [(280, 188)], *18 * [(760, 428)]]
    return {
        "stories": [_story(writer, number, *size) for number, size in enumerate(sizes)],
        "columnists": [{"name": writer.write("person"), "headline": writer.write("headline")} for _ in range(4)],
    }


def _story(writer: Writer, number: int, width: int, height: int) -> Values:
    headline, section, teaser, kicker, author = map(writer.write, ("headline", "section", "teaser", "kicker", "person"))
    return {
        "headline": headline,
        "teaser": teaser,
        "kicker": kicker,
        "section": section,
        "author": author,
        "time": f"{7 - number // 6:02}:{59 - 7 * (number % 6) - number // 6:02}",
        "path": f"/{slug(section)}/2019/10/08/{slug(headline)}-{4000 + number}",
        "picture": f"https://img{number % 2 + 1}.demo-news.example/{width}x{height}/{slug(headline)}-{number}.jpg",
        "width": width,
        "height": height,
    }


def photographs(writer: Writer) -> Values:
    """The photographs of `demo-gallery`, on eight hosts in turn."""
    return {"shots": [_shot(writer, number, shape) for number, shape in enumerate(islice(cycle(SHAPES), SHOTS))]}


def _shot(writer: Writer, number: int, shape: float) -> Values:
    host = f"https://p{number % 8 + 1}.lumenstore.example"
    return {
        "title": writer.write("Title"),
        "author": writer.write("person"),
        "camera": writer.write("camera"),
        "likes": writer.number(12, 4800),
        "url": f"{host}/{writer.letters(2)}/{writer.letters(12)}_{SHOT_HEIGHT}.jpg",
        "shape": shape,
        "width": round(SHOT_HEIGHT * shape),
        "height": SHOT_HEIGHT,
    }
