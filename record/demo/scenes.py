"""What the demo sites' photographs show. A scene draws itself on a canvas of any size.

Like `noise`, scenes keep to arithmetic that every processor rounds alike.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw, ImageFilter

from record.demo.noise import Noise, Plane

Colours = NDArray[np.floating[Any]]
"""Rows of columns of red, green and blue from 0 to 1."""

Tone = tuple[float, float, float]


class Canvas:
    """A picture being painted, back to front. `across` and `down` go from 0 to 1 over the whole picture."""

    def __init__(self, noise: Noise, rng: np.random.Generator, width: int, height: int) -> None:
        self.noise, self.rng = noise, rng
        self.scale = width / 800
        self.aspect = height / width
        self.across: Plane = np.linspace(0, 1, width, dtype=np.float32)[None, :]
        self.down: Plane = np.linspace(0, 1, height, dtype=np.float32)[:, None]
        self.colours: Colours = np.zeros((height, width, 3), np.float32)

    @property
    def width(self) -> int:
        """In pixels, as the height is."""
        return int(self.across.shape[1])

    @property
    def height(self) -> int:
        return int(self.down.shape[0])

    def part(self, left: float = 0, top: float = 0, right: float = 1, bottom: float = 1) -> "Canvas":
        """A window on this canvas, which saves painting where nothing is."""
        part: Canvas = object.__new__(Canvas)
        part.noise, part.rng, part.scale, part.aspect = self.noise, self.rng, self.scale, self.aspect
        x, y = self.across[0], self.down[:, 0]
        columns = slice(np.searchsorted(x, left), np.searchsorted(x, right, "right"))
        rows = slice(np.searchsorted(y, top), np.searchsorted(y, bottom, "right"))
        part.across, part.down = self.across[:, columns], self.down[rows]
        part.colours = self.colours[rows, columns]
        return part

    def texture(self, zoom: float = 1.0, stretch: float = 1.0) -> Plane:
        """Noise for the whole canvas; features at zoom 1 are about a third of the picture wide."""
        return self.noise.patch(self.width, self.height, zoom * self.scale, stretch)

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * float(self.rng.random())

    def pick(self, tones: list[Tone]) -> Tone:
        return tones[int(self.rng.integers(len(tones)))]

    def gradient(self, top: Tone, bottom: Tone, end: float = 1.0) -> None:
        """Fill with a change from `top` to `bottom`, reached at height `end`."""
        share = np.clip(self.down / np.float32(end), 0, 1)[..., None]
        self.colours[:] = _colours(top) * (1 - share) + _colours(bottom) * share

    def paint(self, colours: ArrayLike, cover: Plane) -> None:
        """Lay a tone or a picture over what is there, where `cover` is 1 (opaque) to 0 (clear)."""
        self.colours += (_colours(colours) - self.colours) * np.clip(cover, 0, 1)[..., None]

    def glow(self, tone: Tone, x: float, y: float, radius: float) -> None:
        """Add the light of a source at (x, y); lengths in canvas widths and heights."""
        away = ((self.across - x) ** 2 + ((self.down - y) * self.aspect) ** 2) / np.float32(radius**2)
        self.colours += _colours(tone) * (1 / (1 + away * away * 4))[..., None]

    def shade(self, light: Plane) -> None:
        """Multiply by `light`: 1 leaves the picture as it is."""
        self.colours *= light[..., None]

    def below(self, line: Plane | float) -> Plane:
        """Where the canvas lies below `line` (a row, or a number): 1, with a soft edge of a pixel."""
        pixels = np.float32(800 * self.scale * self.aspect)
        cover: Plane = np.clip((self.down - line) * pixels + np.float32(0.5), 0, 1)
        return cover

    def clouds(self, tone: Tone, amount: float) -> None:
        cover = (self.texture(2, stretch=2) - np.float32(0.62 - amount * 0.3)) * 3
        self.paint(tone, np.clip(cover, 0, 0.9) * np.clip(1.25 - self.down, 0, 1))


def _colours(colours: ArrayLike) -> Colours:
    return np.asarray(colours, np.float32)


def _tinted(tone: ArrayLike, light: Plane) -> Colours:
    """`tone` under uneven light."""
    return _colours(tone) * light[..., None]


def _mixed(far: Tone, near: Tone, closeness: float) -> Tone:
    a, b, c = (f * (1 - closeness) + n * closeness for f, n in zip(far, near, strict=True))
    return a, b, c


SKIES: list[tuple[Tone, Tone, Tone]] = [
    # at the top, at the horizon, and of what the haze hides
    ((0.20, 0.42, 0.72), (0.74, 0.84, 0.92), (0.66, 0.76, 0.86)),
    ((0.33, 0.36, 0.58), (0.98, 0.72, 0.50), (0.78, 0.58, 0.56)),
    ((0.52, 0.60, 0.68), (0.86, 0.87, 0.86), (0.72, 0.76, 0.79)),
    ((0.12, 0.20, 0.40), (0.86, 0.52, 0.46), (0.46, 0.38, 0.50)),
    ((0.28, 0.54, 0.74), (0.96, 0.90, 0.76), (0.80, 0.80, 0.74)),
]


def _sky(canvas: Canvas, horizon: float) -> tuple[Tone, Tone, Tone]:
    """Paint one of the skies down to `horizon`; the sky."""
    sky = SKIES[int(canvas.rng.integers(len(SKIES)))]
    canvas.gradient(sky[0], sky[1], horizon)
    canvas.glow((0.5, 0.42, 0.28), canvas.between(0.15, 0.85), horizon * canvas.between(0.4, 0.95), 0.12)
    canvas.clouds((0.97, 0.95, 0.93), canvas.between(0.1, 0.6))
    return sky


def _mirror(canvas: Canvas, shore: float) -> None:
    """Turn what lies below `shore` into water that shows what stands above it."""
    row = round(shore * canvas.height)
    depth = canvas.height - row
    ripple = canvas.noise.patch(canvas.width, depth, 0.25, stretch=6)
    canvas.colours[row:] = canvas.colours[row - depth : row][::-1] * (0.5 + 0.6 * ripple)[..., None] + np.float32(0.03)


def mountains(canvas: Canvas) -> None:
    """Ranges one behind the other in haze, sometimes with a lake in front."""
    horizon = canvas.between(0.42, 0.62)
    _, _, haze = _sky(canvas, horizon)
    near = canvas.pick([(0.10, 0.17, 0.14), (0.16, 0.14, 0.16), (0.12, 0.20, 0.26), (0.20, 0.17, 0.11)])
    ranges = int(canvas.rng.integers(4, 7))
    has_lake = canvas.rng.random() < 0.5
    for number in range(1, ranges if has_lake else ranges + 1):
        closeness = number / ranges
        base = horizon - 0.04 + 0.42 * closeness * closeness
        line = base - (canvas.noise.profile(canvas.width, 2 + 3 * closeness) - 0.3) * (0.5 - 0.25 * closeness)
        slope = canvas.part(top=float(line.min()) - 0.01)
        rock = 0.5 + slope.texture(0.3 + 0.5 * closeness) * (0.4 + 0.6 * closeness) + 0.3 * (1 - closeness)
        slope.paint(_tinted(_mixed(haze, near, closeness), rock), slope.below(line))
    if has_lake:
        _mirror(canvas, canvas.between(0.70, 0.8))


def coast(canvas: Canvas) -> None:
    """The sea, a beach, and the sun's path on the water."""
    horizon = canvas.between(0.36, 0.5)
    _, glare, _ = _sky(canvas, horizon)
    water = canvas.pick([(0.10, 0.30, 0.40), (0.14, 0.24, 0.36), (0.08, 0.36, 0.40), (0.22, 0.26, 0.32)])
    sea = canvas.part(top=horizon)
    nearness = (sea.down - horizon) / np.float32(1 - horizon)
    waves = sea.texture(0.25, stretch=6) * (1 - nearness) + sea.texture(0.5, stretch=6) * nearness
    sea.colours[:] = _tinted(water, 0.3 + 1.5 * waves) + (0.16 * (1 - nearness))[..., None]
    path = np.clip(1 - np.abs(sea.across - canvas.between(0.2, 0.8)) / (0.04 + 0.2 * nearness), 0, 1)
    sea.paint(glare, path * np.clip((waves - 0.46) * 5, 0, 1))
    if canvas.rng.random() < 0.6:
        tilt = canvas.between(-0.25, 0.25)
        shore = 0.84 + tilt * (sea.across - 0.5) + 0.05 * canvas.noise.profile(canvas.width, 2)
        sea.paint((0.93, 0.95, 0.95), sea.below(shore - 0.015))
        sea.paint(_tinted((0.80, 0.70, 0.54), 0.72 + 0.5 * sea.texture(0.3)), sea.below(shore))


