"""The windows in which pages are shown. Standard library only: the recording proxy's Python loads this too."""

from dataclasses import dataclass

# Chromium shrinks a window that would fill the X screen.
SCREEN_MARGIN_PIXELS = 16


@dataclass(frozen=True)
class Window:
    """The visible part of a page, in CSS pixels.

    `mobile`: whether the browser presents itself to the page as a phone's. `pixel_ratio`: how many device pixels the
    phone has for each CSS pixel. `model`: the phone's model.
    """

    width: int
    height: int
    mobile: bool
    pixel_ratio: float = 1.0
    model: str = ""

    @property
    def screen(self) -> str:
        """The X screen for the window, in Xvfb's format.

        The window fills the left half of the screen. The pointer starts in the middle of the screen, so it is not over
        the page: there it could hover over a link, which changes the picture and may send requests.
        """
        return f"{2 * (self.width + SCREEN_MARGIN_PIXELS)}x{self.height + SCREEN_MARGIN_PIXELS}x24"


# A common desktop window, and Browsertime's default.
DESKTOP = Window(1366, 768, mobile=False)
# The window of Mahimahi's recordings with a mobile user agent: a Pixel 2's in CSS pixels, but with one device pixel for
# each (the recordings contain no images for finer screens).
MOBILE = Window(412, 732, mobile=True)


def is_mobile(user_agent: str | None) -> bool:
    """Whether a browser with this user agent is on a phone."""
    return "Mobile" in (user_agent or "")


def recorded_window(user_agent: str | None, viewport: tuple[int, int] | None) -> Window:
    """The window in which a page was recorded, as far as known; its dimensions are even, as a film's encoder
    requires."""
    usual = MOBILE if is_mobile(user_agent) else DESKTOP
    width, height = viewport or (usual.width, usual.height)
    return Window(width + width % 2, height + height % 2, usual.mobile)
