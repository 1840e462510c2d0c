"""The campaign's loop; page loads are replaced by their results."""

import csv
import json
import os
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from support.scripted import FAILED, SOUND, ScriptedCampaign, measured, one_page, scripted_campaign

from base.errors import EyelevelError
from base.ownership import give_to_caller
from base.words import in_words
from dataset.declaration import kept_hypotheses
from dataset.plan import read_plan, write_plan
from dataset.reasons import Reason
from dataset.table import read_given_up, read_rows, require_document
from dataset.verdicts import Verdict, add_verdict
from eyelevel.program import status_of
from measure.campaign.campaign import Campaign, Selection
from measure.campaign.slot import REPLAY_FAILURES_IN_A_ROW
from measure.campaign.status import status
from measure.run.evidence import Evidence, RequestCounts
from measure.run.gates import MACHINE_RETRIES
from measure.run.setting import Loading, Setting
from tuning import networks, protocols
from tuning.defaults import REPEATS


@pytest.fixture
def campaign(tmp_path: Path) -> ScriptedCampaign:
    """Two runs of one site over two settings of TCP."""
    return scripted_campaign(tmp_path)


def interrupted(*_: object) -> Evidence:
    """A load that a user interrupts."""
    raise KeyboardInterrupt


def rows(campaign: Campaign) -> list[dict[str, str]]:
    with (campaign.folder / "runs.csv").open() as file:
        return list(csv.DictReader(file))


def test_every_run_is_measured_once(campaign: Campaign) -> None:
    printed = measured(campaign, SOUND)
    assert sorted((row["protocol"], row["run"]) for row in rows(campaign)) == [
        ("tcp", "1"),
        ("tcp", "2"),
        ("tcp+", "1"),
        ("tcp+", "2"),
    ]
    assert all(row["valid"] == "true" and row["plt"] == "1000" and row["reason"] == "" for row in rows(campaign))
    assert "[4/4]" in printed
    assert all((campaign.folder / row["folder"]).is_dir() for row in rows(campaign))


def test_a_campaign_keeps_what_it_asks_and_what_its_sites_are_before_its_first_run(campaign: Campaign) -> None:
    kept: list[tuple[str, int]] = []

    def script(*_: object) -> Evidence:
        document = require_document(campaign.folder)
        kept.append((kept_hypotheses(campaign.folder, document), document.site_facts["site"]["servers"]))
        return SOUND

    measured(replace(campaign, hypotheses="asked"), script=script)
    assert kept == [("asked", 1)] * 4


def test_a_campaign_of_an_older_version_goes_on_and_learns_what_its_sites_are(campaign: Campaign) -> None:
    measured(campaign, SOUND)
    path = campaign.folder / "campaign.json"
    document = json.loads(path.read_text())
    facts = document.pop("site_facts")
    path.write_text(json.dumps(document))
    assert "hypotheses" not in document
    measured(replace(campaign, runs=3), SOUND)
    assert len(rows(campaign)) == 6
    assert json.loads(path.read_text()) == {
        **document,
        "settings": {**document["settings"], "runs": 3},
        "site_facts": facts,
    }


def test_a_campaign_that_is_done_measures_nothing_more(campaign: Campaign) -> None:
    measured(campaign, SOUND)
    assert "no planned run is left" in measured(campaign, FAILED)
    assert len(rows(campaign)) == 4


def test_an_invalid_run_is_kept_with_its_reason_and_repeated(campaign: Campaign) -> None:
    printed = measured(campaign, FAILED, SOUND)
    first, _, second = rows(campaign)[:3]
    assert (first["valid"], first["reason"], first["plt"]) == ("false", "load_failed: it broke", "")
    assert (second["valid"], second["attempt"]) == ("true", "2")
    assert [row[key] for key in ("site", "protocol", "run") for row in (first,)] == [
        second[key] for key in ("site", "protocol", "run")
    ]
    assert first["folder"] != second["folder"]
    assert "invalid: load_failed: it broke; once more" in printed


