"""The validations that a campaign keeps: nothing is measured twice, and nothing that failed is used."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from base.errors import EyelevelError
from dataset.checks import Check
from dataset.observations import LOSS_RESPONSE, ORDER_OF_SERVICE
from dataset.validation import VALIDATION, kept_entries
from measure.validate.contract import Bench
from measure.validate.network.server_rtts import DelayedSite
from measure.validate.protocol.loss_response import KEPT
from measure.validate.record import Machine, pending, validate_pending
from measure.validate.validation import OF_PROTOCOLS, validate
from tuning import networks, protocols
from tuning.networks import Network
from tuning.protocols import Protocol

NETWORKS, PROTOCOLS = networks.load(), protocols.load()
NOTHING: Mapping[str, str] = MappingProxyType({})


class Validation:
    """A machine with this `commit` and `program` that measures nothing: it records the requests, and fails the subjects
    in `wrong`."""

    def __init__(self) -> None:
        self.subjects: list[str] = []
        self.wrong: set[str] = set()
        self.commit, self.program = "abc", "1"
        self.here = Machine(self.facts, self.versions, self.validate)

    def campaign(
        self, folder: Path, networks: Iterable[Network], protocols: Iterable[Protocol], **further: Any
    ) -> list[Check]:
        return validate_pending(folder, pending(folder, networks, protocols, here=self.here, **further), self.here)

    def facts(self) -> dict[str, str | int]:
        return {"host": "here", "testbed": self.commit}

    def versions(self, servers: Collection[str], shells: str, further: Mapping[str, str] = NOTHING) -> dict[str, str]:
        return {"mm-net": self.program, "shells": shells}

    def validate(
        self,
        nets: Iterable[Network],
        protos: Iterable[Protocol],
        folder: Path,
        *,
        quick: bool,
        compared: bool,
        shells: str,
        delayed: Iterable[DelayedSite],
    ) -> tuple[list[Check], dict[str, Any]]:
        settings: list[Network | DelayedSite | Protocol] = [*nets, *delayed, *protos]
        self.subjects = [setting.name for setting in settings]
        checks = [Check(name, "c", "1", "2", "", name not in self.wrong) for name in self.subjects]
        more: dict[str, Any] = {LOSS_RESPONSE: {}, ORDER_OF_SERVICE: {}} if compared else {}
        return checks, dict.fromkeys(self.subjects, more)


@pytest.fixture
def validation() -> Validation:
    return Validation()


def test_a_failed_check_of_a_program_of_ones_own_also_says_what_its_table_may_claim(
    validation: Validation, tmp_path: Path
) -> None:
    mine = replace(PROTOCOLS["tcp"], name="mine", server="mine", program=("/bin/mine",))
    claims = "; or its table in protocols.toml claims what the program does not do"
    for wrong in ("tcp", "mine"):
        validation.wrong = {wrong}
        (tmp_path / wrong).mkdir()
        with pytest.raises(EyelevelError, match="try again when it is not") as raised:
            validation.campaign(tmp_path / wrong, [], [PROTOCOLS["tcp"], mine])
        assert str(raised.value).endswith(claims) == (wrong == "mine")


def test_what_was_found_right_is_not_measured_again(validation: Validation, tmp_path: Path) -> None:
    chosen = [NETWORKS["lte"]], [PROTOCOLS["tcp"]]
    assert len(validation.campaign(tmp_path, *chosen)) == 2
    assert validation.campaign(tmp_path, *chosen) == []
    validation.campaign(tmp_path, [NETWORKS["lte"], NETWORKS["dsl"]], [PROTOCOLS["tcp"]])
    assert validation.subjects == ["dsl"]


def test_protocols_are_compared_by_what_was_looked_at_for_that(validation: Validation, tmp_path: Path) -> None:
    validation.campaign(tmp_path, [NETWORKS["lte"]], [PROTOCOLS["tcp"]])
    for names, measured in ((["tcp", "quic"], ["tcp", "quic"]), (["tcp", "quic", "tcp+"], ["tcp+"])):
        validation.campaign(tmp_path, [NETWORKS["lte"]], [PROTOCOLS[name] for name in names])
        assert validation.subjects == measured
    entries = kept_entries(tmp_path)
    assert [ORDER_OF_SERVICE in entry.seen[entry.passed[-1]["name"]] for entry in entries] == [False, True, True]


def test_other_programs_or_another_testbed_are_measured_anew(validation: Validation, tmp_path: Path) -> None:
    chosen = [NETWORKS["lte"]], [PROTOCOLS["tcp"]]
    validation.campaign(tmp_path, *chosen)
    validation.commit = "def-dirty"
    assert len(validation.campaign(tmp_path, *chosen)) == 2
    assert len(validation.campaign(tmp_path, *chosen)) == 2
    validation.commit = "def"
    assert len(validation.campaign(tmp_path, *chosen)) == 2
    validation.program = "2"
    assert len(validation.campaign(tmp_path, *chosen)) == 2


def test_networks_are_measured_anew_in_other_shells(validation: Validation, tmp_path: Path) -> None:
    assert len(validation.campaign(tmp_path, [NETWORKS["lte"]], [])) == 1
    assert len(validation.campaign(tmp_path, [NETWORKS["lte"]], [], shells="mahimahi")) == 1
    assert validation.campaign(tmp_path, [NETWORKS["lte"]], [], shells="mahimahi") == []


def test_servers_are_measured_anew_when_they_are_elsewhere(validation: Validation, tmp_path: Path) -> None:
    near, far = (DelayedSite("s", tmp_path, {"198.18.0.1": extra_ms}) for extra_ms in (5.0, 50.0))
    for site, measured in ((near, 1), (near, 0), (far, 1), (far, 0)):
        assert len(validation.campaign(tmp_path, [], [], delayed=[site])) == measured


def test_what_failed_is_told_kept_and_measured_again(validation: Validation, tmp_path: Path) -> None:
    validation.wrong = {"quic"}
    chosen = [NETWORKS["lte"]], [PROTOCOLS["quic"]]
    with pytest.raises(EyelevelError, match=r"1 of 2 checks failed, the first: quic, c: 2 \(expected: 1\); all are in"):
        validation.campaign(tmp_path, *chosen)
    (kept,) = json.loads((tmp_path / VALIDATION).read_text())
    assert [check["passed"] for check in kept["checks"]] == [True, False]
    validation.wrong = set()
    validation.campaign(tmp_path, *chosen)
    assert validation.subjects == ["quic"]


def test_a_broken_record_is_told(validation: Validation, tmp_path: Path) -> None:
    (tmp_path / VALIDATION).write_text("[")
    with pytest.raises(EyelevelError, match="is broken"):
        validation.campaign(tmp_path, [NETWORKS["lte"]], [])


@pytest.mark.parametrize(
    ("manner", "observed"),
    [
        ({"quick": True}, ["settings"]),
        ({"quick": True, "compared": True}, ["settings", KEPT, "order of service"]),
        ({}, ["settings", KEPT, "order of service"]),
    ],
    ids=["one protocol of a campaign", "one of several", "make validate"],
)
def test_the_answer_to_a_loss_and_the_order_of_service_are_observed_where_protocols_are_compared(
    manner: dict[str, bool], observed: list[str], tmp_path: Path
) -> None:
    loads: list[str] = []

    def stand_in(name: str, protocol: Protocol, bench: Bench) -> None:
        loads.append(name)
        raise EyelevelError("nothing is loaded")

    entries = [replace(one, measure=partial(stand_in, one.check)) for one in OF_PROTOCOLS]
    checks, seen = validate([], [PROTOCOLS["quic"]], tmp_path, of_protocols=entries, **manner)  # type: ignore[arg-type]
    assert (loads, seen, len(checks)) == (observed, {}, len(observed))
