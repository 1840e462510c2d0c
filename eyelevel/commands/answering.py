"""`eyelevel answer`: what HTTP/3 would change for one site: record, close, measure and report it in one go."""

import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from analysis import hypotheses
from analysis.answer import require_question
from analysis.confirmatory import LOOKS
from analysis.defaults import PREFIX
from analysis.report.answer import write_answer
from analysis.report.write import write_report
from analysis.runs import load
from analysis.text import moment
from base.errors import EyelevelError
from base.places import SITES
from base.privileges import require_browsing
from base.words import clock_in, in_words
from dataset.declaration import HYPOTHESES, kept_hypotheses
from dataset.plan import never_enough
from dataset.settings import CampaignSettings
from dataset.table import RUNS, CampaignDocument, read_rows
from eyelevel.commands.campaign import SEED, enough_runs, number_of_runs
from eyelevel.completing import COMPLETING_S, complete_now
from eyelevel.defaults import ANSWER_BUDGET, ANSWER_NETWORKS, AUTO
from eyelevel.measuring import carry_out, validation_s
from eyelevel.measuring_options import MeasuringOptions, campaign_name, document_of
from eyelevel.options import with_options
from eyelevel.sections import sections_of
from eyelevel.study_command import command_of
from measure.campaign.budget import Budget, read_budget
from measure.campaign.campaign import Campaign
from measure.campaign.forecast import forecast
from measure.campaign.results import changes
from measure.completing.completing import summary, warnings
from measure.run.aliases import choose_protocols
from measure.run.setting import Loading
from measure.sites.completeness import Completeness, read
from record.collection import choose_site
from record.http1 import MalformedMessage
from record.names import require_site_name
from record.recorder import sandbox
from record.recorder.addresses import AddressPolicy
from record.recorder.spec import RecordSpec
from record.recorder.targets import Target, read_targets
from record.round_trips import extra_rtts_ms, rtts_of
from record.site import Site
from record.summary import summary as recorded_summary
from record.urls import normal_url
from tuning import networks, protocols
from tuning.defaults import OFF
from tuning.networks import Network
from tuning.settings import choose, choose_one

QUESTION = hypotheses.DECLARED.with_name("answer.toml")
OVER = "tcp+,quic"
STEPS = ("record", "close", "validate", "measure", "report")
# Durations on two cores (s): a page's recording, a run before the page is known, the report.
RECORD_S, RUN_S, REPORT_S = 45.0, 12.0, 40.0
# The share of a page's requests that its recording must answer.
SERVED_SHARE = 0.95


@dataclass
class Progress:
    """Tells which step is done, and when all will be: `left_s` is what each step will take, as far as that is known.
    `is_limited`: whether it may end sooner and not later."""

    console: Console
    is_limited: bool
    left_s: dict[str, float] = field(default_factory=dict)

    def begins(self, step: str, text: str) -> None:
        """`step` is about to be done; those before it are over."""
        for before in STEPS[: STEPS.index(step)]:
            self.left_s.pop(before, None)
        total_s = sum(self.left_s.values())
        duration = f"; about {in_words(step_s)}" if (step_s := self.left_s.get(step)) else ""
        about = "at most" if self.is_limited else "about"
        self._say(step, f"{text}{duration}; all is done in {about} {in_words(total_s)}, {clock_in(total_s)}")

    def skips(self, step: str, text: str) -> None:
        """`step` was done before, as `text` says."""
        self._say(step, text)

    def _say(self, step: str, text: str) -> None:
        self.console.print(f"[{STEPS.index(step) + 1}/{len(STEPS)}] {step}: {text}", markup=False, soft_wrap=True)


