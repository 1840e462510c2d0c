"""Reports of campaigns in the packaged browser."""

from pathlib import Path

import pytest

from analysis import hypotheses
from analysis.report.write import write_report
from eyelevel.sections import sections_of
from support.axe import accessible
from support.browser import Browser
from support.figure_layout import only_lay_out


def accessible_report(browser: Browser, folder: Path) -> list[str]:
    """The faults that axe-core finds in the report of the campaign in `folder` (`support.axe`). Its pictures are white,
    since axe-core looks at none."""
    with pytest.MonkeyPatch.context() as patch:
        only_lay_out(patch)
        into = write_report(folder, sections_of(folder), hypotheses.load())
    return accessible(browser, (into / "index.html").as_uri())