def test_a_run_is_given_up_after_the_limit_and_stays_given_up(campaign: Campaign) -> None:
    # The runs of a block are made one after another; then those that do not count are repeated.
    printed = measured(campaign, FAILED, SOUND, FAILED, FAILED, SOUND)
    assert "given up" in printed
    assert sorted(row["valid"] for row in rows(campaign)) == ["false"] * (REPEATS + 1) + ["true"] * 3
    assert len({row["protocol"] + row["run"] for row in rows(campaign) if row["valid"] == "false"}) == 1
    assert "no planned run is left" in measured(campaign, SOUND)


def test_what_the_machine_did_does_not_count_against_a_run(campaign: Campaign) -> None:
    busy = replace(SOUND, late_wakeups=1, latest_wakeup_ms=99.0)
    one = replace(campaign, protocols={"tcp": campaign.protocols["tcp"]}, runs=1)
    outcomes: list[Evidence | str] = ["no nginx", busy]
    measured(one, *outcomes * REPEATS, SOUND)
    assert [row["valid"] for row in rows(campaign)] == ["false"] * 2 * REPEATS + ["true"]


def test_a_page_that_always_makes_the_machine_busy_is_given_up_in_the_end(campaign: Campaign) -> None:
    busy = replace(SOUND, late_wakeups=1, latest_wakeup_ms=99.0)
    one = replace(campaign, protocols={"tcp": campaign.protocols["tcp"]}, runs=1)
    assert "given up" in measured(one, busy)
    assert len(rows(campaign)) == REPEATS + 1 + MACHINE_RETRIES


def test_an_interrupted_campaign_goes_on_where_it_was(campaign: Campaign) -> None:
    measured(campaign, SOUND)
    whole = (campaign.folder / "runs.csv").read_text().splitlines(keepends=True)
    (campaign.folder / "runs.csv").write_text("".join(whole[:3]))
    for row in list(csv.DictReader(whole))[2:]:
        (campaign.folder / row["folder"] / "attempt.json").unlink()
    with pytest.raises(KeyboardInterrupt):
        measured(campaign, script=interrupted)
    assert (campaign.folder / "runs.csv").read_text() == "".join(whole[:3])
    measured(campaign, SOUND)
    keys = ("site", "protocol", "run", "attempt")
    assert [[row[key] for key in keys] for row in rows(campaign)] == [
        [row[key] for key in keys] for row in csv.DictReader(whole)
    ]


def test_what_was_made_before_a_stop_is_judged_and_not_made_again(campaign: Campaign) -> None:
    measured(campaign, SOUND)
    whole = (campaign.folder / "runs.csv").read_text()
    (campaign.folder / "runs.csv").write_text("".join(whole.splitlines(keepends=True)[:2]))
    printed = measured(campaign, "a load that must not be made")
    assert (campaign.folder / "runs.csv").read_text() == whole
    assert "[4/4]" in printed


def test_each_start_that_measures_begins_a_sitting(campaign: Campaign) -> None:
    measured(campaign, SOUND)
    measured(campaign, "a load that must not be made")
    measured(replace(campaign, runs=3), SOUND)
    assert [row["sitting"] for row in rows(campaign)] == ["1"] * 4 + ["2"] * 2


def test_the_whole_plan_is_there_before_the_first_run_and_grows_by_rounds(campaign: Campaign) -> None:
    with pytest.raises(KeyboardInterrupt):
        measured(campaign, script=interrupted)
    planned = read_plan(campaign.folder)
    assert [len(block) for block in planned] == [2, 2]
    more = replace(campaign, protocols={**campaign.protocols, "tcp+bbr": protocols.load()["tcp+bbr"]}, runs=3)
    measured(more, SOUND)
    grown = read_plan(campaign.folder)
    assert [grown[0], grown[2]] == planned
    assert [[(run.protocol, run.number) for run in grown[place]] for place in (1, 3)] == [
        [("tcp+bbr", 1)],
        [("tcp+bbr", 2)],
    ]
    assert sorted(run.protocol for run in grown[4]) == ["tcp", "tcp+", "tcp+bbr"]
    assert len(rows(campaign)) == 9


