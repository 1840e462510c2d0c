"""The machine and its programs, for a bug report, and what makes the machine unfit for measuring.

Whatever a campaign requires before its first run is tried here by the same functions.
"""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import psutil

from base.errors import EyelevelError
from base.places import PROJECT, RESULTS, cache_dir
from base.privileges import missing_prerequisites
from base.words import in_bytes, plural
from browsers.registry import all_browsers
from measure.campaign.forecast import SPARE_BYTES
from measure.host.lanes import MEMORY_OF_LOAD_BYTES
from measure.host.machine import CAPTURING, COMMON, browsertime, machine, version_of
from measure.host.timekeeping import CONTAINER, priority_warning, timekeeping
from measure.host.wakefulness import ASLEEP, LATENCY, idle_processors
from replay.shells.registry import all_shells
from servers.registry import all_servers
from tuning.defaults import DEFAULT_BROWSER, DEFAULT_SHELLS
from tuning.kernel import has_congestion_control, loading_of
from tuning.protocols import TRANSPORTS

CLOCK_SOURCES = Path("/sys/devices/system/clocksource/clocksource0")
# The clock sources that a program reads without calling the kernel (vDSO).
FAST_CLOCKS = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page")
PROCESSORS = Path("/sys/devices/system/cpu")
GOVERNORS = "cpu[0-9]*/cpufreq/scaling_governor"
GOVERNOR = "performance"
STAT = Path("/proc/stat")
# The columns of a processor's line in /proc/stat (proc(5)) that add up to all time, and that of time stolen by others.
TIMES, STEAL = slice(1, 9), 7
# The share of the time since boot that the host of a virtual machine may have kept for others.
MOST_STOLEN = 0.01
# The share of the processors that other programs may use: the load average of the last minute.
MOST_LOAD = 0.5
LEAST_PROCESSORS = 2
PINNED = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)
CONGESTION_CONTROL = "bbr"


@dataclass(frozen=True)
class Finding:
    """A reason why the machine is unfit for measuring, and what to do about it."""

    what: str
    remedy: str


@dataclass(frozen=True)
class Examination:
    """The `facts` on the machine and the versions of its `programs`, for a bug report, and all `findings`."""

    facts: Mapping[str, str]
    programs: Mapping[str, str]
    findings: tuple[Finding, ...]


def examine() -> Examination:
    """The examination of this machine."""
    programs, missing = programs_here()
    findings = [*of_machine(), *of_rights(), *missing, *of_versions()]
    return Examination(facts(), programs, tuple(findings))


def facts() -> dict[str, str]:
    """The machine in words."""
    known, memory = machine(), psutil.virtual_memory()
    governors = dict.fromkeys(_read(path) for path in PROCESSORS.glob(GOVERNORS))
    with suppress(EyelevelError):
        known["timekeeping"] = timekeeping()
    return {
        "system": f"{known['system']}, kernel {platform.release()}",
        "processor": f"{known['cpu']}, {plural('processor', int(known['cpus']))}",
        "memory": f"{in_bytes(memory.total)}, {in_bytes(memory.available)} available",
        "disk": ", ".join(f"{in_bytes(free)} free for {place}" for place, free in free_bytes().items()),
        "virtual": ", ".join(_virtual()) or "no",
        "stolen time": f"{stolen_share(_read(STAT)):.2%} since boot",
        "load": f"{os.getloadavg()[0]:.1f}",
        "clock source": _read(CLOCK_SOURCES / "current_clocksource") or "unknown",
        "governor": ", ".join(governors) or "none",
        "timekeeping": str(known.get("timekeeping", "unknown")),
        "idle processors": idle_processors(),
        "python": platform.python_version(),
    }


def _virtual() -> Iterator[str]:
    """The kinds of virtual machine and container that this is."""
    if re.search(r"^flags\b.*\bhypervisor\b", _read(Path("/proc/cpuinfo")), re.MULTILINE):
        yield f"virtual machine ({_read(Path('/sys/class/dmi/id/sys_vendor')) or 'of an unknown kind'})"
    marks = (os.environ.get(CONTAINER), Path("/.dockerenv").exists(), Path("/run/.containerenv").exists())
    if any(marks):
        yield "container"


def of_machine() -> Iterator[Finding]:
    """The findings on the processors, the memory, the clock and the disks."""
    if (count := len(os.sched_getaffinity(0))) < LEAST_PROCESSORS:
        yield Finding(f"there is {plural('processor', count)}", "use a machine with two or more")
    if (free := psutil.virtual_memory().available) < MEMORY_OF_LOAD_BYTES:
        remedy = f"end other programs: a load needs {in_bytes(MEMORY_OF_LOAD_BYTES)}"
        yield Finding(f"{in_bytes(free)} of memory are available", remedy)
    for place, free in free_bytes().items():
        if free < SPARE_BYTES:
            yield Finding(f"{in_bytes(free)} of disk are free for {place}", f"free {in_bytes(SPARE_BYTES)} or more")
    yield from of_clock()
    yield from of_governors()
    yield from of_steal(_read(STAT))
    yield from of_load(os.getloadavg()[0], count)


def of_clock(folder: Path = CLOCK_SOURCES) -> Iterator[Finding]:
    """The finding that the kernel's clock is slow to read; `folder` is the kernel's of clock sources."""
    name, available = _read(folder / "current_clocksource"), _read(folder / "available_clocksource").split()
    if name and name not in FAST_CLOCKS:
        better = next((one for one in FAST_CLOCKS if one in available), None)
        set_it = f"echo {better} | sudo tee {folder / 'current_clocksource'}"
        unstable = "see why the kernel refuses the processor's own: dmesg | grep -i -e clocksource -e tsc"
        yield Finding(f"the clock source is {name}, which is slow to read", set_it if better else unstable)


