"""Reports of campaigns in the packaged browser."""

from pathlib import Path

import pytest

from analysis import hypotheses
from analysis.report.write import StudySection, write_report
from support.axe import accessible
from support.browser import Browser
from support.figure_layout import only_lay_out


def accessible_report(browser: Browser, folder: Path, section: StudySection) -> list[str]:
    """What axe-core finds fault with in the report of the campaign in `folder`, which has this `section`
    (`support.axe`). Its pictures are white, since axe-core looks at none."""
    with pytest.MonkeyPatch.context() as patch:
        only_lay_out(patch)
        into = write_report(folder, section, hypotheses.load())
    return accessible(browser, (into / "index.html").as_uri())
