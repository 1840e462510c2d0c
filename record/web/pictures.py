"""The pictures of the pages: scenes that are painted once, and from which each picture is cut, coloured and encoded.

A picture has the size in bytes that it is given: first its pixels are as many as its format usually needs bytes for,
then it is encoded once more with as many as its own bytes ask for, and the small rest is a comment (JPEG) or a private
chunk (PNG), which decoders skip. WebP and AVIF come as near as that.

The scenes are computed only with arithmetic that IEEE 754 rounds exactly, and by Pillow with integers, so that they are
the same on every processor; the encoders are those of the locked Pillow.
"""

import struct
import zlib
from collections.abc import Callable
from functools import cache
from math import sqrt

from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageOps

from record.demo.pictures import Painter, encoded
from record.web.dice import Dice

WIDTH, HEIGHT = 1920, 1280
# Bytes of a pixel at a quality, roughly; the second encoding corrects it.
JPEG = ((82, 0.19), (90, 0.3), (94, 0.45), (97, 0.8))
PER_PIXEL = {"webp": 0.08, "avif": 0.09, "png": 0.3}
# Headers of the smallest picture of each format.
LEAST = {"jpg": 700, "webp": 80, "avif": 350, "png": 150}
MARKER_BYTES, CHUNK_BYTES, MOST_COMMENT = 4, 12, 65_000
LANDSCAPES, STILL_LIVES, STREETS = 5, 8, 3
# Posters (PNG) have few colours, large ones more.
COLOURS, MANY_COLOURS, LARGE = 24, 128, 120_000

PIXEL = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\xff\xff\x00\x00\x00!\xf9\x04\x01\x00\x00\x00\x00,\x00\x00\x00\x00"
PIXEL += b"\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"


def picture(size_bytes: int, form: str, shape: float, motif: str, dice: Dice) -> tuple[bytes, int, int]:
    """A picture of about `size_bytes`, its width and its height in pixels.

    `form`: jpg, png, webp, avif or gif (a pixel). `shape`: width over height. `motif`: landscape, still or street.
    """
    if form == "gif":
        return PIXEL, 1, 1
    scene = _scene(motif, dice.number(0, {"landscape": LANDSCAPES, "still": STILL_LIVES, "street": STREETS}[motif] - 1))
    look = (
        dice.number(0, 1 if motif == "landscape" else 5),
        dice.share() < 0.5 and motif != "street",
        dice.share() * 0.25,
        dice.share(),
    )
    content = max(1, size_bytes - LEAST[form])
    quality, per_pixel = _quality(form, content)
    most = WIDTH * HEIGHT * 0.98
    pixels = min(content / per_pixel, most)
    data = b""
    for _ in range(2):
        image = _cut(scene, pixels, shape, look)
        data = _file(image, form, quality)
        share = (len(data) - LEAST[form]) / content if content > 1 else 1.0
        if 0.93 <= share <= 1.02 or pixels < 40:
            break
        pixels = min(max(pixels / max(share, 0.05) * 0.985, 16), most)
    return _padded(data, size_bytes, form), image.width, image.height


def drawing(size_bytes: int, dice: Dice) -> bytes:
    """An SVG file of about `size_bytes`: an emblem of curves."""
    hue = dice.number(0, 359)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><g fill="hsl({hue},55%,42%)">']
    parts.append('<circle cx="32" cy="32" r="30"/></g><g fill="none" stroke="#fff" stroke-width="2">')
    length = sum(map(len, parts)) + 10
    while length < size_bytes or len(parts) < 5:
        line = f'<path d="M{dice.number(8, 56)} {dice.number(8, 56)}' + "".join(
            f" {dice.pick('QSL')}{dice.number(6, 58)} {dice.number(6, 58)} {dice.number(6, 58)} {dice.number(6, 58)}"
            for _ in range(3)
        )
        parts.append(line + '"/>')
        length += len(parts[-1])
    return ("".join(parts) + "</g></svg>").encode()


