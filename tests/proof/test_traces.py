"""A network whose rate, delay and loss follow a file has this rate within 1 %, and this delay within 1 ms.

Each check of its validation fails for another file.
"""

from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest
from support.networks import failures, measured

from base.structure import to_json
from measure.validate.network import path
from measure.validate.network.path import judge_network, measure_network
from measure.validate.site import WINDOW_PAGE, write_validation_sites
from record.site import Site
from tuning import networks
from tuning.impairments.contract import DOWN, UP
from tuning.networks import Network

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.timing]

# Generated, not from a measured network.
RATES = "time_s,rate_mbps,delay_ms,loss\n0,8,0,0\n0.4,16,20,0.02\n0.9,12,5,0\n1.6,6,40,0.01\n2,0,0,0\n"
SLOWER = RATES.replace("16,20", "12,20")
STEPS = "time_s,delay_ms,loss\n" + "".join(
    f"{number / 5:g},{(37 * number) % 50},{0.01 * (number % 3):g}\n" for number in range(51)
)
LATER = "time_s,delay_ms,loss\n" + "".join(
    f"{number / 5:g},{(37 * number + 25) % 50},{0.01 * (number % 3):g}\n" for number in range(51)
)
LOSSIER = STEPS.replace(",0.02", ",0.2")


def walk(seconds: int, step_ms: int, usual_mbps: float) -> str:
    """A rate that wanders from step to step by up to a third, as cellular rates do."""
    draws, mbps, rows = Random(3), usual_mbps, ["time_s,rate_mbps"]
    for step in range(seconds * 1000 // step_ms + 1):
        rows.append(f"{step * step_ms / 1e3:.3f},{mbps:.3f}")
        mbps = min(max(mbps * draws.uniform(0.7, 1.4), usual_mbps / 8), usual_mbps * 4)
    return "\n".join(rows) + "\n"


KINDS = {
    "cellular": walk(20, 100, 12),
    "slow": walk(20, 100, 1),
    "fast": walk(10, 50, 25),
    # The first half second of each 15 s is an outage, as on a satellite link.
    "outages": "time_s,rate_mbps\n0,0\n0.5,20\n7,12\n15,0\n15.5,15\n30,0\n",
    "short": "time_s,rate_mbps\n0,30\n0.03,6\n0.1,0\n0.117,0\n",
}
NETWORK = """
[mine]
min_rtt_ms = 20
queue_ms = 100
up_mbps = 10
up_conditions = "{up}"
down_trace = "{down}"
down_conditions = "{down}"
"""


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Site]:
    return write_validation_sites(tmp_path_factory.mktemp("sites"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {"rates": RATES, "slower": SLOWER, "steps": STEPS, "later": LATER, "lossier": LOSSIER}
    for name, text in files.items():
        (tmp_path / f"{name}.csv").write_text(text)
    return tmp_path


def following(folder: Path, up: str, down: str) -> Network:
    (folder / networks.FILENAME).write_text(NETWORK.format(up=f"{up}.csv", down=f"{down}.csv"))
    return networks.load(folder / networks.FILENAME)["mine"]


def test_rates_delays_and_losses_are_those_of_the_files(folder: Path, sites: Mapping[str, Site]) -> None:
    measurement = measured(following(folder, "steps", "rates"), sites)
    assert measurement.down.trace
    assert measurement.down.mbps == pytest.approx(measurement.down.trace.mbps, rel=0.01)
    for way in (measurement.up, measurement.down):
        assert way.conditions and way.conditions.packets > 900
    assert measurement.up.conditions and measurement.up.conditions.off_ms < 1


@pytest.mark.parametrize("direction", [UP, DOWN])
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_rates_is_followed(kind: str, direction: str, tmp_path: Path, sites: Mapping[str, Site]) -> None:
    (tmp_path / "rates.csv").write_text(KINDS[kind])
    steady = DOWN if direction == UP else UP
    text = f'[mine]\nmin_rtt_ms = 30\nqueue_ms = 100\n{steady}_mbps = 10\n{direction}_trace = "rates.csv"\n'
    (tmp_path / networks.FILENAME).write_text(text)
    network = networks.load(tmp_path / networks.FILENAME)["mine"]
    measurement = measured(network, sites)
    way = getattr(measurement, direction)
    assert way.mbps == pytest.approx(way.trace.mbps, rel=0.01)
    # The rate is also near the mean of its file.
    assert way.mbps == pytest.approx(network.rate_of(direction), rel=0.1)


@pytest.mark.parametrize(
    ("up", "down", "wrong"),
    [
        ("later", "rates", {"uplink delay over time, median deviation"}),
        ("lossier", "rates", {"uplink loss"}),
        ("steps", "slower", {"downlink rate"}),
    ],
)
def test_what_follows_another_file_fails(
    up: str, down: str, wrong: set[str], folder: Path, sites: Mapping[str, Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    said, played = following(folder, "steps", "rates"), following(folder, up, down)
    # The emulated network plays other files than the probe assumes.
    monkeypatch.setattr(path, "to_json", lambda _: to_json(said))
    measurement = measure_network(played, sites[WINDOW_PAGE])
    assert failures(judge_network(said, measurement)) == wrong
