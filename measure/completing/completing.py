"""Completes recordings: finds the requests of their pages that were not recorded, and fetches what can be fetched.

A site is loaded in replay several times over each transport. The recorder fetches missed requests if possible, and the
site is loaded again. Requests that are then still missed are reported, and the result is stored with the site
(`measure.sites.completeness`).
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import click

from base.clock import now_iso
from base.errors import EyelevelError
from base.ownership import give_to_caller
from base.words import plural
from browsers.browsertime.configuration import QUIET_MS
from browsers.window import is_mobile
from dataset.run_files import FILM_LOG
from films.decoding import Pixels, last_picture
from films.frames import unlike
from films.log import read_log
from measure.campaign.method import Method
from measure.campaign.single_load import single_load
from measure.completing.fonts import without_fonts
from measure.host.machine import versions
from measure.live import read_live
from measure.run.evidence import Evidence, read_evidence
from measure.run.gates import GATES, Gate
from measure.run.setting import Loading, Setting
from measure.sites.completeness import (
    Completeness,
    Loads,
    Reason,
    RequestedUrl,
    digest,
    jaccard,
    missed_urls,
    reasons_for_unused,
    requested_urls,
    summarise,
    unused_exchanges,
)
from record.limits import EXCHANGES, HOSTS, SERVERS, SITE_BYTES
from record.recorder import sandbox
from record.recorder.addresses import AddressPolicy
from record.recorder.spec import RecordSpec
from record.site import Exchange, Site, write_site
from servers.registry import programs_of
from tuning.networks import Network
from tuning.protocols import Protocol

# Fetched content may make further requests, which are fetched, too; at most this many times.
FETCHES = 2
# At most this many URLs are fetched each time; each takes half a second or more.
FETCHED_URLS = 1000

# A page that uses less than USED_SHARE of its site is probably not the one that was recorded, unless at most FEW_UNUSED
# exchanges are unused: icons, a manifest and redirects, which the browser itself requests, can outnumber the rest of a
# small page.
USED_SHARE, FEW_UNUSED = 0.5, 4
# A warning names this many URLs of each reason, and shows this many letters of each.
EXAMPLES, EXAMPLE_LETTERS = 3, 200

# The name that our recorder writes into a site. Nothing is fetched for other recordings: they may be too old to be
# completed from today's web.
OUR_RECORDER = "mitmproxy"


@dataclass(frozen=True)
class Completing:
    """How sites are completed: the number of loads over each of the protocols, and how the loads are made (for example,
    filmed).

    `origin_ca`: the certificate authority that signs servers' certificates when something is fetched, in place of the
    public ones. `address_policy`: to which addresses fetching may connect. A site and its URL may come from somebody
    else. So a site's URL does not permit fetching from addresses that are not public, unlike the URL that a user gives
    to the recorder. `record`: the recorder; returns whether it made the site. `exchanges`: the most that a site may
    have.
    """

    loads: int
    network: Network
    protocols: Mapping[str, Protocol]
    loading: Loading = Loading(filmed=False, quiet_ms=QUIET_MS)  # noqa: RUF009 (frozen)
    origin_ca: Path | None = None
    address_policy: AddressPolicy = AddressPolicy.PUBLIC
    record: Callable[[RecordSpec], bool] = sandbox.run
    exchanges: int = EXCHANGES


@dataclass(frozen=True)
class SiteLoad:
    """One load: the URLs that the page requested, and the film's last picture if there is a film."""

    urls: tuple[RequestedUrl, ...]
    last_picture: Pixels | None


class CompletingMethod(Method):
    """A load counts when the page was loaded. How long that took does not matter, so its film is not analysed."""

    def evidence(self, setting: Setting, folder: Path) -> Evidence:
        return read_evidence(folder, filmed=False)

    def gates(self) -> Sequence[Gate]:
        return [gate for gate in GATES if gate.about_load]

    def analyse(self, folder: Path) -> None:
        """Do nothing, since the film is not analysed."""


