"""Fetch the parts of Chromium's source that quic_server is built from.

    python3 -m servers.quic.fetch

The source is Debian's `chromium` source package: of the downloadable versions, one of the milestone that our
code is written for, else the nearest to the installed browser's. Package lists, downloads and the unpacked
source lie in the cache folder: the system's apt configuration is read, never changed, and nothing here needs
root. Prints the folder of the source; a source that is already there is used as it is. Standard library only,
since it runs before anything of ours is installed.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO

from base.errors import EyelevelError, reports_errors
from base.files import sync
from base.places import cache_dir, tool

PACKAGE = "chromium"

# Our code builds with quiche of this milestone. Its interfaces change from one to the next, and servers of
# different milestones on different machines would not be one testbed: others are a last resort.
MILESTONE = 150

# Below the top folder of the source: what the build reads, 130 MB of 6 GB.
PARTS = (
    "LICENSE",
    "chrome/VERSION",
    "net/third_party/quiche/src",
    "third_party/abseil-cpp",
    "third_party/boringssl/src",
)

# The archive and what is unpacked of it, with room for the next versions.
NEEDED_BYTES = 1_500_000_000

Version = tuple[int, ...]


@reports_errors
def main() -> None:
    print(fetch(cache_dir() / "chromium-source"))


def fetch(folder: Path) -> Path:
    """The unpacked source, `folder`/<version>; downloaded first unless one is there. Raises EyelevelError."""
    browser = installed_version()
    if here := [path.parent.parent for path in folder.glob("[0-9]*/chrome/VERSION")]:
        return min(here, key=lambda path: distance(upstream(path.name), browser))
    folder.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(folder).free < NEEDED_BYTES:
        raise EyelevelError(f"{folder} needs {NEEDED_BYTES / 1e9:.1f} GB of free disk for Chromium's source; make room")
    apt = PrivateApt(folder / "apt")
    _say("reading the lists of source packages")
    packages = sorted(apt.source_versions(), key=lambda package: distance(upstream(package), browser))
    if not packages:
        raise EyelevelError(
            f"the machine's package sources hold no source package {PACKAGE}; add one that does to apt's sources"
        )
    archive = download_nearest(apt.download_source, packages, folder / "download")
    source = folder / archive.name.removeprefix(f"{PACKAGE}_").removesuffix(".orig.tar.xz")
    unpack(archive, folder / "unpacking")
    (folder / "unpacking").rename(source)
    sync(folder)
    for name in ("download", "apt"):
        shutil.rmtree(folder / name)
    return source


def download_nearest(download: Callable[[str, Path], str | None], packages: list[str], folder: Path) -> Path:
    """The archive of the first of `packages` that can be downloaded: lists often name versions already removed.

    `download` fetches a version's archives into a folder and returns None, or the reason why it could not. Raises
    EyelevelError when no version can be downloaded.
    """
    folder.mkdir(exist_ok=True)
    tried = []
    for package in packages:
        _say(f"downloading the source of {PACKAGE} {upstream_text(package)}")
        archive = folder / f"{PACKAGE}_{upstream_text(package)}.orig.tar.xz"
        reason = download(package, folder)
        if reason is None and archive.exists():
            return archive
        tried.append(f"{package} ({reason or 'its archive has another name than ' + archive.name})")
    raise EyelevelError(f"no source of {PACKAGE} could be downloaded; tried {', '.join(tried)}; try again later")


class PrivateApt:
    """apt with separate lists and caches, for the source packages of the repositories that the machine uses."""

    def __init__(self, folder: Path) -> None:
        """Make `folder`; apt writes everything there."""
        sources = folder / "sources.list.d"
        for path in (sources, folder / "lists" / "partial", folder / "cache" / "archives" / "partial"):
            path.mkdir(parents=True, exist_ok=True)
        for name, text in source_lists(_system_lists()):
            (sources / name).write_text(text)
        options = {
            "Dir::Etc::sourcelist": "/dev/null",
            "Dir::Etc::sourceparts": sources,
            "Dir::State::lists": folder / "lists",
            "Dir::Cache": folder / "cache",
            # As root apt would become the user _apt, who may not write to a user's cache.
            "APT::Sandbox::User": "root",
        }
        self._options = [part for key, value in options.items() for part in ("-o", f"{key}={value}")]

    def source_versions(self) -> set[str]:
        """Fetch the lists; returns the versions of the package in them.

        A repository that fails is left out, as apt does. Raises EyelevelError when no list could be fetched.
        """
        updated = _run([tool("apt-get"), *self._options, "update"], sys.stderr)
        listing = _run([tool("apt-cache"), *self._options, "showsrc", "--only-source", PACKAGE])
        versions = set(re.findall(r"^Version: (\S+)$", listing.stdout, re.MULTILINE))
        if not versions and updated.returncode:
            reason = _first_error(updated.stderr)
            raise EyelevelError(f"the lists of source packages could not be fetched: {reason}")
        return versions

    def download_source(self, version: str, folder: Path) -> str | None:
        """Download the upstream archives of one version; apt checks them and resumes. Returns None, or the error."""
        what = ["source", "--download-only", "--tar-only", f"{PACKAGE}={version}"]
        downloaded = _run([tool("apt-get"), *self._options, *what], sys.stderr, folder)
        return None if downloaded.returncode == 0 else _first_error(downloaded.stderr)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack `PARTS` of a source archive into `folder`, which is emptied first. Raises EyelevelError."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    # Decompression takes most of the time: it gets every core, and how much of the archive it has read is the progress.
    decompress: list[str | Path] = [tool("xz"), "-dc", "-T0"]
    select = ["--strip-components=1", "--wildcards", "--no-wildcards-match-slash", *(f"*/{part}" for part in PARTS)]
    extract: list[str | Path] = [tool("tar"), "-x", "-C", folder, *select]
    with (
        subprocess.Popen(decompress, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as xz,
        subprocess.Popen(extract, stdin=xz.stdout) as tar,
    ):
        assert xz.stdin is not None and xz.stdout is not None
        xz.stdout.close()
        # If one of the two ends early, the pipe breaks; the exit status is checked below.
        with suppress(BrokenPipeError), xz.stdin:
            _feed(archive, xz.stdin)
    if xz.returncode or tar.returncode:
        raise EyelevelError(f"{archive} could not be unpacked (disk full, or a version laid out differently)")


def _feed(archive: Path, pipe: IO[bytes]) -> None:
    size = archive.stat().st_size
    done = reported_percent = 0
    with archive.open("rb") as file:
        while chunk := file.read(1 << 20):
            pipe.write(chunk)
            done += len(chunk)
            if (percent := 100 * done // size) >= reported_percent + 10:
                reported_percent = percent
                _say(f"unpacking the source: {percent} %")


def source_lists(lists: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    """apt's lists (name and text, `.list` or `.sources`), changed to name source packages, each of them once."""
    for name, text in lists:
        entries = _deb822_entries(text) if name.endswith(".sources") else _one_line_entries(text)
        separator = "\n\n" if name.endswith(".sources") else "\n"
        if unique := dict.fromkeys(entries):
            yield name, separator.join(unique) + "\n"