def answer(
    url: str | None,
    site: str | None,
    net: str | None,
    runs: str | None,
    budget: str | None,
    server_rtts: str | None,
    think_time: str | None,
    name: str | None,
    results: Path,
    folder: Path,
    validate: bool,
    origin_ca: Path | None,
    plain: bool,
    allow_private: bool,
    again: str,
) -> None:
    """Carry out `eyelevel answer` with its options; the command line `again` resumes it. Raises EyelevelError."""
    require_browsing("measuring")
    allowed, console = Budget.of(read_budget(budget or ANSWER_BUDGET)), Console(highlight=False)
    # All options are checked before the first load.
    target = target_of(url, site)
    campaign_folder, document = campaign_of(results, name, target.name if target else site)
    question_text = text_of_question(campaign_folder, document)
    wanted_runs, is_auto = runs_of(runs, campaign_folder, document)
    chosen, loading = (
        networks_of(net, document),
        loading_of({"server_rtts": server_rtts, "think_time": think_time}, document),
    )
    # Runs whose number was given are all made, unless a budget was given, too.
    is_limited = is_auto or budget is not None
    progress = Progress(console, is_limited)
    progress.left_s = {"record": RECORD_S, "close": 2 * COMPLETING_S}
    progress.left_s["validate"] = validation_s(len(chosen), 2) if validate else 0
    progress.left_s["report"] = REPORT_S
    planned_s = RUN_S * wanted_runs * len(chosen) * len(OVER.split(","))
    spare_s = max(0.0, allowed.seconds - sum(progress.left_s.values()))
    progress.left_s["measure"] = min(planned_s, spare_s) if is_limited else planned_s

    def campaign_on(one: Site) -> Campaign:
        return Campaign(
            campaign_folder,
            {one.name: one},
            {network.name: network for network in chosen},
            {protocol.name: protocol for protocol in choose_protocols(OVER, protocols.load())},
            wanted_runs,
            SEED,
            loading,
            auto=is_auto,
            hypotheses=question_text,
        )

    with stoppable(again):
        known = (
            site or (next(iter(document.settings.sites), None) if document else None) or site_of_folder(campaign_folder)
        )
        one = site_to_answer(target, known, folder, origin_ca, allow_private, progress)
        if document:
            require_same_settings(document, campaign_on(one))
        # A campaign that has begun stays with the site as it is.
        completeness = closed(one, origin_ca, allow_private, progress, fetch=not document)
        one = Site.load(one.folder)
    faults = recording_faults(one, completeness)
    for text in faults:
        click.echo(f"eyelevel: WARNING: {text}", err=True)
    campaign = campaign_on(one)
    left_s = allowed.remaining_s - progress.left_s["validate"] - REPORT_S
    if campaign.auto and not document:
        campaign = replace(campaign, runs=affordable_runs(campaign, left_s, allowed.seconds - left_s))
    expected_s = expected(campaign)
    progress.left_s["measure"] = min(expected_s, max(0.0, left_s)) if is_limited else expected_s
    at_most = f"at most {campaign.runs}" if campaign.auto else f"{campaign.runs}"
    where = ", ".join(campaign.networks)
    progress.begins("validate", "networks and protocols" if validate else "not asked for")

    def announced(_: Campaign) -> Sequence[str]:
        progress.begins("measure", f"{one.name} behind {where}, {at_most} runs of each protocol")
        return ()

    options = MeasuringOptions(None, trust_workers=False, insecure=False, plain=plain, validate=validate, lanes=None)
    carry_out(
        campaign,
        options,
        console,
        "answer",
        enough_runs if campaign.auto else never_enough,
        announced,
        budget_s=allowed.remaining_s - REPORT_S if is_limited else None,
        again=again,
    )
    progress.begins("report", "the answer, and the report with all that it rests on")
    click.echo(reported(campaign_folder, faults, about_servers(one, loading, campaign_folder.name)))


