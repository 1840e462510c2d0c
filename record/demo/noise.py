"""Fractal noise: the texture of clouds, water, rock and leaves in the demo sites' pictures."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Plane = NDArray[np.floating[Any]]
"""A picture's worth of numbers: rows of columns."""


class Noise:
    """Sheets of fractal noise from which pictures cut their textures.

    Only arithmetic that IEEE 754 rounds exactly goes into it, no sine or power: numpy computes those
    differently from one processor to the next, and the pictures must be the same everywhere.
    """

    WIDTH, HEIGHT = 1400, 700
    ZOOMS = (0.015625, 0.25, 0.5, 1.0, 2.0, 4.0)
    STRETCHES = (1, 6)

    # Each octave is this much fainter than the one before: a rough surface, as of rock or grass.
    FADING = 1.55

    def __init__(self, seed: list[int]) -> None:
        self._seed = seed
        self._rng = np.random.default_rng(seed)
        self._sheets: dict[tuple[float, int], Plane] = {}

    def patch(self, width: int, height: int, zoom: float = 1.0, stretch: float = 1.0) -> Plane:
        """Noise between 0 and 1 around 0.5, `height` rows of `width`, from a random place of a sheet.

        The largest features are about `zoom` times 125 pixels high, and wider by `stretch`; both are
        taken to the nearest there is.
        """
        sheet = self._sheet(_nearest(zoom, self.ZOOMS), _nearest(stretch, self.STRETCHES))
        left = int(self._rng.integers(0, self.WIDTH - width + 1))
        top = int(self._rng.integers(0, self.HEIGHT - height + 1))
        return sheet[top : top + height, left : left + width]

    def profile(self, width: int, hills: float) -> Plane:
        """A line of noise like that of a patch, one row of `width`, with about so many hills in it."""
        line = np.full((1, width), 0.5, np.float32)
        points, weight = hills * 2, 0.5
        while points < width:
            heights = Image.fromarray(self._rng.random((1, round(points) + 1), np.float32) - np.float32(0.5))
            line += np.asarray(heights.resize((width, 1), Image.Resampling.BICUBIC)) * np.float32(weight)
            points, weight = points * 2, weight / 2.1
        return line

    def _sheet(self, zoom: float, stretch: float) -> Plane:
        key = (zoom, int(stretch))
        if key not in self._sheets:
            self._sheets[key] = self._make_sheet(*key)
        return self._sheets[key]

    def _make_sheet(self, zoom: float, stretch: int) -> Plane:
        rng = np.random.default_rng([*self._seed, int(zoom * 64), stretch])
        size = (self.WIDTH, self.HEIGHT)
        sheet = np.zeros((self.HEIGHT, self.WIDTH), np.float32)
        feature, weight = 125 * zoom, 1.0
        while feature >= 1:
            rows = max(round(self.HEIGHT / feature), 2)
            columns = max(round(self.WIDTH / (feature * stretch)), 2)
            grid = Image.fromarray(rng.random((rows, columns), np.float32) - np.float32(0.5))
            sheet += np.asarray(grid.resize(size, Image.Resampling.BICUBIC)) * np.float32(weight)
            feature, weight = feature / 2, weight / self.FADING
        result: Plane = np.clip(sheet * np.float32(0.5) + np.float32(0.5), 0, 1)
        return result


def _nearest(wanted: float, offered: tuple[float, ...]) -> float:
    """The one of `offered` with the smallest ratio to `wanted`."""
    return min(offered, key=lambda one: max(one / wanted, wanted / one))
