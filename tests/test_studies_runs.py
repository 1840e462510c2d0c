"""Studies that keep a folder of each run: attempts are kept, made again, placed, and made only once."""

import json
from pathlib import Path

import pytest

from base.errors import EyelevelError
from measure.campaign.attempt import Circumstances
from measure.campaign.block import REPLAY_FAILURES_IN_A_ROW
from measure.campaign.plan import Run
from record.generated import generated_exchange
from record.site import Recording, write_site
from studies import runs as engine
from studies.runs import (
    REJECTED,
    REPEATS,
    RUN,
    Judged,
    Maker,
    Setting,
    Study,
    Watch,
    make_runs,
    rejected_reasons,
    runs_of,
)
from tuning import protocols
from tuning.networks import Network

OF = Run("page", "near", "quic", 1)


class Attempts:
    """Makes attempts that leave a file, with verdicts from a list; the list says how many there may be."""

    def __init__(self, *reasons: str) -> None:
        self.reasons = list(reasons)

    def __call__(self, setting: Setting, seed: int, circumstances: Circumstances, folder: Path) -> Judged:
        (folder / "left").write_text(setting.protocol.name)
        return Judged(self.reasons.pop(0), document={"started_at": "now"})


@pytest.fixture(autouse=True)
def quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """No canaries: they load a page, and nothing is measured here."""
    monkeypatch.setattr(engine, "Slot", lambda: QuietSlot())


class QuietSlot:
    def circumstances(self, block: int, warn: object) -> Circumstances:
        return Circumstances(block, "here")


def study_in(folder: Path, attempts: Maker, runs: int = 1) -> Study:
    exchange = generated_exchange("https://page.example/", "text/html", b"<!doctype html>", "192.0.2.1")
    site = write_site(Recording("https://page.example/", (exchange,), {"name": "eyelevel test"}), folder / "page")
    chosen = {"quic": protocols.load()["quic"]}
    return Study(
        "tries", folder / "results", {"page": site}, {"near": Network("near", min_rtt_ms=1)}, chosen, runs, 1, attempts
    )


def watched(study: Study) -> tuple[list[Run], list[bool]]:
    """Make `study`; returns the runs that were given up, and whether each attempt counted."""
    ends: list[bool] = []
    given_up = make_runs(study, Watch(lambda *_: None, lambda _, judged, last: ends.append(judged.valid), print))
    return given_up, ends


def document_in(folder: Path) -> dict[str, object]:
    told: dict[str, object] = json.loads((folder / RUN).read_text())
    return told


def test_an_attempt_that_does_not_count_is_kept_and_made_again_with_other_losses(tmp_path: Path) -> None:
    study = study_in(tmp_path, Attempts("ping: wrong", ""))
    assert watched(study) == ([], [False, True])
    folder = study.folder(OF)
    rejected = folder.parent / REJECTED / "1-1"
    assert (folder / "left").read_text() == (rejected / "left").read_text() == "quic"
    assert document_in(folder)["seed"] != document_in(rejected)["seed"]
    assert document_in(folder)["started_at"] == "now"
    assert runs_of(study.campaign, "tries") == [(OF, folder)]
    assert rejected_reasons(study.campaign, "tries") == ["ping: wrong"]


def test_a_run_that_never_counts_is_given_up_and_tried_again_when_asked_again(tmp_path: Path) -> None:
    study = study_in(tmp_path, Attempts(*["ping: wrong"] * (REPEATS + 1)))
    assert watched(study) == ([OF], [False] * (REPEATS + 1))
    assert runs_of(study.campaign, "tries") == []
    assert watched(study_in(tmp_path, Attempts(""), runs=1)) == ([], [True])


def test_more_runs_are_added_and_none_is_made_twice(tmp_path: Path) -> None:
    assert watched(study_in(tmp_path, Attempts("")))[1] == [True]
    study = study_in(tmp_path, Attempts(""), runs=2)
    assert watched(study)[1] == [True]
    assert watched(study) == ([], [])
    assert [run.number for run, _ in runs_of(study.campaign, "tries")] == [1, 2]


def test_an_attempt_that_was_not_yet_placed_when_all_ended_counts(tmp_path: Path) -> None:
    study = study_in(tmp_path, Attempts(""))
    watched(study)
    rejected = study.folder(OF).parent / REJECTED
    rejected.mkdir()
    study.folder(OF).rename(rejected / "1-1")
    assert watched(study) == ([], [])
    assert runs_of(study.campaign, "tries") == [(OF, study.folder(OF))]
    assert not rejected.exists()


def test_replays_that_fail_in_a_row_end_the_study(tmp_path: Path) -> None:
    attempts = Attempts(*["replay: no devices"] * REPLAY_FAILURES_IN_A_ROW)
    with pytest.raises(EyelevelError, match="replays in a row failed, the last with: replay: no devices"):
        watched(study_in(tmp_path, attempts, runs=REPLAY_FAILURES_IN_A_ROW))
    assert not attempts.reasons


def test_a_study_is_made_by_one_process_at_a_time(tmp_path: Path) -> None:
    def another(setting: Setting, seed: int, circumstances: Circumstances, folder: Path) -> Judged:
        with pytest.raises(EyelevelError, match="is being measured by another process"):
            watched(study)
        return Judged("")

    study = study_in(tmp_path, another)
    assert watched(study) == ([], [True])


def test_a_campaign_without_the_study_has_no_runs_of_it(tmp_path: Path) -> None:
    assert runs_of(tmp_path, "tries") == []
    assert rejected_reasons(tmp_path, "tries") == []


def test_what_is_broken_is_named(tmp_path: Path) -> None:
    study = study_in(tmp_path, Attempts(""))
    watched(study)
    document = study.campaign / "tries" / "tries.json"
    document.write_text("{broken")
    with pytest.raises(EyelevelError, match=r"tries\.json cannot be read"):
        runs_of(study.campaign, "tries")
    with pytest.raises(EyelevelError, match=r"tries\.json cannot be read"):
        watched(study)
