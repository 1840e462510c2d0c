"""`python -m measure.closing`: close recordings, that is, find out what their pages ask for that was not recorded.

A site is loaded in replay several times over each transport. What was missed is fetched through the recorder
where that is possible, and the site loaded again; in the end it is told what is missing still. The result is
kept with the site (`measure.completeness`).
"""

import os
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from eyelevel.clock import now_iso
from eyelevel.errors import EyelevelError, reports_errors
from eyelevel.ownership import give_to_caller
from eyelevel.places import SITES
from measure import completeness
from measure.completeness import Asked, Completeness
from measure.host.machine import versions
from measure.run.evidence import REPLAY_LOG, last_line, read_evidence
from measure.run.film import Frame, last_frame, unlike
from measure.run.gates import HTTP_VERSION, LOAD_GATES, Claim, reason_against
from measure.run.load import load
from measure.run.visit import FILM
from record import shelf
from record.recorder import sandbox
from record.recorder.spec import RecordSpec
from record.site import Recording, Site, write_site
from tuning import networks, protocols
from tuning.networks import Network
from tuning.protocols import Protocol
from tuning.settings import choose, choose_one

LOADS = 3
PROTOCOLS = "tcp,quic"
NETWORK = "dsl"

# How often a load is tried again that fails by itself.
REPEATS = 2
# What was fetched may ask for more, which is fetched too; so often at most.
FETCHES = 2

# How recorders of our own sign; what others recorded is too old to be completed from today's web.
OWN_RECORDER = "mitmproxy"


@dataclass(frozen=True)
class Closing:
    """How sites are closed: how often they are loaded over each of the protocols, and whether they are filmed.

    `origin_ca`: the authority that servers' certificates must be of when something is fetched, instead of
    the public ones.
    """

    loads: int
    network: Network
    protocols: Mapping[str, Protocol]
    repeatable: bool = True
    film: bool = False
    origin_ca: Path | None = None


@dataclass(frozen=True)
class Seen:
    """One load: what was asked for, and the film's last frame if there is a film."""

    asked: tuple[Asked, ...]
    last_frame: Frame | None


def close(site: Site, closing: Closing, *, fetch: bool, tell: Callable[[str], None] = click.echo) -> Completeness:
    """Close `site` and keep the result with it. Raises EyelevelError when it cannot be loaded."""
    found = assess(site, closing)
    fetched: list[str] = []
    for _ in range(FETCHES if fetch else 0):
        wanted = [m.url for m in found.missed if m.method == "GET" and m.url.startswith("https:")]
        wanted = [url for url in wanted if url not in fetched]
        if not wanted:
            break
        came = fetch_missing(site, wanted, closing)
        if not came:
            tell(f"{site.name}: none of the {len(wanted)} missing URLs could be fetched")
            break
        fetched += came
        site = Site.load(site.folder)
        found = assess(site, closing)
    found = replace(found, fetched=tuple(fetched))
    found.write(site)
    give_to_caller(site.folder)
    return found


def assess(site: Site, closing: Closing) -> Completeness:
    """Load `site` as `closing` says, and sum up what was asked for. Raises EyelevelError."""
    asked: dict[str, list[tuple[Asked, ...]]] = {}
    frames: dict[str, list[Frame]] = {}
    for name, protocol in closing.protocols.items():
        seen = [load_once(site, closing, protocol) for _ in range(closing.loads)]
        asked[name] = [one.asked for one in seen]
        frames[name] = [one.last_frame for one in seen if one.last_frame is not None]
    every = [load for loads in asked.values() for load in loads]
    return Completeness(
        site_sha256=completeness.digest(site),
        closed_at=now_iso(),
        network=closing.network.name,
        repeatable=closing.repeatable,
        versions=versions({protocol.transport for protocol in closing.protocols.values()}),
        protocols={name: completeness.summarise(loads, _unlike(frames[name])) for name, loads in asked.items()},
        jaccard=completeness.jaccard([{(one.method, one.url) for one in load} for load in every]),
        missed=completeness.missed_urls(every),
        unused=completeness.unused_exchanges(site, every),
    )


def load_once(site: Site, closing: Closing, protocol: Protocol) -> Seen:
    """One load that went well. Raises EyelevelError when it does not, again and again."""
    claim = Claim(HTTP_VERSION[protocol.transport], frozenset(site.servers))
    reason: str | None = None
    for _ in range(1 + REPEATS):
        with tempfile.TemporaryDirectory(prefix="eyelevel-closing-") as temporary:
            folder = Path(temporary)
            failure = load(site, closing.network, protocol, folder, repeatable=closing.repeatable, film=closing.film)
            evidence = read_evidence(folder, filmed=False)
            told = failure and f"{failure}: {last_line(folder / REPLAY_LOG)}"
            reason = told or reason_against(evidence, claim, LOAD_GATES)
            if reason is None:
                asked = completeness.read_asked(folder, evidence.requests)
                return Seen(asked, last_frame(folder / FILM) if closing.film else None)
    raise EyelevelError(f"{site.name} could not be loaded over {protocol.name} in {1 + REPEATS} tries: {reason}")


