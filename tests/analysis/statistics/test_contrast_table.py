"""Corrections of p values agree with those of statsmodels."""

import gc
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from analysis.statistics.contrast_table import holm


@pytest.fixture(autouse=True, scope="module")
def quick_collections() -> Iterator[None]:
    """Freeze all existing objects: statsmodels collects garbage at every call, which would visit all of them."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.slow
@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.integers(0, 5))
@settings(max_examples=20)
def test_holms_is_that_of_statsmodels_and_passes_over_what_is_unknown(p_values: list[float], unknown: int) -> None:
    expected = multipletests(p_values, method="holm")[1]
    result = holm(np.array([*p_values, *[np.nan] * unknown]))
    np.testing.assert_allclose(result[: len(p_values)], expected)
    assert np.isnan(result[len(p_values) :]).all()


def test_no_p_values_at_all() -> None:
    assert holm(np.array([])).size == 0
