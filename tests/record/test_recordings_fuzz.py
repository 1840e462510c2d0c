"""Whatever is in a recording, importing it gives a site that can be stored and served, or one clear error."""

from support.importer_fuzz import FORMATS, fuzz

EXAMPLES = 60


def test_broken_recordings_of_every_format_are_imported_or_refused() -> None:
    for form in FORMATS:
        fuzz(form, EXAMPLES)()