def _quality(form: str, content: int) -> tuple[int, float]:
    """The quality (of a PNG, the number of colours) at which a picture with this many bytes of content fits into a
    scene, and its bytes per pixel."""
    if form == "png":
        return (MANY_COLOURS, 0.55) if content > LARGE else (COLOURS, PER_PIXEL[form])
    if form != "jpg":
        return 78, PER_PIXEL[form]
    return next((pair for pair in JPEG if content / pair[1] <= 0.7 * WIDTH * HEIGHT), JPEG[-1])


def _cut(scene: str, pixels: float, shape: float, look: tuple[int, bool, float, float]) -> Image.Image:
    """A part of the scene with about as many pixels, mirrored and coloured."""
    order, mirrored, inset, place = look
    width, height = max(1, round(sqrt(pixels * shape))), max(1, round(sqrt(pixels / shape)))
    level, source = 0, _level(scene, 0)
    while source.width >= 2 * width * 1.4 and source.height >= 2 * height * 1.4 and level < 5:
        level += 1
        source = _level(scene, level)
    scale = min(source.width / width, source.height / height) * (1 - inset)
    west, top = (source.width - width * scale) * place, (source.height - height * scale) * 0.6
    image = source.resize(
        (width, height), Image.Resampling.BILINEAR, (west, top, west + width * scale, top + height * scale)
    )
    if mirrored:
        image = ImageOps.mirror(image)
    bands = image.split()
    red, green, blue = ((0, 1, 2), (1, 0, 2), (2, 1, 0), (0, 1, 2), (0, 2, 1), (1, 2, 0))[order]
    return Image.merge("RGB", (bands[red], bands[green], bands[blue]))


