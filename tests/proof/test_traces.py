"""A network whose rate, delay and loss follow a file has that rate within 1 %, and that delay within 1 ms.

Each check of its validation fails for another file.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest
from support.networks import failures, measured

from base.structure import to_json
from measure.validate import network
from measure.validate.site import WINDOW_PAGE, write_validation_sites
from record.site import Site
from tuning import networks
from tuning.networks import Network

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.alone]

# Generated: no measured network.
RATES = "time_s,rate_mbps,delay_ms,loss\n0,8,0,0\n0.4,16,20,0.02\n0.9,12,5,0\n1.6,6,40,0.01\n2,0,0,0\n"
SLOWER = RATES.replace("16,20", "12,20")
STEPS = "time_s,delay_ms,loss\n" + "".join(
    f"{number / 5:g},{(37 * number) % 50},{0.01 * (number % 3):g}\n" for number in range(51)
)
LATER = "time_s,delay_ms,loss\n" + "".join(
    f"{number / 5:g},{(37 * number + 25) % 50},{0.01 * (number % 3):g}\n" for number in range(51)
)
LOSSIER = STEPS.replace(",0.02", ",0.2")
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
    assert measurement.down.trace_mbps
    assert measurement.down.mbps == pytest.approx(measurement.down.trace_mbps, rel=0.01)
    for way in (measurement.up, measurement.down):
        assert way.conditions and way.conditions.packets > 900
    assert measurement.up.conditions and measurement.up.conditions.off_ms < 1


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
    # The emulated network plays other files than the probe believes.
    monkeypatch.setattr(network, "to_json", lambda _: to_json(said))
    measurement = network.measure_network(played, sites[WINDOW_PAGE])
    assert failures(network.judge_network(said, measurement)) == wrong
