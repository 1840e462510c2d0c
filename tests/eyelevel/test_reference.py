"""The reference campaign is completely declared, and its plan is printed before anything is measured."""

import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner
from factories import ROW, campaign_document, rejected
from rich.console import Console
from support.material import recording_path

from analysis import hypotheses
from analysis.statistics.hypotheses import Pair
from base.errors import EyelevelError
from base.places import PROJECT
from eyelevel import measuring
from eyelevel.commands.reference import main
from eyelevel.commands.reference_campaign import PACKAGE_S, campaign_of, closed, estimate_lines, sites_of
from eyelevel.defaults import DECLARATION
from measure.campaign.campaign import Campaign
from measure.campaign.declared import DeclaredCampaign, DeclaredSite, read_declared
from measure.campaign.results import opened
from measure.run.aliases import choose_protocols
from measure.sites.completeness import Completeness
from record.collection import choose_sites
from record.demo import generate
from record.site import Site, write_site
from tuning import networks, protocols
from tuning.settings import choose

FILE = DECLARATION
DATA = FILE.parent
PAPER = ("tcp", "tcp+", "tcp+bbr", "quic", "quic+bbr")
LEVEL = Pair("tcp+level", "quic+1con")
SMALL = """
networks = ["dsl", "mss"]
protocols = ["tcp+", "quic"]
hypotheses = "question.toml"
runs = 3
seed = 1
films = "none"
quality = "small"

[[sites]]
name = "demo-light"
reason = "it is small"
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """The declaration of a small campaign."""
    path = tmp_path / "declared" / "small.toml"
    path.parent.mkdir()
    path.write_text(SMALL)
    (path.parent / "question.toml").write_text(hypotheses.DECLARED.read_text())
    return path


@pytest.fixture
def campaign(small: Path, tmp_path: Path) -> Campaign:
    return campaign_of(read_declared(small), tmp_path / "try", choose_sites(["demo-light"]), "")


def test_the_reference_is_of_ten_sites_the_papers_design_and_the_level_pair() -> None:
    declared = read_declared(FILE)
    assert len(declared.sites) >= 10
    assert declared.networks == ("dsl", "lte", "da2gc", "mss")
    assert declared.protocols == (*PAPER, *LEVEL)
    assert declared.runs >= 3
    assert len(choose("network", list(declared.networks), networks.load())) == 4
    assert len(choose_protocols(list(declared.protocols), protocols.load())) == 7


def test_the_document_has_the_numbers_of_the_package() -> None:
    table = pd.read_csv(DATA / "reference" / "report" / "tables" / "confirmatory.csv")
    text = " ".join((PROJECT / "docs" / "reference.md").read_text().split())
    for row in table[table["metric"] == "si"].to_dict("records"):
        gain, low, high = (f"{100 * row[name]:+.1f}" for name in ("gain", "gain_low", "gain_high"))
        bold = "**" if row["verdict"] == "faster" else ""
        assert f"{bold}{gain} %{bold} ({low} to {high})" in text, row
    runs = pd.read_csv(DATA / "reference" / "runs.csv")
    valid_runs = int(runs["valid"].sum())
    assert f"{valid_runs} runs that count" in text
    assert f"{len(runs)} attempts, and {len(runs) - valid_runs} do not count" in text


def test_the_document_has_the_claims_of_the_package() -> None:
    claims = pd.read_csv(DATA / "reference" / "report" / "tables" / "claims.csv")
    text = " ".join((PROJECT / "docs" / "reference.md").read_text().split())
    counts = claims["verdict"].value_counts()
    held, undecided, refuted = (counts.get(verdict, 0) for verdict in ("holds", "not decided", "does not hold"))
    others = f"{undecided} are *not decided*, and {refuted or 'none'} is shown to *not hold*."
    assert f"The paper has {len(claims)} claims: {held} *hold*, {others}" in text
    # The number that decides a claim, with its interval: -5.9 % (-9.1 % to -2.5 %).
    decided = claims[claims["verdict"] != "not decided"].set_index("claim")["sentence"]
    assert len(decided)
    for sentence in decided:
        numbers = re.search(r"([+-][\d.]+) % \(([+-][\d.]+) % to ([+-][\d.]+) %\)", sentence)
        assert numbers, sentence
        assert numbers[1].lstrip("+") in text and f"{numbers[2]} to {numbers[3]} %" in text, numbers[0]


def test_the_reference_asks_what_campaigns_ask_and_of_the_level_pair() -> None:
    text = hypotheses.read_text(path := FILE.with_name(read_declared(FILE).hypotheses))
    question, usual = hypotheses.parse(text, path), hypotheses.load()
    assert question.comparisons == (*usual.comparisons, LEVEL)
    assert question.family == (*usual.family, LEVEL)
    # The reference was declared before FCP and LCP were.
    assert question.family_metrics == usual.family_metrics[:2]
    same = ("significant_p", "confidence", "equivalence_margin", "equivalence_round_trips")
    assert [getattr(question, name) for name in same] == [getattr(usual, name) for name in same]


@pytest.mark.needs_corpus
def test_the_recordings_of_the_reference_are_in_the_corpus() -> None:
    assert [site.name for site in read_declared(FILE).sites if not recording_path(site.recording).exists()] == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('reason = "it is small"', 'reason = " "', "the site demo-light has no reason"),
        (
            'reason = "it is small"',
            'reason = "x"\nwithout = {lte = "why"}',
            "demo-light is without lte, which is not one of",
        ),
        ('reason = "it is small"', 'reason = "x"\nwithout = {dsl = " "}', "demo-light is without dsl for no reason"),
        (
            'reason = "it is small"',
            'reason = "x"\nwithout = {dsl = "y", mss = "y"}',
            "without all networks: leave it out",
        ),
        ("runs = 3", "runs = 0", "runs must be 1 or more, not 0"),
        ('films = "none"', 'films = "some"', "films must be one of all, sample, none, not 'some'"),
        ('networks = ["dsl", "mss"]', "networks = []", "networks is empty"),
        ('name = "demo-light"', 'name = "../x"', "not a name for a site"),
        ("seed = 1", "", "the key 'seed' is missing"),
        ("seed = 1", "seed = ", "cannot be read"),
    ],
)
def test_a_declaration_that_is_wrong_is_refused_in_one_line(small: Path, old: str, new: str, message: str) -> None:
    small.write_text(SMALL.replace(old, new))
    with pytest.raises(EyelevelError, match=re.escape(message)) as error:
        read_declared(small)
    assert "\n" not in str(error.value)


def test_a_recording_that_is_not_there_is_named_with_how_to_say_where_it_is(tmp_path: Path) -> None:
    site = DeclaredSite("never-recorded", "why not", "har/page.har")
    with pytest.raises(
        EyelevelError, match=r"the recording of never-recorded is missing: .*har/page\.har; .*EYELEVEL_CORPUS"
    ):
        sites_of([site], tmp_path, Console(quiet=True))


def test_what_is_to_be_measured_is_told_with_reasons_and_nothing_is_measured(small: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    done = CliRunner().invoke(
        main, ["--declaration", str(small), "--results", str(results), "--estimate"], catch_exceptions=False
    )
    first, before, counts, rest = done.stdout.splitlines()[-4:]
    assert "validation, about 2 min; after: the report and the package, 3 min" in before
    assert first == "demo-light: it is small"
    assert counts.startswith("1 sites x 2 networks x 2 protocols: 4 loads in a round, about ")
    assert rest.startswith("open: 12 of 12 runs, about ")
    assert not results.exists()


def test_what_a_stopped_session_measured_is_not_told_as_open(small: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results" / "small"
    row = replace(ROW, site="demo-light", network="dsl", protocol="tcp+", folder="runs/demo-light/dsl/tcp+/1-1")
    with opened(folder, campaign_document()) as results:
        results.keep(row)
    done = CliRunner().invoke(
        main,
        ["--declaration", str(small), "--results", str(folder.parent), "--estimate"],
        catch_exceptions=False,
    )
    assert "open: 11 of 12 runs, about " in done.stdout
    assert "as 1 attempts took" in done.stdout


def test_a_site_is_measured_with_what_was_fetched_when_it_was_closed(tmp_path: Path) -> None:
    site = write_site(generate("demo-light"), tmp_path / "demo-light")

    def fetching(one: Site) -> Completeness:
        recording = one.recording()
        further = replace(recording.exchanges[-1], url=f"{one.url}fetched.css")
        write_site(replace(recording, exchanges=(*recording.exchanges, further)), one.folder)
        return Completeness("", "", "lte", True, {}, {}, 1.0, (), (), {}, fetched=(further.url,))

    urls = {exchange.url for exchange in closed(site, Console(quiet=True), fetching).exchanges}
    assert urls == {exchange.url for exchange in site.exchanges} | {f"{site.url}fetched.css"}


def test_what_was_measured_says_how_long_the_rest_takes(campaign: Campaign) -> None:
    row = replace(ROW, site="demo-light", network="dsl", protocol="tcp+", seconds=600.0)
    counts, rest = estimate_lines(campaign, [row, rejected("film_unclean", row, protocol="quic")])
    assert "(dsl 20 min, mss " in counts
    assert counts.endswith("as 2 attempts took")
    assert rest.startswith("open: 11 of 12 runs, about ")


@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
def test_the_command_that_resumes_has_all_that_was_given(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = tmp_path / "results"
    question = hypotheses.DECLARED.read_text()
    begun = campaign_of(read_declared(small), results / "small", choose_sites(["demo-light"]), question)
    with opened(begun.folder, begun.document(), begun.hypotheses):
        pass
    monkeypatch.setattr(measuring, "measure", lambda *_: 12)
    budget = f"{2 * PACKAGE_S:.0f}s"
    options = ["--declaration", str(small), "--results", str(results), "--budget", budget, "--no-validate"]
    done = CliRunner().invoke(main, options)
    message, _, command = done.output.partition("; to resume: ")
    assert message.endswith("the budget is used up; 12 runs left")
    assert sorted(command.split()) == sorted(
        ["make", "reference", f"DECLARATION={small}", f"RESULTS={results}", f"BUDGET={budget}", "VALIDATE=no"]
    )


def test_a_declared_campaign_is_measured_as_it_is_declared(campaign: Campaign, small: Path) -> None:
    declared: DeclaredCampaign = read_declared(small)
    assert (campaign.runs, campaign.seed, campaign.films.kept, campaign.films.quality) == (3, 1, "none", "small")
    assert (tuple(campaign.networks), tuple(campaign.protocols)) == (declared.networks, declared.protocols)