def _file(image: Image.Image, form: str, quality: int) -> bytes:
    match form:
        case "jpg":
            return encoded(image, "JPEG", quality=quality, progressive=image.width > 600)
        case "webp":
            return encoded(image, "WEBP", quality=quality, method=0)
        case "avif":
            return encoded(image, "AVIF", quality=60, speed=10, max_threads=1)
    # A poster of few colours, from dark to light.
    grey = image.convert("L").point([value * quality // 256 for value in range(256)])
    dark, light = image.resize((1, 1)).getpixel((0, 0)), (250, 246, 236)
    poster = Image.frombytes("P", grey.size, grey.tobytes())
    ends = tuple(zip(dark, light, strict=True))  # type: ignore[arg-type]
    last = quality - 1
    poster.putpalette([(d * (last - step) // 2 + b * step) // last for step in range(quality) for d, b in ends])
    return encoded(poster, "PNG", compress_level=4)


def _padded(data: bytes, size_bytes: int, form: str) -> bytes:
    """`data` with a comment or a private chunk, so that it has `size_bytes`, unless it is larger or cannot have any."""
    missing = size_bytes - len(data)
    if form == "png" and missing >= CHUNK_BYTES:
        kind, text = b"noSe", bytes(missing - CHUNK_BYTES)
        chunk = struct.pack(">I", len(text)) + kind + text + struct.pack(">I", zlib.crc32(text, zlib.crc32(kind)))
        return data[:-CHUNK_BYTES] + chunk + data[-CHUNK_BYTES:]
    if form != "jpg" or missing < MARKER_BYTES:
        return data
    comments = []
    while missing >= MARKER_BYTES:
        length = min(missing, MOST_COMMENT) - MARKER_BYTES
        if 0 < missing - length - MARKER_BYTES < MARKER_BYTES:
            length -= MARKER_BYTES
        comments.append(b"\xff\xfe" + struct.pack(">H", length + 2) + bytes(length))
        missing -= length + MARKER_BYTES
    return data[:-2] + b"".join(comments) + data[-2:]


@cache
def _scene(motif: str, number: int) -> str:
    """The name of a scene, which `_level` knows."""
    return f"{motif} {number}"


@cache
def _level(scene: str, level: int) -> Image.Image:
    """A scene, halved `level` times."""
    if level:
        larger = _level(scene, level - 1)
        return larger.reduce(2)
    motif, number = scene.split()
    paints: dict[str, Callable[[int], Image.Image]] = {
        "landscape": _landscape,
        "still": _still_life,
        "street": _street,
    }
    return paints[motif](int(number))


@cache
def _landscape(number: int) -> Image.Image:
    return Painter([2025, number]).landscape(WIDTH, HEIGHT)


def _still_life(number: int) -> Image.Image:
    """A thing on a plain ground: a bottle, a bowl, a box, a lamp, in turn."""
    dice = Dice(f"still life {number}")
    ground, body = _colour(dice, 190, 240), _colour(dice, 40, 190)
    image = Image.linear_gradient("L").resize((WIDTH, HEIGHT))
    shade = ImageOps.colorize(
        image, tuple(min(255, part + 15) for part in ground), tuple(part * 3 // 4 for part in ground)
    )
    draw = ImageDraw.Draw(shade)
    middle, foot = WIDTH // 2, HEIGHT - 190
    draw.ellipse((middle - 430, foot - 70, middle + 430, foot + 70), fill=tuple(part // 2 for part in ground))
    shade = shade.filter(ImageFilter.BoxBlur(24))
    draw = ImageDraw.Draw(shade)
    dark, light = tuple(part * 2 // 3 for part in body), tuple(min(255, part + 60) for part in body)
    match number % 4:
        case 0:
            draw.rounded_rectangle((middle - 190, 380, middle + 190, foot), 60, fill=body)
            draw.rectangle((middle - 70, 170, middle + 70, 420), fill=body)
            draw.rectangle((middle - 84, 150, middle + 84, 200), fill=dark)
            draw.rectangle((middle - 190, 620, middle + 190, 880), fill=light)
        case 1:
            draw.pieslice((middle - 430, foot - 760, middle + 430, foot), 0, 180, fill=body)
            draw.ellipse((middle - 430, foot - 470, middle + 430, foot - 290), fill=dark)
            draw.ellipse((middle - 380, foot - 440, middle + 380, foot - 300), fill=light)
        case 2:
            draw.polygon([(middle - 400, 480), (middle, 360), (middle, 1040), (middle - 400, 960)], fill=body)
            draw.polygon([(middle + 400, 480), (middle, 360), (middle, 1040), (middle + 400, 960)], fill=dark)
            draw.line([(middle - 400, 700), (middle, 690), (middle + 400, 700)], fill=light, width=26)
        case _:
            draw.polygon(
                [(middle - 170, 200), (middle + 170, 200), (middle + 380, 640), (middle - 380, 640)], fill=light
            )
            draw.rectangle((middle - 24, 640, middle + 24, foot - 30), fill=dark)
            draw.ellipse((middle - 220, foot - 80, middle + 220, foot + 10), fill=body)
    return _grained(shade, number)


def _street(number: int) -> Image.Image:
    """Houses with windows under a sky."""
    dice = Dice(f"street {number}")
    sky = ImageOps.colorize(
        Image.linear_gradient("L").resize((WIDTH, HEIGHT)), _colour(dice, 110, 190), (250, 236, 214)
    )
    draw = ImageDraw.Draw(sky)
    for row, base in enumerate((880, 1040, 1280)):
        west = -40
        while west < WIDTH:
            width, height = dice.number(110, 260), dice.number(300, 640) - 60 * row
            wall = tuple(part * (row + 2) // 4 for part in _colour(dice, 130, 230))
            draw.rectangle((west, base - height, west + width, HEIGHT), fill=wall)
            lit = tuple(min(255, part + 70) for part in wall)
            for x in range(west + 18, west + width - 30, 44):
                for y in range(base - height + 26, base - 20, 62):
                    draw.rectangle((x, y, x + 20, y + 32), fill=lit if dice.share() < 0.6 else (40, 44, 56))
            west += width + dice.number(0, 14)
    return _grained(sky, number)


def _grained(image: Image.Image, number: int) -> Image.Image:
    """`image` with the light and grain of a photograph, from a landscape."""
    texture = ImageOps.grayscale(_landscape(number % LANDSCAPES)).point([96 + value // 4 for value in range(256)])
    return ImageChops.overlay(image, Image.merge("RGB", (texture,) * 3))


def _colour(dice: Dice, low: int, high: int) -> tuple[int, ...]:
    return tuple(dice.number(low, high) for _ in range(3))
