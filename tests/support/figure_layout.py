"""Reports without the files of their figures, which take most of a report's time."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from analysis.figures import style


def only_lay_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are drawn and laid out as ever; what would be their PNG is empty."""

    def save(figure: Figure, folder: Path, name: str) -> None:
        figure.draw_without_rendering()
        (folder / f"{name}.png").touch()

    monkeypatch.setattr(style, "save", save)
