"""How long single files take from both servers (paper, Figure 2).

Each file is downloaded by the browser, over a connection of its own, behind a delay and nothing else: the two servers
should take alike. A page asks as many servers as there are repetitions for one file each, one after the other,
and tells the last of them how long each took.
"""

import itertools
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from base.errors import EyelevelError
from measure.run.evidence import REQUEST_LOG
from measure.run.load import PageLoad, load
from record.generated import generated_exchange
from record.site import Recording, Site, write_site
from tuning.networks import Network
from tuning.protocols import Protocol

SIZES_BYTES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
REPETITIONS = 31
# With full segments QUIC differs from TCP in the packets' size, too: with shorter ones it can be seen how much that is.
PROTOCOLS = "tcp+,tcp+mss1238,quic"
# In one load of the page; the loads of all sizes and protocols take turns.
REPETITIONS_A_LOAD = 8
COLUMNS = ("protocol", "size_bytes", "repetition", "ms")

PAGE = """<!doctype html><title>downloads</title><script type="module">
const times = [];
for (let server = 0; server < {servers}; server++) {{
  const url = `https://server${{server}}.downloads.example/file`;
  await (await fetch(url, {{cache: "no-store"}})).arrayBuffer();
  times.push(performance.getEntriesByName(url).pop().duration);
}}
await fetch("/told?ms=" + times.join("+"));
</script>"""


def downloads_site(folder: Path, size_bytes: int) -> Site:
    """A site whose page downloads a file of `size_bytes` from each of `REPETITIONS_A_LOAD` servers."""
    page = PAGE.format(servers=REPETITIONS_A_LOAD).encode()
    # Nothing in it can be made smaller on the way.
    file = random.Random(size_bytes).randbytes(size_bytes)
    open_to_all = (("Access-Control-Allow-Origin", "*"), ("Timing-Allow-Origin", "*"))
    exchanges = [generated_exchange("https://downloads.example/", "text/html", page, "192.0.2.100")]
    exchanges.append(generated_exchange("https://downloads.example/told", "text/plain", b"", "192.0.2.100"))
    exchanges += [
        generated_exchange(
            f"https://server{n}.downloads.example/file", "application/octet-stream", file, f"192.0.2.{n}", open_to_all
        )
        for n in range(REPETITIONS_A_LOAD)
    ]
    recording = Recording("https://downloads.example/", tuple(exchanges), {"name": "eyelevel downloads"})
    return write_site(recording, folder / f"downloads-{size_bytes}")


def download(site: Site, network: Network, protocol: Protocol) -> list[float]:
    """Load the page of `site` once; returns how long each file took, in ms. Raises EyelevelError."""
    with tempfile.TemporaryDirectory(prefix="downloads-") as temporary:
        folder = Path(temporary)
        if failure := load(PageLoad(site, network, protocol, repeatable=False, film=False), folder):
            raise EyelevelError(f"downloads over {protocol.name} failed: {failure}")
        urls = [line.split("\t")[2] for line in (folder / REQUEST_LOG).read_text().splitlines()]
        # A browser that returns tells of two visits; the last is the one that is asked about.
        told = [url for url in urls if urlsplit(url).path == "/told"][-1:]
        times_ms = [float(ms) for url in told for ms in parse_qs(urlsplit(url).query).get("ms", [""])[0].split()]
    if len(times_ms) != REPETITIONS_A_LOAD:
        raise EyelevelError(f"downloads over {protocol.name}: the page told {len(times_ms)} times")
    return times_ms


def measure_downloads(
    network: Network, chosen: Sequence[Protocol], sizes_bytes: Sequence[int], repetitions: int, seed: int
) -> list[tuple[str, int, int, float]]:
    """The rows of a table with `COLUMNS`; all sizes and protocols take turns, in an order drawn from `seed`."""
    order = random.Random(seed)
    rounds = -(-repetitions // REPETITIONS_A_LOAD)
    settings = list(itertools.product(sizes_bytes, chosen))
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    rows = []
    with (
        tempfile.TemporaryDirectory(prefix="downloads-") as folder,
        Progress(*columns, console=Console(stderr=True), transient=True) as progress,
    ):
        sites = {size: downloads_site(Path(folder), size) for size in sizes_bytes}
        task = progress.add_task("downloads", total=rounds * len(settings))
        for number in range(rounds):
            for size, protocol in order.sample(settings, len(settings)):
                progress.update(task, description=f"{protocol.name}, {size:,} bytes")
                times_ms = download(sites[size], network, protocol)
                first = number * REPETITIONS_A_LOAD + 1
                rows += [
                    (protocol.name, size, first + n, ms) for n, ms in enumerate(times_ms) if first + n <= repetitions
                ]
                progress.advance(task)
    return sorted(rows)
