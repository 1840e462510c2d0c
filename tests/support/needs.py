"""Requirements of some tests: for each a mark, a check whether it is met, and how to meet it.

A test only has `@pytest.mark.needs_namespaces`; conftest.py skips it if the requirement is not met, and counts the
skipped tests at the end of the session.
"""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from clients.shells_peer import BUFFER_BYTES, hold_everything

from base.errors import EyelevelError
from base.namespaces import AS_ORDINARY_USER, has_capabilities
from base.places import PROJECT, cache_dir, tool
from base.privileges import require_namespaces
from measure.host.timekeeping import timekeeping
from support.axe import AXE
from support.material import CORPUS, CORPUS_VARIABLE, FILMS_VARIABLE, REFERENCE, film_paths

# Other projects' programs that check our output.
FORMAT_CHECKERS = cache_dir() / "format_checkers" / "bin"
# Programs of services that some proofs run directly.
CLUSTER_PROGRAMS = cache_dir() / "unpacked" / "clusters"


@dataclass(frozen=True)
class Need:
    """A requirement: its name, as in the mark `needs_<name>`, its noun in messages, how to meet it, and whether it is
    met."""

    name: str
    noun: str
    remedy: str
    is_met: Callable[[], bool]

    @property
    def mark(self) -> str:
        return f"needs_{self.name}"

    @property
    def reason(self) -> str:
        return f"need {self.noun} ({self.remedy})"


@cache
def _has_rust() -> bool:
    check = [str(PROJECT / "setup" / "cargo"), "--check"]
    return subprocess.run(check, capture_output=True, check=False).returncode == 0


@cache
def _is_installed(*programs: str) -> bool:
    try:
        return all(tool(program) for program in programs)
    except EyelevelError:
        return False


@cache
def _has_namespaces() -> bool:
    try:
        require_namespaces("this")
    except EyelevelError:
        return False
    return True


@cache
def _has_control_groups() -> bool:
    command = [sys.executable, "-m", "measure.host.quota", "0.5", "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@cache
def _has_large_buffers() -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        hold_everything(receiver)
        # The kernel also counts its own structures, and reports twice the requested size (socket(7)).
        return receiver.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) >= 2 * BUFFER_BYTES


@cache
def _has_user_namespaces() -> bool:
    command = [*AS_ORDINARY_USER, "true"]
    return bool(shutil.which("unshare")) and subprocess.run(command, capture_output=True, check=False).returncode == 0


@cache
def _has_tex() -> bool:
    if not (shutil.which("pdflatex") and shutil.which("kpsewhich")):
        return False
    missing = [
        subprocess.run(["kpsewhich", name], capture_output=True, check=False).returncode
        for name in ("acmart.cls", "IEEEtran.cls", "booktabs.sty", "longtable.sty", "pdflscape.sty")
    ]
    return not any(missing)


NEEDS = (
    Need("tex", "TeX with acmart and IEEEtran", "run `setup/packages proof`", _has_tex),
    Need("namespaces", "namespaces and /dev/net/tun", "`make replay` says what is missing", _has_namespaces),
    Need(
        "capabilities",
        "capabilities over their own network",
        "tests/shells/test_without_root.py runs them with those of a user namespace",
        has_capabilities,
    ),
    Need(
        "large_buffers",
        f"receive buffers of {BUFFER_BYTES >> 20} MB",
        f"as root, or with net.core.rmem_max={BUFFER_BYTES}",
        _has_large_buffers,
    ),
    Need(
        "kernel_stamps",
        "the kernel's stamps of packets",
        "run `make test` as root, too",
        lambda: _has_namespaces() and _is_installed("mm-net") and "kernel stamps" in timekeeping(),
    ),
    Need(
        "control_groups",
        "writable control groups for processor time",
        "run `make test` as root, outside containers, most of which do not allow control groups",
        _has_control_groups,
    ),
    Need("root", "another user than their own", "run `make test` as root, too", lambda: os.geteuid() == 0),
    Need("shells", "the shells", "run `make setup`", lambda: _is_installed("mm-net", "mm-delay", "mm-link", "mm-loss")),
    Need("mahimahi", "Mahimahi's shells", "run `make setup SHELLS=mahimahi`", lambda: _is_installed("mahimahi")),
    Need("quic_server", "quic_server", "run `make setup`", lambda: _is_installed("quic_server")),
    Need(
        "quinn",
        "quinn_server, quinn_client and masque_proxy",
        "run `make setup SERVERS=quinn`",
        lambda: _is_installed("quinn_server", "quinn_client", "masque_proxy"),
    ),
    Need("caddy", "Caddy", "run `make setup SERVERS=caddy`", lambda: _is_installed("caddy")),
    Need("haproxy", "HAProxy", "run `make setup HOPS=haproxy`", lambda: _is_installed("haproxy")),
    Need(
        "browser",
        "the packaged Chromium, and user namespaces for its sandbox",
        "run `make setup`; the kernel must allow them",
        lambda: _is_installed("chromium", "chromedriver") and _has_user_namespaces(),
    ),
    Need(
        "firefox",
        "Firefox and its driver",
        "run `make setup BROWSERS=firefox`",
        lambda: _is_installed("firefox-esr", "geckodriver") and _has_user_namespaces(),
    ),
    Need("rust", "a compiler of Rust", "run `make setup`", _has_rust),
    Need("go", "Go", "install the package golang-go", lambda: bool(shutil.which("go"))),
    Need("git", "git", "install the package git", lambda: _is_installed("git")),
    Need(
        "format_checkers",
        "checkers of formats",
        "run `setup/setup.sh proof/format_checkers`",
        lambda: (FORMAT_CHECKERS / "wacz").is_file(),
    ),
    Need("axe", "axe-core", "run `make setup`", AXE.is_file),
    Need("mkdocs", "mkdocs", "run `make docs`", lambda: _is_installed("mkdocs")),
    Need("zsh", "zsh", "install the package zsh", lambda: _is_installed("zsh")),
    Need("fish", "fish", "install the package fish", lambda: _is_installed("fish")),
    Need("cluster_programs", "sshd and Slurm", "run `setup/unpack clusters`", CLUSTER_PROGRAMS.is_dir),
    Need("user_namespaces", "user namespaces", "the kernel must allow them", _has_user_namespaces),
    Need("two_cores", "two cores", "a larger machine", lambda: len(os.sched_getaffinity(0)) > 1),
    Need(
        "corpus",
        "the corpus",
        f"{CORPUS_VARIABLE}=FOLDER, a folder with mahimahi/, warc/ and har/, each with recordings",
        lambda: CORPUS is not None,
    ),
    Need(
        "films",
        "films of campaigns",
        f"{FILMS_VARIABLE}=FOLDER, a folder with campaigns that kept their films",
        lambda: bool(film_paths()),
    ),
    Need(
        "reference",
        "the studies' published numbers",
        "reference/ beside the corpus, with wolsing2019.csv and slides_plt.csv",
        REFERENCE.is_dir,
    ),
)
