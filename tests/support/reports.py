"""Reports of campaigns in the packaged browser."""

from pathlib import Path

from analysis import hypotheses
from analysis.report.write import StudySection, write_report
from support.axe import accessible
from support.browser import Browser


def accessible_report(browser: Browser, folder: Path, section: StudySection) -> list[str]:
    """What axe-core finds fault with in the report of the campaign in `folder`, which has this `section`
    (`support.axe`)."""
    into = write_report(folder, [section], hypotheses.load())
    return accessible(browser, (into / "index.html").as_uri())