def test_a_disk_that_is_too_small_is_told_before_the_first_run(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(campaign.folder.parent.parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=100_000_000))
    with pytest.raises(EyelevelError, match=r"has 100 MB free, \d+ MB too little: the campaign needs \d+ MB"):
        measured(campaign, SOUND)
    assert rows(campaign) == []


def test_a_run_that_is_unlike_the_others_is_rejected_once_they_are_known_and_repeated(campaign: Campaign) -> None:
    odd = replace(SOUND, request_counts=RequestCounts(30, 10, 20, 5))
    usual = replace(SOUND, request_counts=RequestCounts(30, 30, 0, 25))
    printed = measured(replace(campaign, runs=4), usual, odd, usual)
    rejected_rows = [row for row in rows(campaign) if row["valid"] == "false"]
    assert [row["reason"].partition(":")[0] for row in rejected_rows] == ["exchange_unused"]
    assert len([row for row in rows(campaign) if row["valid"] == "true"]) == 8
    assert "rejected later: exchange_unused: 5 recorded exchanges were used, 25 are usual" in printed
    assert "no planned run is left" in measured(replace(campaign, runs=4), "no more loads")


def test_sites_with_enough_runs_get_no_more(campaign: Campaign) -> None:

    def enough(folder: Path) -> list[tuple[str, str]]:
        return [("site", "lte")] if len(rows(campaign)) >= 4 else []

    measured(replace(campaign, runs=5), enough=enough)
    assert len(rows(campaign)) == 4


def test_it_is_asked_once_a_round_whether_there_are_enough_runs(campaign: Campaign, tmp_path: Path) -> None:
    both = {name: one_page(tmp_path / name) for name in ("one", "two")}
    sizes: list[int] = []

    def enough(folder: Path) -> list[tuple[str, str]]:
        sizes.append(len(rows(campaign)))
        return []

    two = replace(campaign, sites=both, runs=3)
    measured(two, enough=enough)
    # In each of the three rounds, the two sites' blocks have four runs together. `enough` is asked at the beginning and
    # before each round, and not after the last.
    assert sizes == [0, 0, 4, 8]


def test_a_site_that_was_given_up_does_not_keep_others_from_being_asked(campaign: Campaign, tmp_path: Path) -> None:
    both = {name: one_page(tmp_path / name) for name in ("one", "two")}
    two = replace(campaign, sites=both, runs=9)

    def enough(folder: Path) -> list[tuple[str, str]]:
        return [("two", "lte")] if sum(row["site"] == "two" for row in rows(campaign)) >= 10 else []

    measured(two, script=lambda setting, _: FAILED if setting.site.name == "one" else SOUND, enough=enough)
    assert read_given_up(campaign.folder)[0].site == "one"
    assert sum(row["site"] == "two" for row in rows(campaign)) == 10


def test_what_is_not_needed_is_saved_and_not_open(campaign: Campaign) -> None:
    measured(campaign, SOUND)
    measured(replace(campaign, runs=3, without=frozenset([("site", "lte")])), SOUND)
    write_plan(campaign.folder, replace(campaign, runs=3).plan())
    assert len(status(campaign.folder).open_runs) == 2
    stands = status(campaign.folder, lambda folder: [("site", "lte")])
    assert (stands.planned, stands.done, stands.saved, stands.open_runs) == (6, 4, 2, ())


def test_replays_that_fail_again_and_again_stop_the_campaign(campaign: Campaign) -> None:
    with pytest.raises(EyelevelError, match="replays in a row failed, the last with: replay: no nginx"):
        measured(campaign, "no nginx")
    assert len(rows(campaign)) == REPLAY_FAILURES_IN_A_ROW
    assert {row["reason"] for row in rows(campaign)} == {"replay: no nginx"}


