"""Everything in a recording is imported unchanged, octet for octet, from each format."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.generated_recordings import FORMATS, LETTERS_OF, Generated, faults_of, imported_site, recordings


@pytest.mark.parametrize("form", FORMATS)
def test_every_exchange_that_a_format_can_hold_is_imported_as_it_was(form: str) -> None:
    @settings(max_examples=30)
    @given(recordings(LETTERS_OF[form]), st.integers(0, 99))
    def imported_whole(recording: list[Generated], chance: int) -> None:
        with tempfile.TemporaryDirectory(prefix="generated-") as folder:
            site = imported_site(form, recording, Path(folder), chance)
            assert faults_of(form, recording, site) == []

    imported_whole()
