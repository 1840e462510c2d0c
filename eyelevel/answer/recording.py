"""The recording from which an answer is measured: it is made if missing, completed, and checked for faults."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from analysis.text import moment
from base.errors import EyelevelError
from base.places import SITES
from base.terminal import print_line
from eyelevel.answer.progress import Progress
from eyelevel.completing import complete_now
from measure.completing.completing import summary, warnings
from measure.run.setting import Loading
from measure.sites.completeness import Completeness, read
from record.collection import choose_site, sites_in
from record.http1 import MalformedMessage
from record.recorder import sandbox
from record.recorder.addresses import policy_for
from record.recorder.spec import RecordSpec
from record.recorder.targets import Target
from record.round_trips import extra_rtts_ms, rtts_of
from record.site import Site
from record.summary import summary as recorded_summary
from record.urls import normal_url
from tuning.defaults import OFF

# The share of a page's requests that its recording must answer.
SERVED_SHARE = 0.95


@dataclass(frozen=True)
class Recorder:
    """How a site is recorded and completed: in a subfolder of `folder`; `origin_ca` is trusted, too; private addresses
    are reached only if `allow_private`."""

    folder: Path
    origin_ca: Path | None
    allow_private: bool

    def recorded(self, target: Target | None, name: str | None, progress: Progress) -> Site:
        """The site of `target`, recorded first if it does not exist, or the existing site `name`.

        Raises EyelevelError.
        """
        if target is None:
            assert name
            (site,) = [choose_site(name)] if self.folder == SITES else sites_in(self.folder, [name])
            progress.skips("record", f"{site.name} exists, {site.url}")
            return site
        into = self.folder / target.name
        if into.is_dir():
            site = Site.load(into)
            if same_page(site.url) != same_page(target.url):
                raise EyelevelError(
                    f"{into} is a recording of another page, {site.url}; give this one another name: make answer "
                    f"URL={target.url} SITE={into.name}-2"
                )
            progress.skips("record", f"{into.name} exists; 'make record SITES={target.url}' records it again")
            return site
        progress.begins("record", f"loading {target.url}")
        policy = policy_for(target.url, allow_private=self.allow_private)
        if not sandbox.run(RecordSpec(target.url, into, origin_ca=self.origin_ca, address_policy=policy)):
            raise EyelevelError(f"{target.url} could not be recorded; see above")
        site = Site.load(into)
        print_line(progress.console, recorded_summary(site))
        return site

    def closed(self, site: Site, progress: Progress, *, fetch: bool) -> Completeness:
        """Complete `site` unless this was done earlier; return how complete it is.

        `fetch`: whether missing exchanges may be added to the site. Raises EyelevelError.
        """
        if completeness := read(site):
            progress.skips("close", f"done on {moment(completeness.closed_at)}")
            return completeness
        progress.begins("close", f"loading {site.name} in replay to find what the recording lacks")
        completeness = complete_now(site, self.origin_ca, allow_private=self.allow_private, fetch=fetch)
        print_line(progress.console, summary(site.name, completeness))
        return completeness


def same_page(url: str) -> str:
    """`url` in a normal form, so that two URLs of one page compare equal: always https, without a final slash."""
    # An invalid URL is refused later, when it is recorded.
    with suppress(MalformedMessage):
        url = normal_url(url)
    return url.partition("://")[2].partition("#")[0].rstrip("/")


def recording_faults(site: Site, completeness: Completeness) -> list[str]:
    """The faults of the recorded `site`, due to which its loads say little about the page. Raises EyelevelError."""
    faults = warnings(site, completeness)
    if completeness.served < SERVED_SHARE:
        faults.append(
            f"{site.name}: the recording answers only {100 * completeness.served:.0f} % of the page's requests; 'make "
            f"close SITES={site.name}' lists the others"
        )
    return faults


def about_servers(site: Site, loading: Loading, campaign: str) -> list[str]:
    """Notes on the recorded servers of `site`, if its loads ignore their times, and the command that takes these into
    account; or that the recording does not have them.

    `campaign` is the name of the campaign that ignores it.
    """
    texts, variables = [], []
    start = next((one for one in site.exchanges if one.url == site.url), site.exchanges[0])
    rtts_ms = {address: rtt.rtt_ms for address, rtt in rtts_of(site).items()}
    if loading.think_time == OFF and start.ttfb_ms is None and not rtts_ms:
        return [
            "The recording lacks the times of its servers, so here they answer at once and are equally far away. "
            "Slower or more distant servers change every percentage."
        ]
    if loading.think_time == OFF and start.ttfb_ms is not None:
        think_ms = max(0.0, start.ttfb_ms - rtts_ms.get(start.server, 0.0))
        round_trip = "" if start.server in rtts_ms else ", the round trip included"
        texts.append(f"its server took {think_ms:.0f} ms to begin to answer{round_trip}")
        variables.append("THINK_TIME=recorded")
    if loading.server_rtts.kind == OFF and len(rtts_ms) > 1:
        extra_ms = extra_rtts_ms(site).values()
        texts.append(f"its {len(extra_ms)} servers were up to {max(extra_ms):.0f} ms farther away than the nearest one")
        variables.append("SERVER_RTTS=recorded")
    if not texts:
        return []
    command = f"make answer SITE={site.name} {' '.join(variables)} CAMPAIGN={campaign}-as-recorded"
    return [
        f"When the page was recorded, {' and '.join(texts)}. Here, servers answer at once and are equally far "
        f"away. To include these times: {command}"
    ]