def test_a_site_that_fails_alike_over_all_protocols_is_given_up_in_one_line(campaign: Campaign) -> None:
    printed = measured(replace(campaign, runs=5), FAILED)
    # Two of the five blocks are measured, with two protocols each. Each of their runs is tried REPEATS + 1 times.
    assert len(rows(campaign)) == 2 * 2 * (REPEATS + 1)
    line = "site lte fails over all protocols: its 6 open runs will not be made; "
    line += "the last reason was load_failed: it broke"
    assert [text for text in printed.splitlines() if "fails over all" in text] == [line]
    (entry,) = read_given_up(campaign.folder)
    assert (entry.site, entry.network, entry.runs) == ("site", "lte", 6)
    stands = status(campaign.folder)
    assert (stands.given_up, stands.open_runs, stands.given_up_sites) == (10, (), (entry,))


def test_going_on_gives_a_site_that_was_given_up_another_try(campaign: Campaign) -> None:
    five = replace(campaign, runs=5)
    measured(five, FAILED)
    before = len(rows(campaign))
    # One further block fails in the same way, and is enough to give up the site again.
    measured(five, FAILED)
    assert len(rows(campaign)) == before + 2 * (REPEATS + 1)
    assert [entry.runs for entry in read_given_up(campaign.folder)] == [4]
    measured(five, SOUND)
    assert len([row for row in rows(campaign) if row["valid"] == "true"]) == 4
    assert read_given_up(campaign.folder) == []


def test_a_verdict_that_accepts_a_run_lifts_the_giving_up(campaign: Campaign) -> None:
    other = replace(
        campaign, runs=5, networks={name: networks.load()[name] for name in ("dsl", "lte")}, folder=campaign.folder
    )
    accepted: list[str] = []

    def script(*_: object) -> Evidence:
        # As soon as a site is given up, a person accepts one of its attempts.
        if read_given_up(campaign.folder) and not accepted:
            given_up = {(one.site, one.network) for one in read_given_up(campaign.folder)}
            row = next(row for row in read_rows(campaign.folder) if (row.site, row.network) in given_up)
            add_verdict(campaign.folder, Verdict.of(row, Reason("accepted", "it is fine"), by="review", valid=True))
            accepted.append(row.network)
        return FAILED

    measured(other, script=script)
    attempts = Counter(row["network"] for row in rows(campaign))
    assert attempts[accepted[0]] == 5 * 2 * (REPEATS + 1)
    assert min(attempts.values()) == 2 * 2 * (REPEATS + 1)


def mixed(campaign: Campaign, runs: int) -> Campaign:
    """`campaign` with a run on another network in each of its blocks."""
    slow = replace(campaign.networks["lte"], name="lte+slow")
    return replace(
        campaign,
        runs=runs,
        networks={**campaign.networks, slow.name: slow},
        selection=Selection(("site",), ("lte",), tuple(campaign.protocols)),
        companions={"lte": (("lte+slow", "tcp"),)},
    )


def test_a_block_of_two_networks_is_measured_together_and_goes_on_where_it_was(campaign: Campaign) -> None:
    measured(mixed(campaign, 1), SOUND)
    measured(mixed(campaign, 2), SOUND)
    conditions = [("lte", "tcp"), ("lte", "tcp+"), ("lte+slow", "tcp")]
    for block in ("1", "2"):
        assert (
            sorted((row["network"], row["protocol"]) for row in rows(campaign) if row["block"] == block) == conditions
        )
    assert len(rows(campaign)) == 6
    stands = status(campaign.folder)
    assert (stands.planned, stands.done, stands.open_runs) == (6, 6, ())


def test_what_is_withdrawn_is_measured_no_more_and_does_not_count(campaign: Campaign) -> None:
    measured(replace(campaign, runs=4), SOUND)
    measured(replace(campaign, runs=6), SOUND)
    withdrawn = replace(campaign, runs=6, withdrawn={("site", "lte"): "its picture turns"})
    write_plan(campaign.folder, replace(campaign, runs=7).plan())
    for _ in range(2):
        measured(withdrawn, SOUND)
        assert {(row["valid"], row["reason"]) for row in rows(campaign)} == {("false", "withdrawn: its picture turns")}
        assert len(rows(campaign)) == 12
        (entry,) = read_given_up(campaign.folder)
        assert (entry.runs, entry.withdrawn) == (2, "its picture turns")
    stands = status(campaign.folder)
    assert (stands.given_up, stands.open_runs) == (14, ())
    assert str(entry) == "site lte was withdrawn: its 2 open runs will not be made; its picture turns"
    assert withdrawn.plan() == []


