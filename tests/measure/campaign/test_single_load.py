"""A load outside any campaign is repeated until it counts, as often as a campaign would repeat it."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.scripted import FAILED, SOUND, Outcome, ScriptedLoads, in_turn, one_page

from base.errors import EyelevelError
from measure.campaign.single_load import REPEATS, single_load
from measure.run.setting import Setting
from tuning import networks, protocols

BROKE = "site could not be loaded over tcp in 3 tries: load_failed: it broke"


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(one_page(tmp_path / "site"), networks.load()["dsl"], protocols.load()["tcp"])


def loads(*outcomes: Outcome) -> ScriptedLoads:
    return ScriptedLoads(script=in_turn(*outcomes))


def test_the_evidence_is_that_of_the_first_load_that_counts_and_goes_with_its_context(setting: Setting) -> None:
    analysed: list[str] = []

    class Analysed(ScriptedLoads):
        def analyse(self, folder: Path) -> None:
            analysed.append(folder.name)

    with single_load(setting, Analysed(script=in_turn(FAILED, SOUND)), 4) as folder:
        assert folder.name == "4-2" and folder.is_dir()
    assert analysed == ["4-1", "4-2"]
    assert not folder.exists()


def test_a_page_that_fails_again_and_again_is_an_error_that_says_how_often(setting: Setting) -> None:
    method = loads(FAILED)
    with pytest.raises(EyelevelError, match=BROKE), single_load(setting, method):
        pass
    assert len(method.evidence_of) == 1 + REPEATS


def test_a_load_that_the_machine_spoils_does_not_count_as_a_try(setting: Setting) -> None:
    busy = replace(SOUND, replay_failure="no namespace")
    method = loads(*[busy] * REPEATS, *[FAILED] * REPEATS, SOUND)
    with single_load(setting, method) as folder:
        assert folder.name == f"1-{1 + 2 * REPEATS}"


def test_replays_that_fail_again_and_again_are_the_fault_of_the_testbed(setting: Setting) -> None:
    method = loads("no namespace")
    with (
        pytest.raises(EyelevelError, match="5 replays in a row failed, the last with: replay: no namespace"),
        single_load(setting, method),
    ):
        pass
    assert len(method.evidence_of) == 5