def complete(
    site: Site, completing: Completing, *, fetch: bool, report: Callable[[str], None] = click.echo
) -> Completeness:
    """Complete `site` and store the result with it. Raises EyelevelError when the site cannot be loaded."""
    completeness = assess(site, completing)
    fetched: list[str] = []
    for _ in range(FETCHES if fetch else 0):
        missing = [missed.url for missed in completeness.missed if missed.method == "GET"]
        wanted = [url for url in missing if url.startswith("https:") and url not in fetched]
        if not wanted:
            break
        urls = fetch_missing(site, wanted[:FETCHED_URLS], completing)
        if not urls:
            report(f"{site.name}: none of the {len(wanted)} missing URLs could be fetched")
            break
        fetched += urls
        site = Site.load(site.folder)
        completeness = assess(site, completing)
    completeness = replace(completeness, fetched=tuple(fetched))
    completeness.write(site)
    give_to_caller(site.folder)
    return completeness


def assess(site: Site, completing: Completing) -> Completeness:
    """Load `site` as `completing` says, and summarise the requests. Raises EyelevelError."""
    loads = {
        name: [load_once(site, completing, protocol, number) for number in range(1, completing.loads + 1)]
        for name, protocol in completing.protocols.items()
    }
    every = [load.urls for of_protocol in loads.values() for load in of_protocol]
    return Completeness(
        site_sha256=digest(site),
        closed_at=now_iso(),
        network=completing.network.name,
        repeatable=completing.loading.repeatable,
        versions=versions((), further=programs_of(completing.protocols.values())),
        protocols={
            name: summarise([load.urls for load in of_protocol], _difference(of_protocol))
            for name, of_protocol in loads.items()
        },
        jaccard=jaccard([{(one.method, one.url) for one in urls} for urls in every]),
        missed=missed_urls(every),
        unused=unused_exchanges(site, every),
        unused_because=reasons_for_unused(site, every),
    )


def load_once(site: Site, completing: Completing, protocol: Protocol, number: int = 1) -> SiteLoad:
    """One valid load; `number` counts the loads over this protocol. Raises EyelevelError when no load is valid."""
    setting = Setting(site, completing.network, protocol, completing.loading)
    with single_load(setting, CompletingMethod(), number) as folder:
        urls = requested_urls(folder, read_evidence(folder, filmed=False).requests)
        film = folder / FILM_LOG
        return SiteLoad(urls, last_picture(film, read_log(film)) if completing.loading.filmed else None)


def fetch_missing(site: Site, urls: Sequence[str], completing: Completing) -> list[str]:
    """Make the recorder visit the site's page and request `urls` there; store the responses in the site.

    Returns the URLs that were answered. The extended site replaces the one on disk, which is otherwise unchanged.
    Raises EyelevelError when the extended site is larger than a site may be.
    """
    with tempfile.TemporaryDirectory(prefix="eyelevel-completing-") as temporary:
        spec = RecordSpec(
            site.url,
            Path(temporary) / site.name,
            mobile=is_mobile(site.user_agent),
            keep_cookies=site.recorder.get("cookies") == "as sent",
            origin_ca=completing.origin_ca,
            also=tuple(urls),
            address_policy=completing.address_policy,
        )
        if not completing.record(spec):
            return []
        fresh = Site.load(spec.folder)
        came = [fresh.recorded(e) for e in fresh.exchanges if e.method == "GET" and e.url in urls]
    # A host that has moved since keeps its recorded address, so that the site keeps its number of servers.
    home = {host: site.recorded_ips[servers[0]] for host, servers in site.addresses.items()}
    new = [
        replace(e, recorded_ip=home.get(urlsplit(e.url).hostname or "", e.recorded_ip), started_ms=None) for e in came
    ]
    if new:
        recording = site.recording()
        recording = replace(recording, exchanges=(*recording.exchanges, *new), live=read_live(site))
        _require_one_site(site.name, recording.exchanges, completing.exchanges)
        write_site(recording, site.folder)
    return list(dict.fromkeys(e.url for e in new))


