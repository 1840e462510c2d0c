"""Pictures with the sizes, in pixels and bytes, of pictures on real pages; a film's metrics depend on no other
property.

They are computed only with arithmetic that IEEE 754 rounds exactly, without sines or powers: numpy's results for those
differ between processors, and the pictures must be the same everywhere.
"""

import io
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

RGB = Sequence[int]
Plane = NDArray[np.float32]

TILE_PIXELS = 256
# Features of these sizes in pixels, each fainter than the one before, make a rough surface, like clouds or rock.
FEATURES_PIXELS = (128, 64, 32, 16, 8, 4, 2)
FADING = 1.6
# The grain of a camera's sensor; without it, JPEG files would have a third of the size of real photographs.
GRAIN = 0.025
# A picture is computed so many rows at a time.
ROWS = 16


class Painter:
    """Paints the pictures of one site; the same seed gives the same pictures in the same order."""

    def __init__(self, seed: list[int]) -> None:
        self._rng = np.random.default_rng(seed)

    def photograph(self, width: int, height: int, quality: int = 85) -> bytes:
        """A JPEG of a landscape: hills under a sky. Sizes are in pixels."""
        return encoded(self.landscape(width, height), "JPEG", quality=quality, progressive=True, optimize=True)

    def banner(self, width: int, height: int, claim: str, ink: RGB) -> bytes:
        """An advertisement as a JPEG: a photograph with a panel that shows `claim`."""
        image = self.landscape(width, height)
        draw = ImageDraw.Draw(image)
        size = min(height / 4, width / 20)
        draw.rectangle((0, height - 3 * size, width, height), fill=tuple(ink))
        draw.text((size, height - 1.5 * size), claim, font=ImageFont.load_default(size), fill="white", anchor="lm")
        return encoded(image, "JPEG", quality=88, optimize=True)

    def map_tile(self) -> bytes:
        """A square PNG of a street map: blocks between roads."""
        image = Image.new("P", (TILE_PIXELS, TILE_PIXELS), 0)
        image.putpalette([241, 237, 228, 221, 214, 200, 255, 255, 255, 207, 229, 184])
        draw = ImageDraw.Draw(image)
        for x, y, width, height in self._rng.integers((0, 0, 6, 6), (TILE_PIXELS, TILE_PIXELS, 30, 30), (150, 4)):
            draw.rectangle((x, y, x + width, y + height), fill=1 + 2 * int(width * height > 500))
        for start, end in self._rng.integers(-TILE_PIXELS, 2 * TILE_PIXELS, (12, 2, 2)):
            draw.line((*start, *end), fill=2, width=6)
        return encoded(image, "PNG", optimize=True)

    def texture(self, ink: RGB) -> bytes:
        """A small PNG, to be repeated, of coloured cloth: the background of a bar."""
        threads = self._rng.integers(-4, 5, (16, 16, 1))
        pixels = np.clip(np.asarray(ink) + threads, 0, 255).astype(np.uint8)
        return encoded(Image.fromarray(pixels), "PNG", optimize=True)

    def landscape(self, width: int, height: int) -> Image.Image:
        """Hills under a sky. Sizes are in pixels."""
        sky = self._rng.uniform((0.4, 0.5, 0.6), (0.8, 0.8, 0.95))
        land = self._rng.uniform((0.15, 0.2, 0.1), (0.5, 0.4, 0.3))
        down = np.linspace(0, 1, height, dtype=np.float32)[:, None]
        texture = self._noise(width, height)
        # The hills' outline is a row of noise.
        hills = np.clip((down - 0.55 - self._noise(width, 1) * np.float32(0.4)) * height, 0, 1)
        grain = self._rng.uniform(-GRAIN, GRAIN, (height, width))
        pixels = np.empty((height, width, 3), np.uint8)
        # Small parts of one colour stay in the processor's cache.
        for top in range(0, height, ROWS):
            part = slice(top, top + ROWS)
            glow, rock = texture[part] * np.float32(0.4), texture[part] * np.float32(0.6)
            for colour in range(3):
                light = sky[colour] * (1 - down[part] / 2) + glow
                shade = light + (land[colour] + rock - light) * hills[part] + grain[part]
                pixels[part, :, colour] = np.clip(shade, 0, 1) * 255
        return Image.fromarray(pixels)

    def _noise(self, width: int, height: int) -> Plane:
        """Fractal noise around 0 in `height` rows of `width`."""
        sheet: Plane = np.zeros((height, width), np.float32)
        weight = 1.0
        for feature in FEATURES_PIXELS:
            grid = self._rng.random((height // feature + 2, width // feature + 2), np.float32) - np.float32(0.5)
            sheet += np.asarray(Image.fromarray(grid).resize((width, height), Image.Resampling.BICUBIC)) * weight
            weight /= FADING
        return sheet


def logo(text: str, ink: RGB, height: int = 48) -> bytes:
    """A PNG of a disc and a name on a transparent background."""
    font = ImageFont.load_default(height * 0.6)
    image = Image.new("RGBA", (round(height * 1.3 + font.getlength(text)), height), (*ink, 0))
    draw = ImageDraw.Draw(image)
    draw.ellipse((2, 2, height - 2, height - 2), fill=(*ink, 255))
    draw.text((height * 1.2, height / 2), text, font=font, fill=(*ink, 255), anchor="lm")
    return encoded(image, "PNG", optimize=True)


def icon(letter: str, ink: RGB) -> bytes:
    """A favicon with one letter, in the two usual sizes."""
    image = Image.new("RGBA", (64, 64), (*ink, 255))
    ImageDraw.Draw(image).text((32, 32), letter, font=ImageFont.load_default(46), fill="white", anchor="mm")
    return encoded(image, "ICO", sizes=[(16, 16), (32, 32)])


def pixel() -> bytes:
    """A transparent GIF of one pixel, as used to count visits."""
    return encoded(Image.new("P", (1, 1)), "GIF", transparency=0)


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    """The picture as a file of type `kind`."""
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()