def test_of_a_block_of_two_networks_the_one_that_fails_is_given_up_alone(campaign: Campaign) -> None:
    measured(mixed(campaign, 4), script=lambda setting, _: FAILED if "slow" in setting.network.name else SOUND)
    assert [(entry.network, entry.runs) for entry in read_given_up(campaign.folder)] == [("lte+slow", 2)]
    attempts = Counter((row["network"], row["valid"]) for row in rows(campaign))
    assert attempts == {("lte", "true"): 8, ("lte+slow", "false"): 2 * (REPEATS + 1)}


def test_of_a_block_of_two_networks_the_one_with_enough_runs_gets_no_more(campaign: Campaign) -> None:
    measured(mixed(campaign, 2), enough=lambda folder: [("site", "lte+slow")])
    assert {row["network"] for row in rows(campaign)} == {"lte"}
    assert len(rows(campaign)) == 4


@pytest.mark.parametrize(
    "outcomes",
    [
        # In the first case, one protocol's runs count; in the second, two different gates reject runs; in the third,
        # the machine is at fault.
        [SOUND, FAILED],
        [FAILED, replace(FAILED, failures=(), plt=None, requests=SOUND.requests)],
        [replace(SOUND, late_wakeups=1, latest_wakeup_ms=99.0)],
    ],
)
def test_a_site_is_not_given_up_when_its_runs_do_not_all_fail_alike(
    campaign: Campaign, outcomes: list[Evidence]
) -> None:
    printed = measured(replace(campaign, runs=3), *outcomes)
    assert "alike" not in printed
    assert read_given_up(campaign.folder) == []
    assert {int(row["run"]) for row in rows(campaign)} == {1, 2, 3}


def test_settings_and_versions_are_on_disk_before_the_first_run(campaign: Campaign) -> None:
    def script(*_: object) -> Evidence:
        document = json.loads((campaign.folder / "campaign.json").read_text())
        assert document["settings"]["seed"] == 1
        assert document["settings"]["networks"]["lte"]["min_rtt_ms"] == 74
        assert document["settings"]["protocols"]["tcp"]["initial_window_packets"] == 10
        assert document["versions"] == {"chromium": "1"}
        assert document["machine"]["cpus"] >= 1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measured(campaign, script=script)


def test_a_campaign_does_not_mix_with_what_its_network_keeps_time(campaign: ScriptedCampaign) -> None:
    settings: list[Setting] = []

    def script(setting: Setting, _: Path) -> Evidence:
        settings.append(setting)
        return SOUND

    def measured_with(timekeeping: str, runs: int) -> None:
        measured(replace(campaign, runs=runs, programs={"timekeeping": timekeeping}), script=script)

    measured_with("real-time priority", 1)
    with pytest.raises(EyelevelError, match="timekeeping was real-time priority, is ordinary priority"):
        measured_with("ordinary priority", 2)
    measured_with("real-time priority", 2)
    assert [setting.timekeeping for setting in settings] == ["real-time priority"] * 4


def test_runs_end_after_the_quiet_time_of_their_network_over_every_protocol(campaign: Campaign) -> None:
    known = networks.load()
    pages = replace(campaign, runs=1, networks={name: known[name] for name in ("dsl", "lte")})
    measured(pages, SOUND)
    assert sorted((row["network"], row["protocol"], row["quiet_ms"]) for row in rows(pages)) == [
        ("dsl", "tcp", "3000"),
        ("dsl", "tcp+", "3000"),
        ("lte", "tcp", "2000"),
        ("lte", "tcp+", "2000"),
    ]
    document = require_document(pages.folder)
    assert (document.settings.quiet_ms("dsl"), document.settings.quiet_ms("lte")) == (3000, 2000)
    # A study with its own quiet time uses it on every network, and records that.
    study = replace(pages, folder=pages.folder.parent / "study", loading=Loading(quiet_ms=100))
    measured(study, SOUND)
    assert {row["quiet_ms"] for row in rows(study)} == {"100"}
    document = require_document(study.folder)
    assert (document.settings.quiet_ms("dsl"), document.settings.quiet_ms("lte")) == (100, 100)


