"""Tests of analyses have tables as reports have them."""

from collections.abc import Iterator

import pytest

from analysis.runs import plain_texts


@pytest.fixture(scope="module", autouse=True)
def texts_as_in_reports() -> Iterator[None]:
    """New tables keep their texts as Python's."""
    with plain_texts():
        yield
