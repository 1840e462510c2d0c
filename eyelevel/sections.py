"""The sections of a campaign's report in addition to those that every report has."""

from pathlib import Path

from analysis.report.section import Section
from dataset.table import USER_STUDY, require_document


def sections_of(folder: Path) -> list[Section]:
    """The sections of the campaign in `folder`: of its study and of its user study, as far as there are results.

    Raises EyelevelError.
    """
    sections = []
    if (document := require_document(folder)).study_name:
        from studies import study_of

        if study := study_of(document):
            sections.append(study.section(folder))
    if (folder / USER_STUDY).is_dir():
        from analysis.user_study.section import section

        sections.append(section(folder))
    return [section for section in sections if section]
