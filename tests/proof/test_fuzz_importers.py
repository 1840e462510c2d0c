"""Each importer, and thousands of broken recordings."""

import pytest
from support.importer_fuzz import FORMATS, fuzz


@pytest.mark.parametrize("form", FORMATS)
def test_broken_recordings_are_imported_or_refused(form: str) -> None:
    fuzz(form, 3000)()
