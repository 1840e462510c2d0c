"""`eyelevel doctor` names what makes a machine unfit for measuring, each with its remedy."""

from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from base.errors import EyelevelError
from eyelevel import doctor
from eyelevel.doctor import (
    Finding,
    of_clock,
    of_governors,
    of_load,
    of_python,
    of_rights,
    of_steal,
    programs_here,
    stolen_share,
)


def clocks(folder: Path, current: str, available: str) -> list[Finding]:
    (folder / "current_clocksource").write_text(f"{current}\n")
    (folder / "available_clocksource").write_text(f"{available} \n")
    return list(of_clock(folder))


def test_a_slow_clock_is_named_with_the_faster_one_or_with_where_to_look(tmp_path: Path) -> None:
    assert list(of_clock(tmp_path)) == []
    assert clocks(tmp_path, "tsc", "tsc hpet acpi_pm") == []
    [slow] = clocks(tmp_path, "hpet", "tsc hpet acpi_pm")
    assert slow.what == "the clock source is hpet, which is slow to read"
    assert slow.remedy == f"echo tsc | sudo tee {tmp_path}/current_clocksource"
    [only] = clocks(tmp_path, "hpet", "hpet acpi_pm")
    assert "dmesg" in only.remedy


def test_a_governor_that_follows_the_load_is_named(tmp_path: Path) -> None:
    for number, governor in enumerate(("performance", "powersave", "schedutil")):
        folder = tmp_path / f"cpu{number}" / "cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_governor").write_text(f"{governor}\n")
        assert bool(list(of_governors(tmp_path))) == (number > 0)
    [finding] = of_governors(tmp_path)
    assert "(governor powersave, schedutil)" in finding.what and "echo performance | sudo tee" in finding.remedy


@pytest.mark.parametrize(("stolen", "count"), [(0, 0), (10, 0), (11, 1)])
def test_stolen_time_is_a_share_of_all_time(stolen: int, count: int) -> None:
    stat = f"cpu  100 0 100 {800 - stolen} 0 0 0 {stolen} 50 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n"
    assert stolen_share(stat) == stolen / 1000
    assert len(list(of_steal(stat))) == count
    assert stolen_share("") == 0


def test_a_busy_machine_is_named() -> None:
    assert list(of_load(1.0, 2)) == []
    [finding] = of_load(1.1, 2)
    assert finding.what == "other programs are running (load 1.1 on 2 processors)"


def test_packages_that_are_not_as_pinned_are_named() -> None:
    installed = {"click": "8.1", "rich": "13.0"}

    def version(name: str) -> str:
        if name not in installed:
            raise PackageNotFoundError(name)
        return installed[name]

    pinned = "# pinned\nclick==8.1 \\\n    --hash=x\nrich==13.1\nnumpy==2.0\n"
    [finding] = of_python(pinned, version)
    assert finding.what == "Python packages are not as pinned: rich 13.0 (pinned: 13.1), numpy missing (pinned: 2.0)"
    assert list(of_python("click==8.1\n", version)) == []


def test_each_missing_right_and_program_is_a_finding_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = ["namespaces, which this kernel forbids to users; allow them with: x", "/dev/net/tun; load its module"]
    monkeypatch.setattr(doctor, "missing_prerequisites", lambda: missing)
    findings = [f"{finding.what}; {finding.remedy}" for finding in of_rights()]
    assert findings[:2] == [f"measuring needs {text}" for text in missing]

    def version_of(name: str, option: str) -> str:
        if name in ("nginx", "caddy"):
            raise EyelevelError(f"the program {name} is not installed; run 'make setup'")
        return f"{name} 1"

    monkeypatch.setattr(doctor, "version_of", version_of)
    monkeypatch.setattr(doctor, "browsertime", lambda: "1")
    programs, absent = programs_here()
    # Caddy is optional.
    assert [(one.what, one.remedy) for one in absent] == [("the program nginx is not installed", "run 'make setup'")]
    assert programs["chromium"] == "chromium 1" and not {"nginx", "caddy"} & programs.keys()
