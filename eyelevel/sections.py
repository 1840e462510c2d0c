"""Which sections a report has besides those of every campaign."""

from pathlib import Path

from analysis.report.section import Section
from dataset.table import USER_STUDY, require_document
from studies import study_of


def sections_of(folder: Path) -> list[Section]:
    """The sections of the campaign in `folder`: that of its study, and that of its user study, as far as there is
    anything to show. Raises EyelevelError."""
    study = study_of(require_document(folder))
    sections = [study.section(folder)] if study else []
    if (folder / USER_STUDY).is_dir():
        from analysis.user_study.section import section

        sections.append(section(folder))
    return [section for section in sections if section]
