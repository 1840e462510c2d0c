"""A page on a phone: the data that it sees, and the pace of the browser."""

import subprocess
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from support.leaks import groups_folder

from base.errors import EyelevelError
from base.files import read_json
from dataset.run_files import DEVICE_PACE
from measure.host import device_index
from measure.host.device_index import PREFIX, limits
from measure.host.pace import PacedProcesses
from measure.run.evidence import read_evidence
from measure.run.load import load
from measure.run.setting import Loading, Setting
from record.http1 import Response
from record.site import Exchange, Recording, Site, write_site
from tuning import devices, networks, protocols

ROUGHLY = 1.0
URL = "https://phone.example/"
# A page whose requests report what it sees.
PAGE = b"""<!doctype html><meta name="viewport" content="width=device-width"><title>a phone</title><p>hello<script>
const view = { width: innerWidth, ratio: devicePixelRatio, touch: navigator.maxTouchPoints > 0 };
const { mobile, platform } = navigator.userAgentData;
navigator.userAgentData.getHighEntropyValues(["model"]).then(({ model }) =>
  fetch("/view?" + new URLSearchParams({ ...view, mobile, platform, model })));
</script>"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    response = Response(200, "OK", (("Content-Type", "text/html"),), PAGE)
    return write_site(
        Recording(URL, (Exchange("GET", URL, response, "192.0.2.1"),), {"tool": "test"}), tmp_path / "site"
    )


@pytest.mark.needs_control_groups
def test_a_process_that_ended_before_it_was_limited_is_no_part_that_is() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    looks = [[ended.pid], []]

    class EndedProcesses(PacedProcesses):
        def outside(self) -> list[int]:
            return looks.pop(0)

    with limits() as (groups, top), ExitStack() as locks:
        processes = EndedProcesses(groups, top, ended.pid, lambda _: "renderer")
        processes.take_in(0.5, locks)
        processes.release()
        assert processes.parts() == set()


@pytest.mark.needs_namespaces
@pytest.mark.needs_control_groups
@pytest.mark.needs_browser
@pytest.mark.loads
@pytest.mark.timing  # otherwise the processor keeps no pace
def test_a_phone_has_its_window_its_hints_and_its_pace(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # How exactly a pace is kept depends on the machine, so short trials suffice; finding it is tested with simulated
    # machines (`test_device_index`).
    monkeypatch.setattr(device_index, "TOLERANCE", ROUGHLY)
    monkeypatch.setattr(device_index, "FEW", 1)
    whole, shorter = "HALF_MS = 1000;", "HALF_MS = 200;"
    benchmark = device_index.BENCHMARK.read_text()
    assert whole in benchmark
    (script := tmp_path / device_index.BENCHMARK.name).write_text(benchmark.replace(whole, shorter))
    monkeypatch.setattr(device_index, "BENCHMARK", script)
    phone = devices.load()["phone-mid"]
    loading = Loading(filmed=False, quiet_ms=500, browser="chromium-on-phone-mid")
    setting = Setting(site, networks.load()["dsl"], protocols.load()["quic"], loading)
    (folder := tmp_path / "load").mkdir()
    before = {*groups_folder().glob(f"{PREFIX}*")}  # another process may be measuring on this machine
    assert load(setting, folder) is None
    urls = [urlsplit(request.url) for request in read_evidence(folder, filmed=False).requests]
    (view,) = [dict(parse_qsl(url.query)) for url in urls if url.path == "/view"]
    assert view == {
        "width": str(phone.width),
        "ratio": f"{phone.pixel_ratio:g}",
        "touch": "true",
        "mobile": "true",
        "platform": "Android",
        "model": phone.model,
    }
    account = read_json(folder / DEVICE_PACE)
    assert account["index"] == pytest.approx(phone.index, rel=ROUGHLY)
    assert 0 < account["share"] < 1
    # The processes are at least the browser itself, its network stack, and pages. The kernel has stopped them.
    assert account["processes"] >= 3 and account["stopped"] > 0
    assert not {*groups_folder().glob(f"{PREFIX}*")} - before


def test_a_device_that_cannot_be_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "devices.toml").write_text('[toaster]\nlike = "phone-mid"\nindex = 3\n')
    monkeypatch.setenv("EYELEVEL_TUNING", str(tmp_path))
    with pytest.raises(EyelevelError, match=r"\[toaster\]: index must be from 200 to 5000"):
        devices.load()
