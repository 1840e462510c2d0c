"""`eyelevel ab` measures two settings in one campaign, resumes it, and ends with a result, files and a status."""

import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner, Result
from support.scripted import FAILED, SOUND, Outcome, ScriptedCampaign, measured

from analysis.ab import CONTRASTS, EXCLUDED, SHARES
from analysis.history import read_entries
from base.errors import EyelevelError, Misuse
from base.places import PROJECT
from dataset.table import require_document
from eyelevel import measuring
from eyelevel.commands.ab import LEAST_RUNS, main
from eyelevel.commands.compare import NOT_DECIDED_STATUS, WORSE_STATUS
from eyelevel.commands.two_settings import TwoSettings
from eyelevel.estimate import estimate
from eyelevel.make import command_lines, targets
from films.visual_metrics import VisualMetrics
from measure.campaign.campaign import Campaign
from measure.host.lanes import Lanes
from measure.run.setting import Setting

COMMON = ["--net", "lte", "--sites", "demo-light", "--no-validate"]
PROTOCOLS = ["PROTO=tcp", "PROTO=tcp+"]


@dataclass
class Machine:
    """A machine whose loads are scripted: in place of `carry_out`.

    `slower`: the factor by which loads of B take longer; `lost`: whose loads break; `loads`: how many loads are made
    before something ends the campaign; `campaigns`: those that were measured.
    """

    slower: float = 1.0
    lost: tuple[str, ...] = ()
    loads: int = 1000

    def __post_init__(self) -> None:
        self.campaigns: list[Campaign] = []
        self._draw = Random(1)

    def script(self, setting: Setting, _: Path) -> Outcome:
        self.loads -= 1
        if self.loads < 0:
            raise KeyboardInterrupt
        if setting.protocol.name in self.lost:
            return FAILED
        factor = self._draw.lognormvariate(0, 0.02) * (self.slower if setting.protocol.name != "tcp" else 1)
        return replace(SOUND, plt=1000 * factor, visual=VisualMetrics(500, 900, 700, 650 * factor))

    def carry_out(self, campaign: Campaign, *_: object, **__: object) -> None:
        self.campaigns.append(campaign)
        scripted = ScriptedCampaign(**{one.name: getattr(campaign, one.name) for one in fields(Campaign)})
        with suppress(KeyboardInterrupt):
            measured(scripted, script=self.script)


Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A function that runs the command on a `machine` with these words, into a campaign called c."""

    def go(*words: str, machine: Machine | None = None, **further: Any) -> Result:
        monkeypatch.setattr(measuring, "carry_out", (machine or Machine()).carry_out)
        line = [*COMMON, "--campaign", "c", "--results", str(tmp_path), *words]
        # make, by which these tests may be run, changes the last line.
        return CliRunner(env={"MAKELEVEL": None}).invoke(main, line, catch_exceptions=False, **further)

    return go


@pytest.mark.parametrize(
    ("machine", "words", "status", "text"),
    [
        (Machine(), [], 0, "result: A and B are equivalent on LTE (SI "),
        (Machine(0.8), ["--decide"], 0, "result: B is faster than A on LTE (SI -"),
        (Machine(1.2), [], WORSE_STATUS, "result: B is worse than A: slower on LTE (SI +"),
        (Machine(1.2), ["--worse-than", "40%"], 0, "result: B is not shown to be worse than A: slower on LTE (SI +"),
        (Machine(1.2), ["--worse-than", "20%", "--decide"], NOT_DECIDED_STATUS, "result: B is not shown to be worse"),
        (
            Machine(lost=("tcp+",)),
            [],
            WORSE_STATUS,
            "result: B is worse than A: more lost loads on LTE (0 of 10 in A, 10",
        ),
    ],
    ids=["same", "faster", "slower", "allowed", "undecided", "lost"],
)
def test_the_last_line_and_the_exit_status_say_the_result(
    run: Run, tmp_path: Path, machine: Machine, words: list[str], status: int, text: str
) -> None:
    done = run(*PROTOCOLS, "--runs", "10", *words, machine=machine)
    last = done.stdout.splitlines()[-1]
    assert (done.exit_code, last.startswith(text), f"(exit status {status})" in last) == (status, True, True), last
    assert {path.name for path in (tmp_path / "c" / "ab").iterdir()} >= {"index.html", "ab.json", "ab.md", "tables"}


def test_it_cannot_compare_what_no_load_shows(run: Run, tmp_path: Path) -> None:
    with pytest.raises(EyelevelError, match=r"^there is nothing to compare") as caught:
        run(*PROTOCOLS, "--runs", "3", machine=Machine(lost=("tcp", "tcp+")))
    assert caught.value.status == 1 and not (tmp_path / "c" / "ab").exists()


def test_its_document_has_the_keys_that_are_described(run: Run, tmp_path: Path) -> None:
    run(*PROTOCOLS, "--runs", "10", machine=Machine(1.2))
    document = json.loads((tmp_path / "c" / "ab" / "ab.json").read_text())
    _, _, table = (PROJECT / "docs" / "contributors" / "json.md").read_text().partition("| `ab.json` | |\n")
    described = re.findall(r"^\| (`[^|]*`) \| (.*) \|$", table.partition("\n\n")[0], re.MULTILINE)
    names = [name for keys, _ in described for name in re.findall(r"`(\w+)`", keys)]
    assert list(document) == names
    keys = {name: re.findall(r"`(\w+)`", text) for name, text in described}
    assert keys["`a`, `b`"] == list(document["a"]) == list(document["b"])
    assert keys["`contrasts`"] == CONTRASTS == list(document["contrasts"][0])
    assert keys["`shares`"] == SHARES == list(document["shares"][0])
    assert keys["`excluded`"] == EXCLUDED
    assert (document["format"], document["outcome"], document["planned_runs"]) == (1, "worse", 10)
    assert (document["a"]["setting"], document["b"]["protocol"]) == ("PROTO=tcp", "tcp+")
    assert document["a"]["protocol_settings"]["initial_window_packets"] == 10
    assert [entry.document for entry in read_entries(tmp_path)] == [document]
    summary = (tmp_path / "c" / "ab" / "ab.md").read_text()
    assert summary.startswith("### B is worse than A: slower on LTE (SI +") and "| LTE | SI | 1 | 10 |" in summary


def test_the_campaign_declares_the_one_pair_and_resumes_where_its_budget_ended(run: Run, tmp_path: Path) -> None:
    first = Machine(1.2, loads=8)
    run(*PROTOCOLS, "--budget", "5m", machine=first)
    (planned,) = first.campaigns
    expected_s = estimate(replace(planned, folder=tmp_path / "none")).forecast.seconds
    assert planned.runs >= LEAST_RUNS and 200 < expected_s <= 300
    document = require_document(tmp_path / "c")
    assert list(document.settings.protocols) == ["tcp", "tcp+"] and document.settings.runs == planned.runs
    assert "pairs = []" in (tmp_path / "c" / "hypotheses.toml").read_text()
    before = (tmp_path / "c" / "runs.csv").read_text()
    # The same command goes on with the same plan, to its end.
    second = Machine(1.2)
    done = run(*PROTOCOLS, "--budget", "5m", machine=second)
    assert second.campaigns[0].runs == planned.runs and done.exit_code == WORSE_STATUS
    after = (tmp_path / "c" / "runs.csv").read_text()
    assert after.startswith(before) and len(after.splitlines()) == 1 + 2 * planned.runs > len(before.splitlines())
    # A campaign that has ended is only compared again.
    third = Machine()
    assert run(*PROTOCOLS, machine=third).exit_code == WORSE_STATUS and not third.campaigns
    with pytest.raises(EyelevelError, match="was begun with other settings: think_time was off, is recorded"):
        run(*PROTOCOLS, "--think-time", "recorded")
    with pytest.raises(EyelevelError, match=r"has the protocols tcp, tcp\+, and A and B have tcp, quic; .*CAMPAIGN"):
        run("PROTO=tcp", "PROTO=quic")


def test_equal_settings_are_the_protocol_twice(run: Run) -> None:
    machine = Machine()
    done = run("PROTO=tcp", "PROTO=tcp", "--runs", "10", machine=machine)
    assert list(machine.campaigns[0].protocols) == ["tcp", "tcp~2"] and done.exit_code == 0


def test_browsers_devices_and_variants_are_settings() -> None:
    common = dict.fromkeys(("proto", "browser", "device", "sites"))
    devices = TwoSettings.of(("BROWSER=chromium", "DEVICE=phone-mid"), {**common, "proto": "tcp"}, None)
    assert (devices.protocols, devices.browsers) == ("tcp", ("chromium", "chromium-on-phone-mid"))
    texts = "PROTO=tcp SITES=a,b@lean", "PROTO=tcp SITES=a@lean,b"
    variants = TwoSettings.of(texts, common, None)
    assert (variants.protocols, variants.all_sites) == ("tcp", "a,b@lean,a@lean,b")
    assert variants.sites == (("a", "b@lean"), ("a@lean", "b"))


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        (
            "PROTO=tcp",
            "PROTO=tcp NET=lte",
            "^B: blocks do not pair NET, only .*; otherwise measure two campaigns, and compare them with 'make",
        ),
        ("PROTO=tcp", "PROT=tcp", "^B: a campaign has no PROT; did you mean PROTO"),
        ("tcp", "PROTO=tcp", "^A must be a setting such as PROTO=quic, not 'tcp'$"),
        ("PROTO='tcp", "PROTO=tcp", "^unknown protocol .*did you mean tcp"),
        ("PROTO=tcp,quic", "PROTO=tcp", "^A has the protocols tcp, quic; a setting has one$"),
        ("BROWSER=chromium", "PROTO=tcp", "^A has no protocol; give PROTO in A and B, or once for both"),
        ("PROTO=tcp", "PROTO=quic DEVICE=phone-mid", "^A and B differ in PROTO, and in BROWSER or DEVICE, so a block"),
        ("PROTO=tcp BROWSER=all", "PROTO=tcp", "^A has the browsers .*; a setting has one$"),
        ("PROTO=tcp SITES=demo-news", "PROTO=tcp", "^A has the sites demo-news, B has demo-light: blocks pair a site"),
        ("PROTO=tcp", "PROTO=nope", "^unknown protocol 'nope'"),
    ],
)
def test_what_is_no_pair_of_a_block_is_refused_in_one_line(run: Run, tmp_path: Path, a: str, b: str, text: str) -> None:
    with pytest.raises(Misuse, match=text) as caught:
        run(a, b)
    assert caught.value.status == 2 and "\n" not in str(caught.value) and not (tmp_path / "c").exists()


def test_a_budget_for_less_than_two_runs_is_refused(run: Run, tmp_path: Path) -> None:
    with pytest.raises(
        EyelevelError, match=r"^the budget is too small for 2 runs of A and of B .*BUDGET=\dm, or fewer sites"
    ):
        run(*PROTOCOLS, "--budget", "20s")
    assert not (tmp_path / "c").exists()


def test_the_number_of_runs_counts_on_the_lanes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = Machine(), Machine()
    words = [*PROTOCOLS, "--budget", "4m"]
    run(*words, machine=one)
    planned = one.campaigns[0]
    monkeypatch.setattr("eyelevel.lanes.lanes_of_campaign", lambda *_: Lanes(2))
    run(*words, "--campaign", "two", machine=two)
    assert two.campaigns[0].runs > 1.8 * planned.runs


def test_make_passes_settings_with_blanks() -> None:
    given = {"A": "PROTO=quic", "B": "PROTO=quic BROWSER=firefox", "NET": "lte", "BUDGET": "10m"}
    assert command_lines(targets()["ab"], given) == [
        ["ab", "--net", "lte", "--budget", "10m", "PROTO=quic", "PROTO=quic BROWSER=firefox"]
    ]