def of_governors(processors: Path = PROCESSORS) -> Iterator[Finding]:
    """The finding that processors change their clock rate with the load; `processors` is the kernel's folder."""
    others = {governor for path in processors.glob(GOVERNORS) if (governor := _read(path)) != GOVERNOR}
    if others:
        remedy = f"echo {GOVERNOR} | sudo tee {processors}/cpu*/cpufreq/scaling_governor"
        yield Finding(f"processors change their clock rate (governor {', '.join(sorted(others))})", remedy)


def of_steal(stat: str) -> Iterator[Finding]:
    """The finding that a virtual machine's host kept the processors for others, from the kernel's counters `stat`."""
    if (share := stolen_share(stat)) > MOST_STOLEN:
        yield Finding(
            f"the host of this virtual machine kept {share:.1%} of the processors' time for others",
            "use a machine whose processors are not shared",
        )


def stolen_share(stat: str) -> float:
    """The share of all time since boot that was stolen from the processors, by the kernel's counters `stat`."""
    times = [int(text) for text in (stat.splitlines() or [""])[0].split()[TIMES]]
    total = sum(times)
    return times[STEAL] / total if total and len(times) > STEAL else 0.0


def of_load(load: float, processors: int) -> Iterator[Finding]:
    """The finding that other programs use the processors, from the `load` average of the last minute."""
    if load > MOST_LOAD * processors:
        yield Finding(
            f"other programs are running (load {load:.1f} on {plural('processor', processors)})",
            "end them, or wait until they end",
        )


def of_rights() -> Iterator[Finding]:
    """The findings on the kernel's permissions."""
    missing = missing_prerequisites()
    for text in missing:
        what, remedy = _halves(text)
        yield Finding(f"measuring needs {what}", remedy)
    if not missing:
        with suppress(EyelevelError):  # mm-net is missing, which is another finding
            if warning := priority_warning(timekeeping()):
                yield Finding(*_halves(warning))
    if LATENCY.exists() and idle_processors() == ASLEEP:
        remedy = f"sudo {PROJECT}/setup/grant awake"
        yield Finding(f"processors cannot be kept awake while something is measured ({LATENCY})", remedy)
    # For root, the kernel loads the module when it is needed.
    if os.geteuid() and not has_congestion_control(CONGESTION_CONTROL):
        yield Finding(f"the kernel has no {CONGESTION_CONTROL}, which tcp+bbr needs", loading_of(CONGESTION_CONTROL))


def programs_here() -> tuple[dict[str, str], list[Finding]]:
    """The versions of the programs that take part in runs, as far as they are installed, and a finding for each missing
    one that every installation has."""
    default_servers = {transport.default_server for transport in TRANSPORTS.values()}
    options, required = {**COMMON, **CAPTURING}, {*COMMON, *CAPTURING}
    for group, default in (
        (all_browsers(), {DEFAULT_BROWSER}),
        (all_servers(), default_servers),
        (all_shells(), {DEFAULT_SHELLS}),
    ):
        for name, kind in group.items():
            options |= kind.programs
            required |= set(kind.programs) if name in default else set()

    def version(name: str) -> str | EyelevelError:
        try:
            return browsertime() if name == "browsertime" else version_of(name, options[name])
        except EyelevelError as error:
            return error

    required.add("browsertime")
    names = sorted({*options, "browsertime"})
    with ThreadPoolExecutor() as pool:
        versions = dict(zip(names, pool.map(version, names), strict=True))
    installed = {name: text for name, text in versions.items() if isinstance(text, str)}
    faults = [error for name, error in versions.items() if name in required - installed.keys()]
    return installed, [Finding(*_halves(str(error))) for error in faults]


def of_versions() -> Iterator[Finding]:
    """The findings on packages of which other versions were tested."""
    command = [str(PROJECT / "setup" / "packages"), "untested"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        text = done.stderr.strip().removeprefix("eyelevel: ")
        yield Finding(text, "docs/install.md says what each system can do")
    for line in done.stdout.splitlines():
        what, remedy = _halves(line)
        yield Finding(what, f"{remedy}: compare campaigns only with others of the same version")
    yield from of_python((PROJECT / "requirements.txt").read_text())


def of_python(pinned: str, version: Callable[[str], str] = metadata.version) -> Iterator[Finding]:
    """The finding that Python packages differ from those that the requirements `pinned` name; `version` returns that of
    an installed package."""
    others = []
    for name, wanted in PINNED.findall(pinned):
        try:
            there = version(name)
        except metadata.PackageNotFoundError:
            there = "missing"
        if there != wanted:
            others.append(f"{name} {there} (pinned: {wanted})")
    if others:
        yield Finding(f"Python packages are not as pinned: {', '.join(others)}", "run 'make setup'")


def free_bytes() -> dict[str, int]:
    """The free space for results and for the cache."""
    return {str(folder): shutil.disk_usage(_existing(folder)).free for folder in (RESULTS, cache_dir())}


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())


def _halves(text: str) -> tuple[str, str]:
    what, _, remedy = text.partition("; ")
    return what, remedy


def _read(path: Path) -> str:
    """The text of a file of the kernel; "" if there is none."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