def _require_one_site(name: str, exchanges: Sequence[Exchange], most: int) -> None:
    """Raises EyelevelError when there are more `exchanges` than a site may have, or than `most`: such a site could not
    be loaded any more."""
    if (
        len(exchanges) > most
        or sum(len(e.response.body) for e in exchanges) > SITE_BYTES
        or len({e.recorded_ip for e in exchanges}) > SERVERS
        or len({urlsplit(e.url).netloc for e in exchanges}) > HOSTS
    ):
        raise EyelevelError(f"{name} with the fetched responses is larger than a site may be; it is unchanged")


def _difference(loads: Sequence[SiteLoad]) -> float | None:
    """The largest visible difference between a load's last picture and the first load's; None without films."""
    frames = [load.last_picture for load in loads if load.last_picture is not None]
    return max((unlike(frames[0], frame) for frame in frames[1:]), default=0.0) if frames else None


def summary(name: str, completeness: Completeness) -> str:
    """A completed site in words: the figures, and each missing URL with the documents that requested it."""
    is_complete = completeness.served == 1
    served = "the recording is complete" if is_complete else f"{100 * completeness.served:.2f} % of requests answered"
    parts = [served, *(_loads_in_words(protocol, loads) for protocol, loads in completeness.protocols.items())]
    if completeness.unused:
        parts.append(f"{plural('recorded exchange', len(completeness.unused))} not requested")
    lines = [f"{name}: {'; '.join(parts)}"]
    if completeness.fetched:
        lines.append(f"  fetched: {plural('URL', len(completeness.fetched))}")
    total = sum(loads.loads for loads in completeness.protocols.values())
    for missed in completeness.missed:
        by = f", requested by {', '.join(missed.asked_by)}" if missed.asked_by else ""
        lines.append(f"  missing in {missed.loads} of {plural('load', total)}: {missed.method} {missed.url}{by}")
    return "\n".join(lines)


def _loads_in_words(protocol: str, loads: Loads) -> str:
    text = f"{protocol}: {plural('load', loads.loads)} of {plural('URL', round(loads.requested / loads.loads))}"
    # How much the loads requested the same URLs; 1 if each requested the same ones.
    if loads.jaccard < 1:
        as_matched = "" if loads.jaccard_as_matched == loads.jaccard else f", {loads.jaccard_as_matched:.3f} as matched"
        text += f" (Jaccard index {loads.jaccard:.3f}{as_matched})"
    if loads.last_frames_unlike:
        text += f", last frames unlike {100 * loads.last_frames_unlike:.1f} %"
    return text


def warnings(site: Site, completeness: Completeness) -> list[str]:
    """Reasons why loads of the completed `site` may not represent the recorded page."""
    texts = []
    used = len(site.exchanges) - len(completeness.unused)
    if used < USED_SHARE * len(site.exchanges) and len(completeness.unused) > FEW_UNUSED:
        texts.append(
            f"{site.name}: its page requests only {used} of {plural('recorded exchange', len(site.exchanges))}; loads "
            f"of it say little about the site. It begins at {site.url}; 'make import FROM=… URL=…' chooses another page"
        )
        url_of = {exchange.file: exchange.url for exchange in site.exchanges}
        for reason in Reason:
            urls = [url_of[file] for file, because in completeness.unused_because.items() if because == reason]
            if urls:
                examples = ", ".join(url[:EXAMPLE_LETTERS] for url in urls[:EXAMPLES])
                texts.append(f"{site.name}: {len(urls)} {reason}: {examples}{', …' if len(urls) > EXAMPLES else ''}")
    return texts


def font_warnings(site: Site, completeness: Completeness) -> list[str]:
    """A line on the text of `site` that its films do not show, if this machine lacks fonts for it. Raises
    EyelevelError."""
    unused = set(completeness.unused)
    documents = (site.recorded(exchange).response for exchange in site.exchanges if exchange.file not in unused)
    undrawn = without_fonts(document for document in documents if document.is_html)
    return [f"{site.name}: {undrawn}"] if undrawn else []