def test_a_campaign_does_not_go_on_with_another_quiet_time(campaign: Campaign) -> None:
    shorter, older = campaign.networks["lte"], replace(campaign.networks["lte"], quiet_ms=None)
    measured(replace(campaign, runs=1, networks={"lte": older}), SOUND)
    path = campaign.folder / "campaign.json"
    document = json.loads(path.read_text())
    # In campaigns of older versions, networks did not have this key.
    del document["settings"]["networks"]["lte"]["quiet_ms"]
    path.write_text(json.dumps(document))
    with pytest.raises(EyelevelError, match="networks/lte/quiet_ms was absent, is 2000"):
        measured(replace(campaign, networks={"lte": shorter}), SOUND)
    measured(replace(campaign, networks={"lte": older}), SOUND)
    assert {row["quiet_ms"] for row in rows(campaign)} == {"3000"} and len(rows(campaign)) == 4


@pytest.mark.skipif(os.geteuid() != 0, reason="need root (only root gives files away)")
def test_results_belong_to_who_used_sudo(campaign: Campaign, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SUDO_UID", "1234")
    monkeypatch.setenv("SUDO_GID", "1234")
    measured(campaign, SOUND)
    assert {path.stat().st_uid for path in (campaign.folder, *campaign.folder.rglob("*"))} == {1234}
    assert {path.stat().st_uid for path in (tmp_path, *tmp_path.iterdir()) if path != campaign.folder.parent} == {0}


@pytest.mark.skipif(os.geteuid() != 0, reason="need root (only root gives files away)")
def test_what_root_did_not_make_there_stays_whose_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SUDO_UID", "1234")
    monkeypatch.setenv("SUDO_GID", "1234")
    folder, system_file, elsewhere = tmp_path / "results", tmp_path / "shadow", tmp_path / "elsewhere"
    for path in (folder, elsewhere):
        path.mkdir()
    for path in (system_file, elsewhere / "file", folder / "ours", folder / "theirs"):
        path.touch()
    os.chown(folder / "theirs", 4321, 4321)
    os.link(system_file, folder / "hard")
    (folder / "soft").symlink_to(elsewhere)
    give_to_caller(folder)
    owners = {path.name: path.stat().st_uid for path in (folder, *folder.iterdir(), elsewhere, elsewhere / "file")}
    expected = {"results": 1234, "ours": 1234, "theirs": 4321, "hard": 0, "soft": 0, "elsewhere": 0, "file": 0}
    assert owners == expected
    assert system_file.stat().st_uid == 0


def test_without_sudo_nothing_changes_hands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    monkeypatch.setattr(os, "chown", lambda *_, **__: pytest.fail("changed an owner"))
    give_to_caller(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message", "status"),
    [
        (["--net", "lte,nowhere"], "unknown network 'nowhere': 'eyelevel networks' lists all", 2),
        (["--proto", "tcp quick"], "unknown protocol 'quick': did you mean quic? 'eyelevel protocols' lists all", 2),
        (["--sites", "demo-nothing"], "unknown site 'demo-nothing': ", 1),
        (["--campaign", "../elsewhere"], "is not a name for one", 2),
    ],
)
def test_an_unknown_value_is_refused_before_anything_is_written(
    arguments: list[str], message: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = ["--net", "lte", "--proto", "tcp", "--sites", "demo-light", "--results", str(tmp_path / "results")]
    assert status_of(["campaign", *usual, *arguments]) == status
    *_, line = capsys.readouterr().err.splitlines()
    assert line.startswith("eyelevel: ") and message in line
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("seconds", "words"), [(12.3, "12 s"), (600, "10 min"), (3 * 3600 + 300, "3 h 05 min"), (4 * 86400, "4 d 0 h")]
)
def test_durations_are_told_as_people_do(seconds: float, words: str) -> None:
    assert in_words(seconds) == words