@contextmanager
def stoppable(again: str) -> Iterator[None]:
    """End the process when it is interrupted while the block runs; `again` is the command line that goes on."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        click.echo(f"\nstopped; what was recorded and closed is kept; to go on: {again}", err=True)
        sys.exit(130)


def target_of(url: str | None, site: str | None) -> Target | None:
    """The page to answer for, with the name of its site: `site` if given, else of its host. Raises EyelevelError."""
    if url is None:
        return None
    page = url if "://" in url else f"https://{url}"
    (target,) = read_targets([f"{require_site_name(site)} {page}" if site else page])
    return target


def campaign_of(results: Path, name: str | None, site: str | None) -> tuple[Path, CampaignDocument | None]:
    """The folder of the campaign, and its document if there is one. Raises EyelevelError."""
    if not (site or name):
        raise EyelevelError("name a page (make answer URL=https://www.gnu.org/) or a site (make answer SITE=gnu.org)")
    folder = results / campaign_name(name or f"{PREFIX}{require_site_name(site or '')}")
    document = document_of(folder, "", command_of)
    if not (site or document or site_of_folder(folder)):
        raise EyelevelError(f"there is no campaign {folder.name} to go on with; give URL or SITE")
    settings = document.settings if document else None
    if settings and (
        {site} - {None, *settings.sites} or len(settings.sites) != 1 or list(settings.protocols) != OVER.split(",")
    ):
        raise EyelevelError(
            f"the campaign {folder.name} is of other sites or protocols than this answer needs ({OVER}); name another "
            "with CAMPAIGN (--campaign)"
        )
    return folder, document


def site_of_folder(folder: Path) -> str | None:
    """The site of the campaign in `folder` by its usual name, where it was stopped before it was a campaign."""
    return folder.name.removeprefix(PREFIX) if folder.is_dir() and folder.name.startswith(PREFIX) else None


def text_of_question(folder: Path, document: CampaignDocument | None) -> str:
    """The question's hypotheses: those that the campaign in `folder` declared, or the default ones. Raises
    EyelevelError when they are no question that a sentence answers."""
    if not document:
        return hypotheses.read_text(QUESTION)
    text = kept_hypotheses(folder, document)
    if not text:
        raise EyelevelError(
            f"the campaign {folder.name} declared nothing before its first run, so it cannot be answered; name another "
            "with CAMPAIGN (--campaign)"
        )
    require_question(hypotheses.parse(text, folder / HYPOTHESES), folder.name)
    return text


def runs_of(wanted: str | None, folder: Path, document: CampaignDocument | None) -> tuple[int, bool]:
    """How many runs of each there will be, and whether that is only the most that there are. Raises EyelevelError."""
    number = number_of_runs(wanted, None, document)
    if not document:
        return number, wanted in (None, AUTO)
    # A number for a campaign that may stop early is of the most that it makes.
    settings = document.settings
    if wanted == AUTO and not settings.auto:
        raise EyelevelError(
            f"the campaign {folder.name} was begun with a fixed number of runs ({settings.runs} of each), so it does "
            "not stop by itself; raise the number (RUNS), or name another with CAMPAIGN"
        )
    if number < (settings.runs or 0):
        raise EyelevelError(
            f"the campaign {folder.name} was begun with {settings.runs} runs of each, and cannot have {number}; leave "
            "out RUNS, or name another with CAMPAIGN"
        )
    return number, settings.auto


def networks_of(wanted: str | None, document: CampaignDocument | None) -> list[Network]:
    """The networks to be measured behind: those of the campaign, and what is `wanted` beside. Raises EyelevelError."""
    known = networks.load()
    before = choose("network", list(document.settings.networks), known) if document else []
    chosen = choose("network", wanted or ANSWER_NETWORKS, known) if wanted or not before else []
    return [*before, *(network for network in chosen if network not in before)]


def loading_of(given: Mapping[str, Any], document: CampaignDocument | None) -> Loading:
    """How pages are loaded: as the campaign was begun, or as the command line says. Raises EyelevelError."""
    settings = document.settings if document else CampaignSettings()
    return Loading.of(with_options(settings, "answer", given))


def require_same_settings(document: CampaignDocument, campaign: Campaign) -> None:
    """Raises EyelevelError when `campaign`, which was begun with `document`, cannot go on as it is now: before it is
    validated, which takes minutes."""
    now = campaign.document()
    for name, site in campaign.sites.items():
        if document.settings.sites[name].get("sha256") != now.settings.sites[name]["sha256"]:
            raise EyelevelError(
                f"{site.name} was recorded again, or changed, since the campaign {campaign.folder.name} was begun with "
                f"it; answer for it as it is now under another name: CAMPAIGN={campaign.folder.name}-2"
            )
    # Its lanes, if it has any, are found when it is measured.
    if differences := [text for text in changes(document, now) if not text.startswith("settings/lanes ")]:
        raise EyelevelError(
            f"the campaign {campaign.folder.name} was begun with other settings: {'; '.join(differences)}; name "
            "another with CAMPAIGN (--campaign)"
        )


def site_to_answer(
    target: Target | None,
    name: str | None,
    folder: Path,
    origin_ca: Path | None,
    allow_private: bool,
    progress: Progress,
) -> Site:
    """The site of `target`, which is recorded unless it is there, or the one of this `name`. Raises EyelevelError."""
    if target is None:
        assert name
        site = choose_site(name) if folder == SITES else Site.load(folder / choose_one("site", name, in_folder(folder)))
        progress.skips("record", f"{site.name} is there, {site.url}")
        return site
    into = folder / target.name
    if into.is_dir():
        site = Site.load(into)
        if same_page(site.url) != same_page(target.url):
            raise EyelevelError(
                f"{into} is of another page, {site.url}; give this one another name: make answer URL={target.url} "
                f"SITE={into.name}-2"
            )
        progress.skips("record", f"{into.name} was recorded before; 'make record SITES={target.url}' does it again")
        return site
    progress.begins("record", f"loading {target.url}")
    policy = AddressPolicy.ALL if allow_private else AddressPolicy.SAME_SPACE
    if not sandbox.run(RecordSpec(target.url, into, origin_ca=origin_ca, address_policy=policy)):
        raise EyelevelError(f"{target.url} could not be recorded; see above")
    site = Site.load(into)
    progress.console.print(recorded_summary(site), markup=False, soft_wrap=True)
    return site


def in_folder(folder: Path) -> dict[str, str]:
    """The names of the sites in `folder`."""
    return {path.name: path.name for path in sorted(folder.glob("[!.]*")) if path.is_dir()}


def same_page(url: str) -> str:
    """`url` as a site has it, without what makes no other page of it: the scheme, which is https there, and the last
    slash."""
    # A URL that no site can have is refused when it is recorded.
    with suppress(MalformedMessage):
        url = normal_url(url)
    return url.partition("://")[2].partition("#")[0].rstrip("/")


def closed(site: Site, origin_ca: Path | None, allow_private: bool, progress: Progress, *, fetch: bool) -> Completeness:
    """What is known of how complete `site` is; it is closed unless that was done before. `fetch`: whether what it lacks
    may be added to it. Raises EyelevelError."""
    if completeness := read(site):
        progress.skips("close", f"done on {moment(completeness.closed_at)}")
        return completeness
    progress.begins("close", f"loading {site.name} in replay, to find what was not recorded")
    completeness = complete_now(site, origin_ca, allow_private=allow_private, fetch=fetch)
    progress.console.print(summary(site.name, completeness), markup=False, soft_wrap=True)
    return completeness


def recording_faults(site: Site, completeness: Completeness) -> list[str]:
    """What makes loads of the recorded `site` say little about it. Raises EyelevelError."""
    faults = warnings(site, completeness)
    if completeness.served < SERVED_SHARE:
        faults.append(
            f"{site.name}: only {100 * completeness.served:.0f} % of what its page asks for was recorded; 'make close "
            f"SITES={site.name}' names what is missing"
        )
    return faults


def about_servers(site: Site, loading: Loading, campaign: str) -> list[str]:
    """What is known of how the recorded servers of `site` were, where its loads leave that out, and the command that
    answers with it; `campaign` is the name of the one that does not."""
    texts, variables = [], []
    start = next((one for one in site.exchanges if one.url == site.url), site.exchanges[0])
    rtts_ms = {address: rtt.rtt_ms for address, rtt in rtts_of(site).items()}
    if loading.think_time == OFF and start.ttfb_ms is not None:
        think_ms = max(0.0, start.ttfb_ms - rtts_ms.get(start.server, 0.0))
        round_trip = "" if start.server in rtts_ms else ", the way there and back included"
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
        f"When the page was recorded, {' and '.join(texts)}. That is left out here: servers answer at once, and are "
        f"equally far. With it: {command}"
    ]


def expected(campaign: Campaign) -> float:
    """How long those runs of `campaign` take that are planned and not yet made (s)."""
    rows = read_rows(campaign.folder) if (campaign.folder / RUNS).exists() else []
    done = {row.of for row in rows if row.valid}
    open_runs = [run for block in campaign.plan() for run in block if run not in done]
    return forecast(open_runs, rows, campaign.folder, campaign.run_model()).seconds


def affordable_runs(campaign: Campaign, left_s: float, other_s: float) -> int:
    """How many runs of each setting fit into `left_s`, those of `campaign` at most; `other_s` is what all else takes.
    Raises EyelevelError when too few do for any answer."""
    each_s = expected(replace(campaign, runs=1))
    runs = min(campaign.runs, int(max(0.0, left_s) // each_s))
    if runs < LOOKS[0]:
        needed_m = (LOOKS[0] * each_s + other_s) / 60
        raise EyelevelError(
            f"the budget is too small: {LOOKS[0]} runs of each, the fewest that can decide anything, need "
            f"{needed_m:.0f} minutes behind {', '.join(campaign.networks)}; give BUDGET={needed_m + 1:.0f}m, fewer "
            "networks (NET), or RUNS"
        )
    return runs


def reported(folder: Path, faults: Sequence[str], servers: Sequence[str]) -> str:
    """Write the report of the campaign in `folder` and its answer; returns the answer's first sentence and where it is.
    `faults` and `servers` are those of `write_answer`. Raises EyelevelError."""
    campaign = load(folder)
    question = hypotheses.of_campaign(folder, campaign.document)
    if has_report := bool(len(campaign.valid)):
        write_report(folder, sections_of(folder), question)
    sentence, page = write_answer(folder, question, faults, has_report=has_report, servers=servers)
    doubt = "\nBut the recording is not the site: see the warnings above, and the page." if faults else ""
    return f"\n{sentence}{doubt}\n{page}"
