"""The dose: what is planned, how processes are limited, and whether known lines are found, refused and named."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.doses import DoseWorld, simulated, write_dose
from support.figures import smallest_type
from support.leaks import groups_folder

from analysis import hypotheses
from analysis.figures.style import SMALL
from analysis.runs import load, rows_of
from analysis.statistics.hypotheses import Pair
from analysis.statistics.ratios import mean_over_sites
from base.errors import EyelevelError
from base.files import read_json
from dataset.run_files import DOSE
from dataset.table import require_document, write_document
from measure.host.device_index import PREFIX
from measure.host.pace import PacedProcesses, limited_to_share
from measure.host.quota import remove_abandoned
from measure.instruments.contract import FinishedRun
from measure.instruments.dose import INSTRUMENT, SHARE
from measure.run.load import Observers
from measure.run.load import load as load_page
from measure.run.setting import Loading, Setting
from record.collection import choose_sites
from studies.dose.changes import ALL_PAGES, FEW, MANY, METRICS, changes, line
from studies.dose.measure import DoseMethod, campaign
from studies.dose.section import section
from studies.dose.shares import SHARES, base_network, share_of
from studies.study import Request
from tuning import networks, protocols

DECLARED = hypotheses.load()
PAIR = Pair("tcp+", "quic")
SITE = "demo-light"
CORES = os.sched_getaffinity(0)
# Without differences between pages, so that the truth of a campaign is that of its world.
SAME_PAGES = DoseWorld(pages=0, slopes=0, scatter=0.03)


def requested(folder: Path, **values: Any) -> Request:
    return Request(folder, **{"sites": SITE, "net": "dsl,lte", **values})


def test_every_block_has_each_protocol_with_each_share(tmp_path: Path) -> None:
    planned = campaign(requested(tmp_path, runs=3), nullcontext).campaign
    blocks = planned.plan()
    assert len(blocks) == 2 * 3
    for block in blocks:
        (network,) = {base_network(run.network) for run in block}
        assert len({network + suffix for suffix in ("", "+cpu70", "+cpu50")} & {run.network for run in block}) == 3
        assert sorted((share_of(run.network), run.protocol) for run in block) == sorted(
            (share, protocol) for share in SHARES for protocol in PAIR
        )
    assert len({tuple(share_of(run.network) for run in block) for block in blocks}) > 1
    setting = planned.setting(blocks[0][0])
    assert planned.method.observers(setting, tmp_path) == Observers(processor_share=share_of(setting.network.name))
    plain = planned.networks["lte"]
    assert planned.networks["lte+cpu50"] == replace(plain, name="lte+cpu50")


def test_a_campaign_that_cannot_be_limited_is_refused(tmp_path: Path) -> None:
    def refused() -> AbstractContextManager[object]:
        raise EyelevelError("no control groups")

    with pytest.raises(EyelevelError, match="no control groups"):
        campaign(requested(tmp_path), refused)
    with pytest.raises(EyelevelError, match="leave out --device"):
        campaign(requested(tmp_path, device="phone-mid"), nullcontext)
    with pytest.raises(EyelevelError, match="name two with --proto"):
        campaign(requested(tmp_path, proto="quic"), nullcontext)


@pytest.fixture
def tree() -> Iterator["subprocess.Popen[bytes]"]:
    """A process with two others: one that is to be limited, and one that is not."""
    program = (
        "import subprocess as s; a = s.Popen(['sleep', '1001']); b = s.Popen(['sleep', '1002']); print(flush=True)"
    )
    program += "; input(); a.kill(); b.kill(); a.wait(); b.wait()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        yield process
        process.communicate(b"\n")


def part_of(process: int) -> str | None:
    return "servers" if b"1001" in Path(f"/proc/{process}/cmdline").read_bytes() else None


def move_out() -> None:
    """Move the limited process out of its group."""
    for group in groups_folder().glob(f"{PREFIX}*/{PREFIX}*"):
        for process in (group / "cgroup.procs").read_text().split():
            if part_of(int(process)):
                (groups_folder() / "cgroup.procs").write_text(process)


def existing_limits() -> list[str]:
    """The limits of the processes that are in groups for paces."""
    limits = []
    for group in groups_folder().glob(f"{PREFIX}*/{PREFIX}*"):
        file = next(name for name in ("cpu.max", "cpu.cfs_quota_us") if (group / name).exists())
        commands = [Path(f"/proc/{one}/cmdline").read_bytes() for one in (group / "cgroup.procs").read_text().split()]
        if any(b"1001" in command or b"1002" in command for command in commands):
            limits.append((group / file).read_text().strip())
    return limits


@pytest.mark.needs_control_groups
@pytest.mark.parametrize(("share", "limits"), [(0.5, ("5000", "5000 10000")), (1.0, ("-1", "max 100000", "max 10000"))])
def test_only_processes_with_a_part_are_limited(
    share: float, limits: tuple[str, ...], tree: "subprocess.Popen[bytes]"
) -> None:
    kept: list[dict[str, Any]] = []
    with limited_to_share(tree.pid, part_of, {"servers"}, share, CORES, kept.append):
        (limit,) = existing_limits()
        assert limit in limits
    assert existing_limits() == []
    assert [(account["share"], account["programs"]) for account in kept] == [(share, ["sleep"])]


@pytest.mark.needs_control_groups
def test_a_share_that_is_not_applied_fails_the_load(tree: "subprocess.Popen[bytes]") -> None:
    with (
        pytest.raises(EyelevelError, match="no process of its own for its renderer"),
        limited_to_share(tree.pid, part_of, {"servers", "renderer"}, 0.5, CORES, print),
    ):
        pass
    with (
        pytest.raises(EyelevelError, match="1 processes of the load ran without their limit"),
        limited_to_share(tree.pid, part_of, {"servers"}, 0.5, CORES, print),
    ):
        move_out()
    with (
        pytest.raises(EyelevelError, match="a limited process could run on more than the processors"),
        limited_to_share(tree.pid, part_of, {"servers"}, 0.5, [max(CORES) + 1], print),
    ):
        pass


@pytest.mark.needs_control_groups
def test_no_other_load_takes_a_group_for_abandoned_before_it_is_released(
    tree: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    release = PacedProcesses.release

    def beside_another(processes: PacedProcesses) -> None:
        move_out()
        remove_abandoned(groups_folder(), PREFIX)  # as each load begins
        release(processes)

    monkeypatch.setattr(PacedProcesses, "release", beside_another)
    with limited_to_share(tree.pid, part_of, {"servers"}, 0.5, CORES, print):
        pass
    assert existing_limits() == []


@pytest.mark.needs_namespaces
@pytest.mark.needs_control_groups
@pytest.mark.needs_browser
@pytest.mark.loads
def test_a_load_has_its_share(tmp_path: Path) -> None:
    (site,) = choose_sites(SITE)
    setting = Setting(
        site, replace(networks.load()["lte"], name="lte+cpu50"), protocols.load()["tcp+"], Loading(filmed=False)
    )
    observers = DoseMethod().observers(setting, tmp_path)
    assert load_page(setting, tmp_path, observers=observers) is None
    account = read_json(tmp_path / DOSE)
    # The browser itself, its network stack, pages, and both programs of the server.
    assert account["share"] == 0.5 and account["processes"] >= 5 and account["periods"] > 0
    assert {"nginx", "uwsgi-core"} < {*account["programs"]}
    assert INSTRUMENT.read(FinishedRun(tmp_path, {}, None)) == {SHARE: 0.5}


def covered(world: DoseWorld, campaigns: int, seed: int = 1) -> tuple[float, float]:
    """In how many of so many campaigns intervals of 95 % have the true log ratio without waiting, and the slope."""
    doses = simulated(world, campaigns, seed)
    of_line = line(doses.ratios, doses.waits)
    shares = []
    for values, truth in ((of_line.unwaited, doses.unwaited), (of_line.slope, doses.slope)):
        low, high = mean_over_sites(values).interval(0.95)
        shares.append(float(((low <= truth) & (truth <= high)).mean()))
    return shares[0], shares[1]


@pytest.mark.parametrize(
    "world",
    [DoseWorld(), DoseWorld(heavy=True), DoseWorld(sites=1, blocks=5), DoseWorld(wait_error=0.1), DoseWorld(blocks=3)],
)
def test_a_known_line_is_covered_whatever_the_errors_in_the_waits(world: DoseWorld) -> None:
    # 95 % of 300 campaigns, less three standard errors.
    assert min(covered(world, 300)) >= 0.912


def test_a_regression_on_measured_waits_would_be_off() -> None:
    """Why the slope does not come from such a regression: it misses what the line finds."""
    doses = simulated(DoseWorld(sites=1, blocks=200, pages=0, slopes=0, wait_error=0.1, stalls=0), 20, seed=1)
    fits = [np.polyfit(w.ravel(), r.ravel(), 1)[0] for w, r in zip(doses.waits, doses.ratios, strict=True)]
    assert np.mean(fits) < 0.18 < 0.23 < mean_over_sites(line(doses.ratios, doses.waits).slope).centre.mean()


def of_all(folder: Path, metric: str = "si") -> pd.DataFrame:
    return rows_of(changes(load(folder), [PAIR], DECLARED), pages=ALL_PAGES, metric=metric)


def test_the_changes_of_a_campaign_are_those_of_its_world(tmp_path: Path) -> None:
    table = of_all(write_dose(tmp_path / "dose", replace(SAME_PAGES, blocks=20)))
    assert table["share"].fillna(0).tolist() == [*SHARES, 0]
    assert table["waiting"].to_numpy()[:3] == pytest.approx(SAME_PAGES.waiting, rel=0.2)
    truth = np.expm1(-0.1 + 0.25 * table["waiting"])
    assert table["gain"].to_numpy() == pytest.approx(truth.to_numpy(), abs=0.015)
    assert (table["gain_low"] < table["gain"]).all() and (table["gain"] < table["gain_high"]).all()
    assert table["slope"].iloc[-1] == pytest.approx(0.025, abs=0.01) and table["slope"].iloc[:-1].isna().all()
    assert (table["refusal"] == "").all() and not table["changes_sign"].any()
    assert set(table["blocks"]) == {120} and set(table["sites"]) == {6}


@pytest.mark.parametrize(
    ("world", "reason"),
    [
        (replace(SAME_PAGES, waiting=(0.4, 0.5, 0.6)), r"on site\d the least share of waiting is [34]\d %"),
        (replace(SAME_PAGES, waiting=(0.3, 0.3, 0.25)), "the extrapolation would span more than that"),
        (replace(SAME_PAGES, waiting=(0, 0, 0), busy=0, wait_error=0), "the extrapolation would span more than that"),
        (replace(SAME_PAGES, sites=1, blocks=2), "so at least RUNS=3"),
        (replace(SAME_PAGES, bend=0.1), "not on a line"),
    ],
)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_an_extrapolation_without_ground_is_refused(world: DoseWorld, reason: str, tmp_path: Path) -> None:
    folder = write_dose(tmp_path / "dose", replace(world, waits_of_pages=0.02))
    table = of_all(folder)
    unwaited = table.iloc[-1]
    assert pd.Series([unwaited["refusal"]]).str.contains(reason).all()
    assert np.isnan([unwaited[name] for name in ("gain", "gain_low", "slope", "p")]).all()
    said = section(folder)
    assert (
        said
        and "not extrapolated to no waiting." in said.paragraphs[0]
        and "Not extrapolated: SI on LTE" in said.paragraphs[1]
    )


def test_a_sign_that_changes_with_the_processor_is_named(tmp_path: Path) -> None:
    folder = write_dose(
        tmp_path / "dose", replace(SAME_PAGES, unwaited=-0.15, slope=0.6), requests=(5, 6, 7, 60, 70, 80)
    )
    table = changes(load(folder), [PAIR], DECLARED)
    assert table["changes_sign"].all() and set(table["pages"]) == {ALL_PAGES, FEW, MANY}
    said = section(folder)
    assert said
    lead = said.paragraphs[0]
    assert lead.startswith("SI of QUIC against TCP+ on LTE") and "extrapolated to no waiting" in lead
    assert "Whether it is faster depends on the processor: SI, PLT, FCP and LCP." in lead
    (figure,) = said.figures
    drawn = figure.draw(*figure.arguments)
    assert len(drawn.axes) == len(METRICS) and smallest_type(drawn) >= SMALL


def test_blocks_that_lack_a_run_count_at_the_other_shares_alone(tmp_path: Path) -> None:
    table = of_all(write_dose(tmp_path / "dose", without={"lte+cpu70": 4}))
    assert table["blocks"].tolist() == [60, 36, 60, 36]


def test_other_campaigns_have_no_section(tmp_path: Path) -> None:
    folder = write_dose(tmp_path / "dose", replace(SAME_PAGES, sites=1, blocks=1))
    assert section(folder)
    write_document(folder, replace(require_document(folder), study={"name": "grid"}))
    assert section(folder) is None and section(tmp_path) is None
