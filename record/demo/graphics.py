"""Drawn pictures: logos, advertisements, map tiles, icons, textures and tracking pixels."""

import io
from functools import cache

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from record.demo.fonts import Face, truetype

RGB = tuple[int, int, int]

LETTERING = Face("Lettering", 700, 108)
TILE = 256


def logo(text: str, ink: RGB, height: int = 48) -> bytes:
    """A PNG with a mark and a name in it, on nothing."""
    font = _font(height * 0.62)
    width = round(height * 1.25 + font.getlength(text))
    image = Image.new("RGBA", (width, height), (*ink, 0))
    draw = ImageDraw.Draw(image)
    radius = height // 2 - 2
    draw.ellipse((2, 2, 2 + 2 * radius, 2 + 2 * radius), fill=(*ink, 255))
    draw.ellipse((2 + radius // 2, 2 + radius // 2, 2 + 2 * radius, 2 + 2 * radius), fill=(*ink, 0))
    draw.text((height * 1.15, height / 2), text, font=font, fill=(*ink, 255), anchor="lm")
    return encoded(image, "PNG", optimize=True)


def banner(photograph: Image.Image, claim: str, call: str, ink: RGB) -> bytes:
    """An advertisement as JPEG: `photograph` under a claim and a button."""
    image = photograph.convert("RGB")
    width, height = image.size
    upright = height > width / 2
    panel = (0, round(height * 0.5), width, height) if upright else (0, 0, round(width * 0.62), height)
    draw = ImageDraw.Draw(image)
    draw.rectangle(panel, fill=ink)
    left, top = panel[0] + 18, panel[1] + 16
    size = min(height * 0.3, width * 0.07, 40)
    lines = _wrapped(claim, _font(size), panel[2] - panel[0] - 36 - (0 if upright else 150))
    for number, line in enumerate(lines):
        draw.text((left, top + number * size * 1.2), line, font=_font(size), fill="white")
    x, y = (left, panel[3] - 54) if upright else (panel[2] - 140, top + 8)
    draw.rounded_rectangle((x, y, x + 122, y + 36), 6, fill="white")
    draw.text((x + 61, y + 18), call, font=_font(15), fill=ink, anchor="mm")
    return encoded(image, "JPEG", quality=88, optimize=True)


def map_tiles(rng: np.random.Generator, columns: int, rows: int) -> list[bytes]:
    """Adjoining square PNG tiles of a street map, row by row."""
    width, height = columns * TILE, rows * TILE
    image = Image.new("RGB", (width, height), "#f1ede4")
    draw = ImageDraw.Draw(image)

    def point() -> tuple[int, int]:
        return int(rng.integers(0, width)), int(rng.integers(0, height))

    for _ in range(7):
        x, y = point()
        span, depth = int(rng.integers(60, 190)), int(rng.integers(50, 150))
        draw.rounded_rectangle((x, y, x + span, y + depth), 18, fill="#cfe5b8")
    for _ in range(420):
        x, y = point()
        draw.rectangle((x, y, x + int(rng.integers(6, 20)), y + int(rng.integers(6, 20))), fill="#ddd6c8")
    river = [(x, round(height * 0.35 + height * 0.4 * float(rng.random()))) for x in range(-80, width + 200, 160)]
    draw.line(river, fill="#a9cfe3", width=46, joint="curve")
    for _ in range(60):
        start, along = point(), bool(rng.integers(2))
        length = int(rng.integers(120, 520))
        end = (start[0] + length, start[1] + length // 9) if along else (start[0] - length // 9, start[1] + length)
        draw.line((start, end), fill="#ffffff", width=int(rng.integers(3, 8)))
    for _ in range(3):
        road = [(share * width // 3, point()[1]) for share in range(4)]
        draw.line(road, fill="#d9a45b", width=15, joint="curve")
        draw.line(road, fill="#fbd58c", width=11, joint="curve")
    palette = image.quantize(64, Image.Quantize.MEDIANCUT)
    boxes = [(x, y, x + TILE, y + TILE) for y in range(0, height, TILE) for x in range(0, width, TILE)]
    return [encoded(palette.crop(box), "PNG", optimize=True) for box in boxes]


def icon(letter: str, ink: RGB) -> bytes:
    """A favicon with one letter, in the two usual sizes."""
    image = Image.new("RGBA", (64, 64), (0, 0, 0, 0))
    draw = ImageDraw.Draw(image)
    draw.rounded_rectangle((0, 0, 63, 63), 12, fill=(*ink, 255))
    draw.text((32, 33), letter, font=_font(46), fill="white", anchor="mm")
    return encoded(image, "ICO", sizes=[(16, 16), (32, 32)])


def weave(ink: RGB) -> bytes:
    """A PNG tile of cloth in a colour: the background of a bar."""
    across, down = np.meshgrid(np.arange(48), np.arange(48))
    threads = ((across + down) % 8 < 4).astype(np.int16) * 5 + (across * 37 + down * 91) % 7 - 5
    pixels = np.clip(np.asarray(ink)[None, None, :] + threads[..., None], 0, 255).astype(np.uint8)
    return encoded(Image.fromarray(pixels), "PNG", optimize=True)


def pixel() -> bytes:
    """The transparent GIF of one pixel that counts visits."""
    image = Image.new("P", (1, 1))
    return encoded(image, "GIF", transparency=0)


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    """The picture as a file of `kind`."""
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def _wrapped(text: str, font: ImageFont.FreeTypeFont, width: float) -> list[str]:
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and font.getlength(longer) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


@cache
def _font(size: float) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(io.BytesIO(_lettering()), size)


@cache
def _lettering() -> bytes:
    return truetype(LETTERING)
