"""A browser's packages are kept, and installed again after an update: by apt and dpkg, in a system of its own."""

import os
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

from base.places import PROJECT

# apt and dpkg work in this folder instead of the system's.
APT = """
Dir "{system}";
Dir::State::status "{system}/var/lib/dpkg/status";
Dir::Bin::methods "/usr/lib/apt/methods";
Dir::Bin::dpkg "/usr/bin/dpkg";
DPkg::Options {{"--root={system}"; "--force-not-root"; "--force-script-chrootless"; "--log=/dev/null";}};
APT::Sandbox::User "";
"""
FOLDERS = ["etc/apt/apt.conf.d", "etc/apt/preferences.d", "var/lib/dpkg/updates", "var/lib/dpkg/info"]
FOLDERS += ["var/lib/apt/lists/partial", "var/cache/apt/archives/partial", "var/log/apt", "repository"]
PACKAGES = ("chromium", "chromium-driver")
STEP = "set -euo pipefail; shopt -s inherit_errexit; . setup/common.sh; . setup/steps/9-browser_packages.sh; {}"


class System:
    """A system with only a browser and a source of packages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "system"
        self.kept = folder / "cache" / "browsers" / "chromium"
        for name in FOLDERS:
            (self.folder / name).mkdir(parents=True)
        (self.folder / "var/lib/dpkg/status").touch()
        (folder / "apt.conf").write_text(APT.format(system=self.folder))
        (self.folder / "etc/apt/sources.list").write_text(f"deb [trusted=yes] file:{self.folder}/repository ./\n")
        (folder / "cache").mkdir()
        (folder / "cache" / "CACHEDIR.TAG").touch()
        self.environment = {
            **os.environ,
            "APT_CONFIG": str(folder / "apt.conf"),
            "DPKG_ADMINDIR": str(self.folder / "var/lib/dpkg"),
            "EYELEVEL_CACHE": str(folder / "cache"),
        }

    def run(self, *command: str | Path) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command, cwd=PROJECT, env=self.environment, capture_output=True, text=True, check=False, timeout=60
        )

    def require(self, *command: str | Path) -> str:
        done = self.run(*command)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def offer(self, version: str) -> None:
        """Offer the browser in this version, and no longer in the one before."""
        index = ""
        for name in PACKAGES:
            fields = {"Package": name, "Source": "chromium", "Version": version, "Architecture": "all"}
            fields |= {"Maintainer": "nobody <nobody@example.org>", "Description": "a browser"}
            control = "".join(f"{field}: {value}\n" for field, value in fields.items())
            tree = self.folder / "trees" / f"{name}-{version}"
            (tree / "DEBIAN").mkdir(parents=True)
            (tree / "DEBIAN" / "control").write_text(control)
            for older in (self.folder / "repository").glob(f"{name}_*"):
                older.unlink()
            package = self.folder / "repository" / f"{name}_{version}.deb"
            self.require("dpkg-deb", "--build", tree, package)
            content = package.read_bytes()
            index += f"{control}Filename: ./{package.name}\nSize: {len(content)}\n"
            index += f"SHA256: {sha256(content).hexdigest()}\n\n"
        (self.folder / "repository" / "Packages").write_text(index)
        self.require("apt-get", "update")

    def update(self, version: str) -> None:
        """Offer this version, and install it."""
        self.offer(version)
        self.require("apt-get", "install", "--yes", *PACKAGES)

    def keep(self) -> str:
        """Keep the installed version as the set-up does; what this prints."""
        assert self.run("bash", "-c", STEP.format("present")).returncode != 0
        return self.require("bash", "-c", STEP.format("act && present"))

    def restore(self, version: str) -> tuple[int, str]:
        done = self.run(PROJECT / "setup" / "browser", version)
        return done.returncode, done.stderr if done.returncode else done.stdout.splitlines()[-1]

    def installed(self) -> set[str]:
        return set(self.require("dpkg-query", "-W", "-f", "${Version} ", *PACKAGES).split())


@pytest.fixture
def system(tmp_path: Path) -> System:
    system = System(tmp_path)
    system.update("1.0-1")
    return system


@pytest.mark.needs_root
def test_a_version_that_was_kept_is_installed_again(system: System) -> None:
    assert system.keep() == ""
    system.update("2.0-1")
    assert system.keep() == ""
    assert system.installed() == {"2.0-1"}
    status, said = system.restore("1.0")
    assert (status, said.partition(";")[0]) == (0, "chromium 1.0-1 is installed again")
    assert system.installed() == {"1.0-1"}
    assert system.restore("1.0-1") == (0, "chromium 1.0-1 is installed")
    assert system.restore("2.0-1")[0] == 0
    assert system.installed() == {"2.0-1"}


@pytest.mark.needs_root
def test_what_cannot_be_installed_again_is_refused_in_one_line(system: System) -> None:
    system.keep()
    system.update("2.0-1")
    system.keep()
    status, said = system.restore("3.0")
    assert (status, said.splitlines()) == (
        1,
        [
            f"eyelevel: no browser of version 3.0 is kept in {system.kept.parent}; there are: "
            "chromium 1.0-1, chromium 2.0-1"
        ],
    )
    (package,) = (system.kept / "1.0-1").glob("chromium_*.deb")
    package.write_bytes(package.read_bytes() + b"x")
    status, said = system.restore("1.0")
    assert status == 1
    assert f"{system.kept}/1.0-1 no longer has the packages that were kept; nothing was installed" in said
    assert system.installed() == {"2.0-1"}


def test_a_version_that_apt_no_longer_offers_is_noted_once(system: System) -> None:
    system.offer("2.0-1")
    assert "note: apt no longer offers the packages of chromium 1.0-1" in system.keep()
    assert system.run("bash", "-c", STEP.format("present")).returncode == 0
    assert system.restore("1.0")[1].endswith(
        f"no browser of version 1.0 is kept in {system.kept.parent}; there are: none\n"
    )
