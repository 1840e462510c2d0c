"""Makes reports without files of figures, which take most of a report's time."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure
from PIL import Image

from analysis.figures import style
from analysis.report.section import ReportFigure, svg_url

# A white picture of a width and a height.
WHITE = '<svg xmlns="http://www.w3.org/2000/svg" width="{}" height="{}"/>'


def only_lay_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw and lay out figures as usual, but write a white PNG of the right size, and no PDF."""

    def save(figure: Figure, folder: Path, name: str) -> str:
        figure.draw_without_rendering()
        width, height = (round(inches * style.PNG_DPI) for inches in figure.get_size_inches())
        Image.new("1", (width, height), 1).save(folder / f"{name}.png")
        return WHITE.format(width, height)

    monkeypatch.setattr(style, "save", save)


def draw_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw no figures: write white PNGs and no PDFs. For tests of everything around figures."""

    def write(figure: ReportFigure, folder: Path) -> str:  # processes of a pool find it by this name
        Image.new("1", (1120, 480), 1).save(folder / f"{figure.name}.png")
        return svg_url(WHITE.format(1120, 480))

    monkeypatch.setattr(ReportFigure, "write", write)
