"""Properties of figures for tests."""

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.text import Text

from analysis.figures import style

# The size of Matplotlib's exponents, as a share of the text's.
EXPONENT = 0.7


def smallest_type(figure: Figure) -> float:
    """The size of the smallest text in `figure`, in points; labels of ticks and their exponents are included."""
    # Before this, ticks have no texts.
    figure.draw_without_rendering()
    return _smallest_type(figure)


def _smallest_type(figure: Figure) -> float:
    texts = [text for text in figure.findobj(Text) if isinstance(text, Text) and text.get_visible()]
    sizes = [
        float(text.get_fontsize()) * (EXPONENT if "^" in text.get_text() else 1)
        for text in texts
        if text.get_text().strip()
    ]
    assert sizes, "the figure has no text"
    return min(sizes)


def overhang_inches(figure: Figure) -> float:
    """How far the contents of `figure` reach beyond an edge of its PNG."""
    figure.set_dpi(style.PNG_DPI)
    with mpl.rc_context(style.RC):
        figure.draw_without_rendering()
    content = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    return float(max(-content.x0, -content.y0, content.x1 - width, content.y1 - height))


def type_and_overhang(figure: Figure) -> tuple[float, float]:
    """`smallest_type` and `overhang_inches` of `figure`, which is laid out once for both: this takes the time."""
    overhang = overhang_inches(figure)
    return _smallest_type(figure), overhang
