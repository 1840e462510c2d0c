"""The windows that pages are shown in. Standard library only: the recording proxy's Python loads this too."""

from dataclasses import dataclass

# Chromium shrinks a window that would fill the X screen.
SCREEN_MARGIN_PIXELS = 16


@dataclass(frozen=True)
class Window:
    """The part of the page one can see, in CSS pixels, whether the page believes to be on a phone, how many pixels of
    the phone each of these believes to have in a row, and which model the phone is."""

    width: int
    height: int
    mobile: bool
    pixel_ratio: float = 1.0
    model: str = ""

    @property
    def screen(self) -> str:
        """The X screen it is shown on, as Xvfb wants it.

        Twice as wide as the window in its left half, since the pointer starts in the middle of the screen:
        over the page it would hover over a link, which changes the picture and may fetch something.
        """
        return f"{2 * (self.width + SCREEN_MARGIN_PIXELS)}x{self.height + SCREEN_MARGIN_PIXELS}x24"


# A common desktop window, and Browsertime's default.
DESKTOP = Window(1366, 768, mobile=False)
# The window of Mahimahi's recordings with a mobile user agent: a Pixel 2's in CSS pixels, but one device pixel for each
# (they hold none of the images meant for finer screens).
MOBILE = Window(412, 732, mobile=True)


def is_mobile(user_agent: str | None) -> bool:
    """Whether a browser with this user agent is on a phone."""
    return "Mobile" in (user_agent or "")


def recorded_window(user_agent: str | None, viewport: tuple[int, int] | None) -> Window:
    """The window that a page was recorded in, as far as is known; its sizes are even, as a film's encoder wants."""
    usual = MOBILE if is_mobile(user_agent) else DESKTOP
    width, height = viewport or (usual.width, usual.height)
    return Window(width + width % 2, height + height % 2, usual.mobile)
