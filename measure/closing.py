"""Close recordings, that is, find out what their pages ask for that was not recorded.

A site is loaded in replay several times over each transport. What was missed is fetched through the recorder
where that is possible, and the site loaded again; in the end it is told what is missing still. The result is
kept with the site (`measure.completeness`).
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from base.clock import now_iso
from base.errors import EyelevelError
from base.ownership import give_to_caller
from browsers.window import is_mobile
from measure import completeness
from measure.completeness import Asked, Completeness
from measure.host.machine import versions
from measure.run.evidence import REPLAY_LOG, last_line, read_evidence
from measure.run.film import Frame, last_frame, unlike
from measure.run.gates import LOAD_GATES, Claim, reason_against
from measure.run.load import PageLoad, load
from measure.run.visit import FILM
from record.recorder import sandbox
from record.recorder.spec import RecordSpec
from record.site import Recording, Site, write_site
from tuning.networks import Network
from tuning.protocols import Protocol

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
        versions=versions({protocol.server for protocol in closing.protocols.values()}),
        protocols={name: completeness.summarise(loads, _unlike(frames[name])) for name, loads in asked.items()},
        jaccard=completeness.jaccard([{(one.method, one.url) for one in load} for load in every]),
        missed=completeness.missed_urls(every),
        unused=completeness.unused_exchanges(site, every),
    )


def load_once(site: Site, closing: Closing, protocol: Protocol) -> Seen:
    """One load that went well. Raises EyelevelError when it does not, again and again."""
    claim = Claim(protocol.http_version, frozenset(site.servers))
    reason: str | None = None
    for _ in range(1 + REPEATS):
        with tempfile.TemporaryDirectory(prefix="eyelevel-closing-") as temporary:
            folder = Path(temporary)
            failure = load(PageLoad(site, closing.network, protocol, closing.repeatable, closing.film), folder)
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
        mobile = is_mobile(site.user_agent)
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
