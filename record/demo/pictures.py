"""The photographer of a demo site: scenes as JPEG files that compress like photographs."""

import numpy as np
from PIL import Image

from record.demo.graphics import encoded
from record.demo.noise import Noise
from record.demo.scenes import LANDSCAPES, Canvas, Scene, portrait


class Camera:
    """Takes the pictures of one site; the same seed takes the same ones in the same order."""

    def __init__(self, seed: list[int]) -> None:
        self._rng = np.random.default_rng(seed)
        self._noise = Noise(seed)
        self._taken = 0

    def photograph(self, width: int, height: int, quality: int = 84, scene: Scene | None = None) -> bytes:
        """A JPEG of `scene`, or of the next kind of landscape; sizes in pixels."""
        image = self.view(width, height, scene)
        return encoded(image, "JPEG", quality=quality, progressive=True, optimize=True)

    def portrait(self, size: int) -> bytes:
        """A square JPEG of somebody."""
        return self.photograph(size, size, scene=portrait)

    def view(self, width: int, height: int, scene: Scene | None = None) -> Image.Image:
        """The same, to be worked on."""
        if scene is None:
            scene = LANDSCAPES[self._taken % len(LANDSCAPES)]
            self._taken += 1
        canvas = Canvas(self._noise, self._rng, width, height)
        scene(canvas)
        # The grain of a sensor; without it, JPEG makes files a third of a photograph's size.
        grain = (self._noise.patch(width, height, 0.02) - np.float32(0.5)) * np.float32(0.08)
        pixels = np.clip(canvas.colours + grain[..., None], 0, 1) * np.float32(255)
        return Image.fromarray(pixels.astype(np.uint8))
