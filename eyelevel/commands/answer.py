"""`eyelevel answer`: what HTTP/3 would change for one site: record, close, measure and report it in one go."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import click
from rich.console import Console

from analysis import hypotheses
from analysis.confirmatory import LOOKS
from analysis.report.answer import write_answer
from analysis.report.write import write_report
from analysis.runs import load
from analysis.user_study.section import section as user_study
from base.errors import EyelevelError
from base.places import RESULTS, SITES
from base.privileges import require_browsing
from eyelevel.closing import CLOSING_S, close_now
from eyelevel.commands.campaign import AUTO, MAX_RUNS, SEED, enough_runs, number_of_runs
from eyelevel.measuring import MeasuringOptions, campaign_name, carry_out, document_of, validation_s
from eyelevel.options import PATH, allow_private
from eyelevel.study_command import command_of
from measure.campaign.budget import read_budget
from measure.campaign.campaign import Campaign, never_enough
from measure.campaign.forecast import forecast
from measure.campaign.progress import clock_in, in_words
from measure.closing import summary, warnings
from measure.completeness import Completeness, read
from measure.declaration import kept_hypotheses
from measure.run.aliases import choose_protocols
from measure.table import RUNS, CampaignDocument
from record.collection import choose_site
from record.names import require_site_name
from record.recorder import sandbox
from record.recorder.addresses import AddressPolicy
from record.recorder.spec import RecordSpec
from record.recorder.targets import read_targets
from record.site import Site
from record.summary import summary as recorded_summary
from studies import STUDIES
from tuning import networks, protocols
from tuning.settings import choose, choose_one

QUESTION = hypotheses.DECLARED.with_name("answer.toml")
OVER = "tcp+,quic"
NETWORKS = "lte,fibre"
BUDGET = "60m"
PREFIX = "answer-"
STEPS = ("record", "close", "validate", "measure", "report")
# What recording a page, and the report, take on two cores (s).
RECORD_S, REPORT_S = 45.0, 40.0
# Of what a page asks for, so much must be in its recording.
SERVED_SHARE = 0.95


@dataclass
class Progress:
    """Tells which step is done, and when all will be: `left_s` is what each step will take, as far as that is known."""

    console: Console
    left_s: dict[str, float] = field(default_factory=dict)

    def begins(self, step: str, text: str) -> None:
        """`step` is about to be done; those before it are over."""
        for before in STEPS[: STEPS.index(step)]:
            self.left_s.pop(before, None)
        total_s = sum(self.left_s.values())
        duration = f"; about {in_words(step_s)}" if (step_s := self.left_s.get(step)) else ""
        self._say(step, f"{text}{duration}; all is done in about {in_words(total_s)}, {clock_in(total_s)}")

    def skips(self, step: str, text: str) -> None:
        """`step` was done before, as `text` says."""
        self._say(step, text)

    def _say(self, step: str, text: str) -> None:
        self.console.print(f"[{STEPS.index(step) + 1}/{len(STEPS)}] {step}: {text}", markup=False, soft_wrap=True)


@click.command()
@click.argument("url", required=False)
@click.option("--site", help="A site that is recorded or imported already, or the name for that of URL.")
@click.option("--net", help=f"Networks of tuning/networks.toml ({NETWORKS}).")
@click.option("--runs", help="Runs of each protocol behind each network, or auto (unless given): until it is decided.")
@click.option("--budget", help=f"How long all may take, by which the most runs are chosen: 90s, 60m, 1.5h ({BUDGET}).")
@click.option("--campaign", "name", help=f"The folder in results/; {PREFIX}SITE unless given.")
@click.option("--results", type=PATH, default=RESULTS, help="Another folder for results.")
@click.option("--sites", "folder", type=PATH, default=SITES, help="Another folder than sites/.")
@click.option("--validate/--no-validate", default=True, help="Whether to measure networks and protocols before.")
@click.option("--origin-ca", type=click.Path(path_type=Path, resolve_path=True), help="As of 'eyelevel record'.")
@click.option("--plain", is_flag=True, help="Lines only, for logs.")
@allow_private
def main(
    url: str | None,
    site: str | None,
    net: str | None,
    runs: str | None,
    budget: str | None,
    name: str | None,
    results: Path,
    folder: Path,
    validate: bool,
    origin_ca: Path | None,
    plain: bool,
    allow_private: bool,
) -> None:
    """Answer what HTTP/3 in place of HTTP/2 would change for the page at URL, or for a SITE, in one sentence and on one
    page: record it, close it, measure it behind networks, and report. What was done before is not done again, so the
    same command goes on after a stop.

    Example: eyelevel answer https://www.gnu.org/ --net lte,dsl --budget 60m
    """
    require_browsing("measuring")
    begun_s, console = time.monotonic(), Console(highlight=False)
    campaign_folder, document = campaign_of(results, name, site, url)
    # All options are checked before the first load.
    budget_s, question_text = read_budget(budget or BUDGET), text_of_question(campaign_folder, document)
    chosen = choose("network", net or list(document.networks) or NETWORKS, networks.load())
    wanted_runs = number_of_runs(runs, None, document.settings)
    progress = Progress(console)
    progress.left_s = {"record": RECORD_S, "close": 2 * CLOSING_S}
    progress.left_s["validate"] = validation_s(len(chosen), 2) if validate else 0
    progress.left_s["report"] = REPORT_S
    progress.left_s["measure"] = max(0.0, budget_s - sum(progress.left_s.values()))
    one = site_to_answer(url, site or next(iter(document.sites), None), folder, origin_ca, allow_private, progress)
    completeness = closed(one, origin_ca, allow_private, progress)
    one = Site.load(one.folder)
    faults = recording_faults(one, completeness)
    for text in faults:
        click.echo(f"eyelevel: WARNING: {text}", err=True)
    campaign = Campaign(
        campaign_folder,
        {one.name: one},
        {network.name: network for network in chosen},
        {protocol.name: protocol for protocol in choose_protocols(OVER, protocols.load())},
        wanted_runs,
        SEED,
        # A number for a campaign that may stop early is of the most that it makes.
        auto=document.settings["auto"] if document.settings and runs != AUTO else runs in (None, AUTO),
        hypotheses=question_text,
    )
    spent_s = time.monotonic() - begun_s
    if campaign.auto and not document.settings:
        after_s = progress.left_s["validate"] + progress.left_s["report"]
        campaign = replace(campaign, runs=affordable_runs(campaign, budget_s - spent_s - after_s, spent_s + after_s))
    measured_before = len(load(campaign_folder).valid) if (campaign_folder / RUNS).exists() else 0
    expected_s = expected(campaign) * max(0.0, 1 - measured_before / max(1, runs_in(campaign)))
    progress.left_s["measure"] = expected_s
    at_most = f"at most {campaign.runs}" if campaign.auto else f"{campaign.runs}"
    where = ", ".join(campaign.networks)
    progress.begins("validate", "networks and protocols" if validate else "not asked for")

    def announced(_: Campaign) -> Sequence[str]:
        progress.begins("measure", f"{one.name} behind {where}, {at_most} runs of each protocol")
        return ()

    options = MeasuringOptions(None, trust_workers=False, insecure=False, plain=plain, validate=validate, lanes=None)
    enough = enough_runs if campaign.auto else never_enough
    carry_out(campaign, options, console, "answer", enough, announced)
    progress.begins("report", "the answer, and the report with all that it rests on")
    click.echo(reported(campaign_folder, faults, console))


def campaign_of(results: Path, name: str | None, site: str | None, url: str | None) -> tuple[Path, CampaignDocument]:
    """The folder of the campaign, and its document if there is one, else an empty one. Raises EyelevelError."""
    if url is not None:
        (target,) = read_targets([url if "://" in url else f"https://{url}"])
        site = site or target.name
    if not (site or name):
        raise EyelevelError("name a page (make answer URL=https://www.gnu.org/) or a site (make answer SITE=gnu.org)")
    folder = results / campaign_name(name or f"{PREFIX}{site}")
    document = document_of(folder, "", command_of) or CampaignDocument({})
    if not (site or document.sites):
        raise EyelevelError(f"there is no campaign {folder.name} to go on with; give URL or SITE")
    others = {site} - {None, *document.sites} if document.settings else set()
    if document.settings and (others or len(document.sites) != 1 or list(document.protocols) != OVER.split(",")):
        raise EyelevelError(
            f"the campaign {folder.name} is of other sites or protocols than this answer needs ({OVER}); name another "
            "with CAMPAIGN (--campaign)"
        )
    return folder, document


def text_of_question(folder: Path, document: CampaignDocument) -> str:
    """What is asked: what the campaign in `folder` declared, or what a new one will. Raises EyelevelError."""
    return kept_hypotheses(folder, document) if document.settings else hypotheses.read_text(QUESTION)


def site_to_answer(
    url: str | None, name: str | None, folder: Path, origin_ca: Path | None, allow_private: bool, progress: Progress
) -> Site:
    """The site of `url`, which is recorded unless it is there, or the one of this `name`. Raises EyelevelError."""
    if url is None:
        assert name
        site = choose_site(name) if folder == SITES else Site.load(folder / choose_one("site", name, in_folder(folder)))
        progress.skips("record", f"{site.name} is there, {site.url}")
        return site
    (target,) = read_targets([url if "://" in url else f"https://{url}"])
    into = folder / require_site_name(name or target.name)
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
    """`url` without what makes no other page of it: the scheme, which is https in a site, and the last slash."""
    return url.partition("://")[2].partition("#")[0].rstrip("/")


def closed(site: Site, origin_ca: Path | None, allow_private: bool, progress: Progress) -> Completeness:
    """What is known of how complete `site` is; it is closed unless that was done before. Raises EyelevelError."""
    if completeness := read(site):
        progress.skips("close", f"done on {completeness.closed_at}")
        return completeness
    progress.begins("close", f"loading {site.name} in replay, to find what was not recorded")
    completeness = close_now(site, origin_ca, allow_private=allow_private)
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


def runs_in(campaign: Campaign) -> int:
    """How many runs `campaign` plans."""
    return sum(len(block) for block in campaign.plan())


def expected(campaign: Campaign) -> float:
    """How long all runs of `campaign` take that are planned (s)."""
    runs = (run for block in campaign.plan() for run in block)
    return forecast(runs, (), campaign.folder, campaign.run_model()).seconds


def affordable_runs(campaign: Campaign, left_s: float, other_s: float) -> int:
    """How many runs of each setting fit into `left_s`, MAX_RUNS at most; `other_s` is what all else takes. Raises
    EyelevelError when too few do for any answer."""
    each_s = expected(replace(campaign, runs=1))
    runs = min(MAX_RUNS, int(max(0.0, left_s) // each_s))
    if runs < LOOKS[0]:
        needed_m = (LOOKS[0] * each_s + other_s) / 60
        raise EyelevelError(
            f"the budget is too small: {LOOKS[0]} runs of each, the fewest that can decide anything, need "
            f"{needed_m:.0f} minutes behind {', '.join(campaign.networks)}; give BUDGET={needed_m + 1:.0f}m, fewer "
            "networks (NET), or RUNS"
        )
    return runs


def reported(folder: Path, faults: Sequence[str], console: Console) -> str:
    """Write the report of the campaign in `folder` and its answer; returns the answer's first sentence and where it is.
    Raises EyelevelError."""
    question = hypotheses.of_campaign(folder, load(folder).document)
    has_report = bool(len(load(folder).valid))
    if has_report:
        write_report(folder, [*(study.section for study in STUDIES), user_study], question)
    sentence, page = write_answer(folder, question, faults, has_report=has_report)
    doubt = "\nBut the recording is not the site: see the warnings above, and the page." if faults else ""
    return f"\n{sentence}{doubt}\n{page}"
