"""Reports without the files of their figures, which take most of a report's time."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure
from PIL import Image

from analysis.figures import style
from analysis.report.section import ReportFigure


def only_lay_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are drawn and laid out as ever; their PNG is white, as large as ever, and there is no PDF."""

    def save(figure: Figure, folder: Path, name: str) -> None:
        figure.draw_without_rendering()
        width, height = (round(inches * style.PNG_DPI) for inches in figure.get_size_inches())
        Image.new("1", (width, height), 1).save(folder / f"{name}.png")

    monkeypatch.setattr(style, "save", save)


def draw_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what is around figures: none is drawn, its PNG is white, and there is no PDF."""

    def write(figure: ReportFigure, folder: Path) -> None:  # a process of a pool finds it by this name
        Image.new("1", (1120, 480), 1).save(folder / f"{figure.name}.png")

    monkeypatch.setattr(ReportFigure, "write", write)
