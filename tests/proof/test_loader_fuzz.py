"""quic_server's reader of response folders, under AddressSanitizer, UndefinedBehaviorSanitizer and libFuzzer.

Each mutated folder is loaded, or refused in one line, and requests to it are answered.
"""

from pathlib import Path

from support.loader_fuzz import build_loader_fuzz, fuzz_loader

INPUTS = 200_000


def test_mutated_response_folders_are_loaded_or_refused(tmp_path: Path) -> None:
    counts = fuzz_loader(build_loader_fuzz(), tmp_path, INPUTS)
    assert counts["number_of_executed_units"] >= INPUTS
    # The fuzzer gets past the first checks.
    assert counts["new_units_added"] > 100