def city(canvas: Canvas) -> None:
    """A skyline at dusk, windows lit, over a river."""
    _, _, haze = _sky(canvas, 0.75)
    image = Image.fromarray((np.clip(canvas.colours, 0, 1) * 255).astype(np.uint8))
    draw = ImageDraw.Draw(image)
    unit = max(canvas.width // 180, 2)
    ground = round(canvas.height * 0.8)
    for closeness, highest in ((0.3, 0.62), (0.6, 0.44), (0.95, 0.26)):
        left = -unit * 4
        while left < canvas.width:
            width = unit * int(canvas.rng.integers(7, 18))
            top = ground - round(canvas.height * canvas.between(0.08, highest))
            red, green, blue = _mixed(haze, (0.10, 0.10, 0.14), closeness)
            wall = round(255 * red), round(255 * green), round(255 * blue)
            draw.rectangle((left, top, left + width - 2, canvas.height), fill=wall)
            columns = range(left + unit, left + width - unit - 1, 2 * unit)
            floors = range(top + unit, ground - unit, 2 * unit)
            lit = canvas.rng.random((len(floors), len(columns)))
            for y, lights in zip(floors, lit, strict=True):
                for x, light in zip(columns, lights, strict=True):
                    if light < 0.3 * closeness:
                        warmth = int(light * 300)
                        window = 255, 226 - warmth, 150 - warmth // 2
                        draw.rectangle((x, y, x + unit - 1, y + unit - 1), fill=window)
            left += width + unit * int(canvas.rng.integers(0, 4))
    canvas.colours = np.asarray(image.filter(ImageFilter.GaussianBlur(unit / 5)), np.float32) / 255
    canvas.shade(0.8 + 0.4 * canvas.texture(0.3))
    _mirror(canvas, 0.8)


def forest(canvas: Canvas) -> None:
    """Trunks in mist, the nearest darkest."""
    light = canvas.pick([(0.82, 0.88, 0.74), (0.90, 0.84, 0.66), (0.76, 0.84, 0.88)])
    canvas.gradient(light, (light[0] * 0.6, light[1] * 0.66, light[2] * 0.5))
    canvas.glow((0.3, 0.3, 0.2), canvas.between(0.3, 0.7), 0.3, 0.25)
    bark = canvas.pick([(0.12, 0.13, 0.10), (0.17, 0.12, 0.09), (0.10, 0.14, 0.15)])
    for layer in range(1, 5):
        closeness = layer / 4
        crown = canvas.part(bottom=0.75)
        leaves = np.clip((crown.texture(0.5 + closeness) - 0.5 + 0.8 * (0.35 - crown.down)) * 6, 0, 0.85)
        crown.paint(_tinted(_mixed(light, (0.16, 0.30, 0.12), closeness), 0.4 + 1.2 * crown.texture(0.25)), leaves)
        for _ in range(11 - 2 * layer):
            radius = canvas.between(0.004, 0.011) * (0.5 + 2 * closeness * closeness)
            x = canvas.between(0, 1)
            trunk = canvas.part(left=x - radius - 0.04, right=x + radius + 0.04)
            lean = (trunk.down - 0.5) * canvas.between(-0.03, 0.03) + 0.01 * canvas.noise.profile(canvas.height, 2).T
            from_axis = np.abs(trunk.across - x - lean) / np.float32(radius)
            ridges = trunk.texture(0.25) * 0.6 + 0.95 - 0.45 * from_axis
            cover = (1 - from_axis) * np.float32(radius * canvas.width)
            trunk.paint(_tinted(_mixed(light, bark, closeness), ridges), cover)
    ground = canvas.part(top=0.84)
    edge = ground.below(0.86 + 0.08 * canvas.noise.profile(canvas.width, 3))
    ground.paint(_tinted((0.20, 0.27, 0.11), 0.2 + 1.6 * ground.texture(0.25)), edge)


def fields(canvas: Canvas) -> None:
    """Farmland from the air: fields of several crops, and a river through them."""
    crops = _colours(
        [
            (0.42, 0.50, 0.22),
            (0.62, 0.58, 0.30),
            (0.30, 0.42, 0.20),
            (0.72, 0.64, 0.38),
            (0.50, 0.40, 0.27),
            (0.36, 0.47, 0.30),
        ]
    )
    tilt = canvas.between(-0.6, 0.6)
    down = canvas.down * np.float32(canvas.aspect)
    bend = canvas.texture(4) * np.float32(0.25)
    u = (canvas.across + tilt * down + bend) * np.float32(canvas.between(5, 9))
    v = (down - tilt * canvas.across + bend) * np.float32(canvas.between(4, 7))
    column = np.floor(u).astype(np.int32)
    v += (column % 3) * np.float32(0.37)
    row = np.floor(v).astype(np.int32)
    scramble = (column * 7919 + row * 104_729 + (column * row) % 13) & 0xFFFF
    canvas.colours = crops[scramble % len(crops)]
    furrows = np.abs(((u if tilt > 0 else v) * 24) % 1 - np.float32(0.5)) * (scramble % 3).astype(np.float32)
    canvas.shade(0.6 + 0.16 * furrows + 0.5 * canvas.texture(0.25))
    hedge = np.minimum(np.minimum(u - column, column + 1 - u), np.minimum(v - row, row + 1 - v))
    canvas.paint((0.17, 0.24, 0.12), np.clip(1.6 - hedge * 40, 0, 0.85) * np.clip(canvas.texture(0.25) * 3 - 0.6, 0, 1))
    middle = canvas.between(0.25, 0.75) + 0.5 * (canvas.noise.profile(canvas.height, 1.5).T - 0.5)
    canvas.paint((0.30, 0.42, 0.46), (0.022 - np.abs(canvas.across - middle)) * 120)


def lights(canvas: Canvas) -> None:
    """A street at night, far out of focus."""
    canvas.gradient((0.05, 0.06, 0.12), canvas.pick([(0.20, 0.10, 0.12), (0.06, 0.14, 0.18), (0.16, 0.13, 0.06)]))
    lamps = [(0.95, 0.62, 0.25), (0.90, 0.30, 0.22), (0.35, 0.65, 0.80), (0.95, 0.85, 0.60), (0.55, 0.80, 0.45)]
    for _ in range(34):
        radius = canvas.between(0.015, 0.07)
        x, y = canvas.between(0, 1), canvas.between(0.15, 0.9)
        reach = radius / canvas.aspect
        lamp = canvas.part(x - radius, y - reach, x + radius, y + reach)
        away = ((lamp.across - x) ** 2 + ((lamp.down - y) * lamp.aspect) ** 2) / np.float32(radius**2)
        disc = np.clip((1 - away) * 12, 0, 1) * (0.65 + 0.35 * away) * np.float32(canvas.between(0.12, 0.5))
        lamp.colours += _tinted(canvas.pick(lamps), disc)
    canvas.shade(0.7 + 0.6 * canvas.texture(0.25))


def still_life(canvas: Canvas) -> None:
    """Fruit on a table, lit from the left."""
    canvas.gradient(canvas.pick([(0.30, 0.31, 0.30), (0.48, 0.44, 0.38), (0.20, 0.24, 0.28)]), (0.16, 0.15, 0.15))
    canvas.shade(0.6 + 0.8 * canvas.texture(2))
    table = canvas.part(top=canvas.between(0.55, 0.64))
    table.colours[:] = _tinted((0.50, 0.34, 0.21), 0.3 + 1.2 * table.texture(0.5, stretch=6))
    skins = [(0.80, 0.20, 0.12), (0.90, 0.55, 0.12), (0.56, 0.66, 0.18), (0.85, 0.72, 0.25), (0.36, 0.13, 0.25)]
    for foot, x in sorted((canvas.between(0.62, 0.8), canvas.between(0.12, 0.88)) for _ in range(6)):
        radius = canvas.between(0.07, 0.13)
        reach = radius / canvas.aspect
        place = canvas.part(x - 1.2 * radius, foot - 2 * reach, x + 2.6 * radius, foot + reach)
        dx = (place.across - x) / np.float32(radius)
        dy = (place.down - foot) / np.float32(reach) + np.float32(0.7)
        shadow = np.clip(1.2 - (dx - 0.6) ** 2 * 0.5 - (dy - 0.8) ** 2 * 9, 0, 1)
        place.paint((0.06, 0.05, 0.05), shadow * 0.7)
        away = dx * dx + dy * dy
        facing = np.sqrt(np.clip(1 - away, 0, 1))
        light = np.clip(0.62 * facing - 0.5 * dx - 0.5 * dy, 0, 1.4) * 0.9 + 0.16
        gloss = np.clip(1 - ((dx + 0.38) ** 2 + (dy + 0.42) ** 2) * 14, 0, 1) ** 2
        skin = _tinted(canvas.pick(skins), light * (0.75 + 0.5 * place.texture(0.25))) + 0.55 * gloss[..., None]
        place.paint(skin, (1 - away) * np.float32(radius * canvas.width * 0.5))


def portrait(canvas: Canvas) -> None:
    """Head and shoulders before a plain wall."""
    wall = canvas.pick([(0.62, 0.70, 0.74), (0.74, 0.66, 0.58), (0.55, 0.62, 0.52), (0.66, 0.56, 0.60)])
    skin = canvas.pick([(0.92, 0.76, 0.66), (0.78, 0.58, 0.44), (0.50, 0.34, 0.25), (0.38, 0.26, 0.20)])
    hair = canvas.pick([(0.12, 0.09, 0.08), (0.34, 0.22, 0.13), (0.62, 0.48, 0.28), (0.55, 0.55, 0.56)])
    cloth = canvas.pick([(0.18, 0.26, 0.42), (0.52, 0.18, 0.20), (0.22, 0.36, 0.30), (0.86, 0.85, 0.82)])
    x = canvas.between(0.46, 0.54)

    def oval(tone: Tone, x: float, y: float, rx: float, ry: float, softness: float = 0.04) -> None:
        away = ((canvas.across - x) / np.float32(rx)) ** 2 + ((canvas.down - y) / np.float32(ry)) ** 2
        light = (1.08 - (canvas.across - x + 0.06) * np.float32(0.25 / rx)) * (0.85 + 0.3 * canvas.texture(0.5))
        canvas.paint(_tinted(tone, light), (1 - away) / np.float32(softness))

    canvas.gradient(wall, _mixed(wall, (0, 0, 0), 0.3))
    if canvas.rng.random() < 0.5:
        oval(hair, x, 0.46, 0.25, 0.34)
    oval(cloth, 0.5, 1.08, 0.44, 0.36)
    oval(_mixed(skin, (0, 0, 0), 0.2), x, 0.70, 0.09, 0.15)
    oval(hair, x, 0.37, 0.205, 0.245)
    oval(skin, x, 0.45, 0.165, 0.225)
    oval(hair, x + canvas.between(-0.05, 0.05), canvas.between(0.27, 0.31), 0.17, 0.09)
    for eye in (x - 0.062, x + 0.062):
        oval((0.14, 0.10, 0.09), eye, 0.445, 0.018, 0.013, 0.5)
        oval(hair, eye, 0.412, 0.034, 0.009, 0.6)
    oval(_mixed(skin, (0.4, 0.1, 0.1), 0.2), x, 0.50, 0.018, 0.03, 0.9)
    oval(_mixed(skin, (0.5, 0.1, 0.1), 0.45), x, 0.565, 0.05, 0.014, 0.6)


Scene = Callable[[Canvas], None]

LANDSCAPES: tuple[Scene, ...] = (mountains, coast, city, forest, fields, lights, still_life)
