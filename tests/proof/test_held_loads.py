"""A load that was prepared long before its turn has the same results as one that begins as soon as it is ready.

Takes about ten minutes, on a machine that does nothing else.
"""

import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from dataset.metrics import read_metrics
from dataset.run_files import TIMES
from measure.campaign.method import PAGES
from measure.run.evidence import read_evidence
from measure.run.gates import LATE_WAKEUP_MS, LATE_WAKEUPS
from measure.run.setting import Circumstances, Setting
from record.demo import generate
from record.site import write_site
from tuning import networks, protocols

PAIRS = 20
# The time for which a prepared load is held: longer than the analysis of a short run's film
# (`measure.campaign.analyses`).
HELD_S = 8.0
METRICS = ("fvc", "lvc", "vc85", "si", "plt")
# The difference that a campaign may call equivalent, and the probability that chance alone fails a metric here.
MARGIN, RISK = 0.02, 0.001


@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
@pytest.mark.timing
@pytest.mark.parametrize("protocol", ["tcp", "quic"])
def test_metrics_do_not_depend_on_how_long_a_load_was_prepared(protocol: str, tmp_path: Path) -> None:
    site = write_site(generate("demo-news"), tmp_path / "site")
    setting = Setting(site, networks.load()["dsl"], protocols.load()[protocol])
    ratios = []
    for pair in range(PAIRS):
        order = (0.0, HELD_S) if pair % 2 else (HELD_S, 0.0)
        metrics = {held_s: metrics_of(setting, tmp_path / f"{pair}-{held_s:g}", held_s) for held_s in order}
        ratios.append([np.log(metrics[HELD_S][name] / metrics[0.0][name]) for name in METRICS])
    means, errors = np.mean(ratios, axis=0), stats.sem(ratios, axis=0)
    for name, mean, error in zip(METRICS, means, errors, strict=True):
        half = error * stats.t.ppf(1 - RISK / 2, PAIRS - 1)
        print(f"{protocol} {name}: {mean:+.4f}, from {mean - half:+.4f} to {mean + half:+.4f}")
        assert abs(mean) - half < MARGIN, f"{name} differs by {mean:+.1%}"


def metrics_of(setting: Setting, folder: Path, held_s: float) -> dict[str, float]:
    """The metrics of a load that is ready for `held_s` before it begins."""
    folder.mkdir()
    load = PAGES.prepare(setting, None, folder)
    assert load
    load.await_ready()
    time.sleep(held_s)
    PAGES.make(replace(setting, seed=None), Circumstances(1, "here"), folder, preparation=load)
    times = json.loads((folder / TIMES).read_text())
    assert times["begin"] - times["ready"] >= held_s
    PAGES.analyse(folder)
    evidence = read_evidence(folder)
    assert not evidence.failures
    assert evidence.late_wakeups <= LATE_WAKEUPS and evidence.latest_wakeup_ms <= LATE_WAKEUP_MS
    values = {name: value for name, value in read_metrics(evidence).items() if name in METRICS and value is not None}
    assert set(values) == set(METRICS)
    return values
