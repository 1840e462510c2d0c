"""Any recording or site folder gives a site that can be stored and served, or one clear error."""

import pytest
from support.importer_fuzz import FORMS, fuzz

EXAMPLES = 60


@pytest.mark.slow
def test_broken_recordings_and_sites_of_every_form_are_imported_or_refused() -> None:
    for form in FORMS:
        fuzz(form, EXAMPLES)()
