"""Makes reports in this process and without files of figures, which take most of a report's time."""

import pickle
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from PIL import Image

from analysis.figures import style
from analysis.report import write as report
from analysis.report.section import ReportFigure, svg_url

# A white picture of a width and a height.
WHITE = '<svg xmlns="http://www.w3.org/2000/svg" width="{}" height="{}"/>'


class InProcess(Executor):
    """Runs each job in this process at once; jobs and results are pickled, as if they went to a process of a pool."""

    def submit(self, job: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        done: Future[Any] = Future()
        job, arguments, named = pickle.loads(pickle.dumps((job, arguments, named)))
        done.set_result(pickle.loads(pickle.dumps(job(*arguments, **named))))
        return done


def write_white_figures(monkeypatch: pytest.MonkeyPatch, *, laid_out: bool = True) -> None:
    """Draw figures as usual, but write a white PNG of the right size, and an empty PDF. Without `laid_out`, the layout,
    which takes half of the time and changes no size, is left out, too."""

    def save(figure: Figure, folder: Path, name: str) -> str:
        if laid_out:
            figure.draw_without_rendering()
        width, height = (int(inches * style.PNG_DPI) for inches in figure.get_size_inches())
        Image.new("1", (width, height), 1).save(folder / f"{name}.png")
        (folder / f"{name}.pdf").touch()
        return WHITE.format(width, height)

    monkeypatch.setattr(style, "save", save)
    in_this_process(monkeypatch)


def draw_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw no figures: write white PNGs and no PDFs. For tests of everything around figures."""

    def write(figure: ReportFigure, folder: Path) -> str:  # a job's pickle names it so
        Image.new("1", (1120, 480), 1).save(folder / f"{figure.name}.png")
        return svg_url(WHITE.format(1120, 480))

    monkeypatch.setattr(ReportFigure, "write", write)
    in_this_process(monkeypatch)


def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no processes for reports: each takes a second of processor time to fill its caches, and the tests that read
    whole reports have them."""
    monkeypatch.setattr(report, "workers", lambda: nullcontext(InProcess()))