def fetch_missing(site: Site, urls: Sequence[str], closing: Closing) -> list[str]:
    """Have the recorder visit the site's page and ask for `urls` there; store what came in the site.

    Returns the URLs that came. The site on disk is replaced by the longer one, or stays as it is.
    """
    with tempfile.TemporaryDirectory(prefix="eyelevel-closing-") as temporary:
        mobile = "Mobile" in (site.user_agent or "")
        spec = RecordSpec(
            site.url,
            Path(temporary) / site.name,
            mobile=mobile,
            keep_cookies=site.recorder.get("cookies") == "as sent",
            origin_ca=closing.origin_ca,
            also=tuple(urls),
        )
        if not sandbox.run(spec):
            return []
        fresh = Site.load(spec.folder)
        wanted = set(urls)
        new = [fresh.recorded(e) for e in fresh.exchanges if e.method == "GET" and e.url in wanted]
    # A host that has moved meanwhile stays where it was recorded: the number of servers is the site's.
    home = {host: site.recorded_ips[servers[0]] for host, servers in site.addresses.items()}
    new = [replace(e, recorded_ip=home.get(_host(e.url), e.recorded_ip), started_ms=None) for e in new]
    if new:
        recording = Recording(
            url=site.url,
            exchanges=(*(site.recorded(e) for e in site.exchanges), *new),
            recorder=site.recorder,
            user_agent=site.user_agent,
            viewport=site.viewport,
            skipped=site.skipped,
        )
        write_site(recording, site.folder)
    return list(dict.fromkeys(e.url for e in new))


def _unlike(frames: Sequence[Frame]) -> float | None:
    return max((unlike(frames[0], frame) for frame in frames[1:]), default=0.0) if frames else None


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _host(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].partition(":")[0]


def summary(name: str, found: Completeness) -> str:
    """What a person is told of a closed site: the figures, and each missing URL with who asked for it."""
    each = "; ".join(
        f"{protocol}: {_count(loads.loads, 'load')} of {loads.requested / loads.loads:.0f} URLs"
        + f", Jaccard {loads.jaccard:.3f}"
        + (f" ({loads.jaccard_as_matched:.3f} as matched)" if loads.jaccard_as_matched != loads.jaccard else "")
        + ("" if loads.last_frames_unlike is None else f", last frames unlike {100 * loads.last_frames_unlike:.1f} %")
        for protocol, loads in found.protocols.items()
    )
    lines = [f"{name}: {100 * found.served:.2f} % served; {each}; {_count(len(found.unused), 'exchange')} not used"]
    if found.fetched:
        lines.append(f"  fetched: {_count(len(found.fetched), 'URL')} that had been missing")
    total = sum(loads.loads for loads in found.protocols.values())
    for missed in found.missed:
        by = f", asked for by {', '.join(missed.asked_by)}" if missed.asked_by else ""
        lines.append(f"  missed in {missed.loads} of {total} loads: {missed.method} {missed.url}{by}")
    return "\n".join(lines)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, metavar="[SITE]...")
@click.option("--loads", type=click.IntRange(min=1), default=LOADS, show_default=True, help="Over each protocol.")
@click.option("--proto", default=PROTOCOLS, show_default=True, help="Protocols of tuning/protocols.toml.")
@click.option("--net", default=NETWORK, show_default=True, help="A network of tuning/networks.toml.")
@click.option("--repeatable/--as-recorded", default=True, show_default=True, help="Whether pages get the script.")
@click.option("--film", is_flag=True, help="Film the loads, and compare the films' last frames.")
@click.option("--fetch/--no-fetch", default=None, help="Fetch what is missing; of what we recorded, unless given.")
@click.option("--origin-ca", type=click.Path(path_type=Path, resolve_path=True), help="As of 'record record'.")
@click.option("--recorded", is_flag=True, help="Of those not named: only what we recorded ourselves.")
@click.option("--sites", "folder", type=click.Path(path_type=Path), default=SITES, help="Another folder than sites/.")
def main(
    names: tuple[str, ...],
    loads: int,
    proto: str,
    net: str,
    repeatable: bool,
    film: bool,
    fetch: bool | None,
    origin_ca: Path | None,
    recorded: bool,
    folder: Path,
) -> None:
    """Close the sites of these names, or all; those that are not closed yet, unless given.

    Example: python -m measure.closing www.yelp.com
    """
    if os.geteuid() != 0:
        raise EyelevelError("closing needs root, to make network namespaces; run it as root or with sudo")
    closing = Closing(
        loads=loads,
        network=choose_one("network", net, networks.load()),
        protocols={protocol.name: protocol for protocol in choose("protocol", proto, protocols.load())},
        repeatable=repeatable,
        film=film,
        origin_ca=origin_ca,
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    failed = []
    for site in chosen(" ".join(names).replace(",", " ").split(), folder):
        own = OWN_RECORDER in site.recorder.get("tool", "")
        if recorded and not names and not own:
            continue
        try:
            click.echo(summary(site.name, close(site, closing, fetch=own if fetch is None else fetch)))
        except EyelevelError as error:
            click.echo(f"eyelevel: {error}", err=True)
            failed.append(site.name)
    if failed:
        sys.exit(f"eyelevel: not closed: {', '.join(failed)}; see above")


def chosen(names: Sequence[str], folder: Path) -> list[Site]:
    """The sites `names` of `folder`, or without names all that are not closed yet. Raises EyelevelError."""
    if folder != SITES:
        known = {path.name: path.name for path in sorted(folder.glob("[!.]*")) if path.is_dir()}
        sites = [Site.load(folder / name) for name in (choose("site", list(names), known) if names else known)]
    elif names:
        sites = [shelf.take(name) for name in choose("site", list(names), {n: n for n in shelf.at_hand()})]
    else:
        sites = [shelf.take(name) for name in shelf.recorded()]
    return sites if names else [site for site in sites if completeness.read(site) is None]


if __name__ == "__main__":
    reports_errors(main)()