def _one_line_entries(text: str) -> Iterable[str]:
    for line in text.splitlines():
        if match := re.match(r"\s*deb(?:-src)?\s+([^#]+)", line):
            yield f"deb-src {' '.join(match[1].split())}"


def _deb822_entries(text: str) -> Iterable[str]:
    for stanza in re.split(r"\n\s*\n", text):
        lines = [line for line in stanza.splitlines() if not line.startswith("#")]
        fields = "\n".join(lines).strip()
        if not fields or re.search(r"^Enabled:\s*no\s*$", fields, re.MULTILINE | re.IGNORECASE):
            continue
        # Architectures would leave out the lists of sources, which have none.
        fields = re.sub(r"^Architectures:.*\n?", "", fields, flags=re.MULTILINE | re.IGNORECASE)
        yield re.sub(r"^Types:.*$", "Types: deb-src", fields, flags=re.MULTILINE | re.IGNORECASE).strip()


def _system_lists() -> Iterable[tuple[str, str]]:
    """The machine's own lists, from wherever its apt configuration says they are."""
    wanted = ["LIST", "Dir::Etc::sourcelist/f", "PARTS", "Dir::Etc::sourceparts/d"]
    assignments = _run([tool("apt-config"), "shell", *wanted])
    places = dict(assignment.split("=", 1) for assignment in shlex.split(assignments.stdout))
    for path in (Path(places["LIST"]), *sorted(Path(places["PARTS"]).glob("*"))):
        if path.suffix in (".list", ".sources") and path.is_file():
            yield path.name, path.read_text()


def installed_version() -> Version | None:
    """The installed browser's upstream version; None when there is none."""
    answer = _run([tool("dpkg-query"), "--show", "--showformat=${db:Status-Status} ${Version}", PACKAGE])
    status, _, version = answer.stdout.partition(" ")
    return upstream(version) if status == "installed" else None


def upstream_text(version: str) -> str:
    """`150.0.7871.181-1~deb12u1` → `150.0.7871.181`."""
    return version.rpartition(":")[2].partition("-")[0]


def upstream(version: str) -> Version:
    """A package's or source's version as numbers: `150.0.7871.181-1~deb12u1` → (150, 0, 7871, 181)."""
    return tuple(int(number) for number in re.findall(r"\d+", upstream_text(version)))


def distance(version: Version, browser: Version | None) -> tuple[int, ...]:
    """Sort key: versions of our milestone first, then those nearest to the browser's, then the newest.

    The first number that differs decides: a patch number means nothing across milestones.
    """
    other_milestone = int(version[0] != MILESTONE)
    newest_first = tuple(-number for number in version)
    for place, (number, wanted) in enumerate(zip(version, browser or (), strict=False)):
        if number != wanted:
            return (other_milestone, -place, abs(number - wanted), *newest_first)
    return (other_milestone, -len(version), 0, *newest_first)


def _run(
    command: list[str | Path], stdout: int | IO[str] = subprocess.PIPE, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program of apt or dpkg with messages in English, because we parse some of them."""
    english = os.environ | {"LC_ALL": "C"}
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, cwd=cwd, env=english, check=False)


def _first_error(messages: str) -> str:
    """The reason in apt's first error: `E: Failed to fetch URL  404  Not Found [IP: …]` → `404 Not Found`."""
    match = re.search(r"^E: (?:Failed to fetch \S+)?(.+?)(?: \[IP: .*\])?$", messages, re.MULTILINE)
    return " ".join(match[1].split()) if match else "apt did not say why"


def _say(what: str) -> None:
    print(f"quic_server: {what}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
