"""The report of a campaign: its files, and its pages in the packaged browser."""

import hashlib
import json
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pandas as pd
import pytest
from click.testing import CliRunner
from support.analysis_truth import with_canary
from support.axe import accessible
from support.browser import Browser
from support.figure_layout import draw_nothing, write_white_figures
from support.films import ORANGE, WHITE, frame, keep_film_in
from support.films import page as shown
from support.pdf import page_texts
from support.validations import KNOWN, write_validation

from analysis.hypotheses import DECLARED, of_campaign
from analysis.report.campaign_pages import campaign_pages
from analysis.report.conclusion import findings_of
from analysis.report.run_files import Links
from analysis.report.section import ANSWER, EVERYTHING, PAPER
from analysis.report.sections.comparisons import script_json
from analysis.runs import KEYS, load
from analysis.text import percent, percent_interval
from base.places import PROJECT
from dataset import metrics
from dataset.table import require_document, write_document
from eyelevel.commands.report import main
from eyelevel.simulate import Truth, write
from measure.campaign.server_choices import choices_of_server

pytestmark = pytest.mark.slow

PAGES = (ANSWER, PAPER, EVERYTHING)
REFERENCE = PROJECT / "data" / "reference" / "report"
EXAMPLE = PROJECT / "analysis" / "figures" / "example_figure3.py"

TRUTH = Truth(
    sites=6,
    networks=("dsl", "lte"),
    protocols=("tcp", "tcp+", "quic"),
    runs=6,
    effects={"quic": -0.2},
    effect_sd=0.02,
    noise_sd=0.02,
    excluded={"quic": 0.05},
)


def report(folder: Path, *options: str) -> str:
    """Make the report of the campaign in `folder`; return the output."""
    done = CliRunner().invoke(main, [str(folder), *options])
    assert done.exit_code == 0, done.output
    return done.output.removeprefix(f"reading {folder}\n")


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated campaign, and its report. One site has films, and one setting has no valid run."""
    folder = write(tmp_path_factory.mktemp("report") / "simulated", TRUTH)
    runs = with_canary(pd.read_csv(folder / "runs.csv", keep_default_na=False))
    # Special characters in a name must not break the page.
    runs["site"] = runs["site"].replace("site-02", "<b>&site")
    lost = (runs["site"] == "site-03") & (runs["network"] == "lte") & (runs["protocol"] == "quic")
    runs.loc[lost, "valid"] = False
    runs.loc[lost, "reason"] = "film: </script><script>alert(1)</script>"
    runs["valid"] = runs["valid"].astype(str).str.lower()
    runs.to_csv(folder / "runs.csv", index=False)
    scenes = [(frame(ORANGE), 400), (frame(WHITE), 300), (shown(0.5), 300), (shown(1.0), 1)]
    filmed = [folder / f"runs/site-01/dsl/{protocol}/{run}-1" for protocol in ("tcp+", "quic") for run in range(1, 7)]
    keep_film_in(filmed, scenes)
    for path in filmed:
        (path / "netlog.json.gz").touch()
    write_validation(folder, TRUTH.protocols)
    report(folder)
    return folder


@pytest.fixture
def without_files_of_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not write the files of figures: the tests that use this do not read them."""
    write_white_figures(monkeypatch)


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not draw figures: the tests that use this only check words."""
    draw_nothing(monkeypatch)


@pytest.fixture
def opened(browser: Browser, campaign: Path, request: pytest.FixtureRequest) -> Browser:
    """The browser with a page of the report in a wide window: that with everything, unless a test names another."""
    browser.narrow(1400)
    browser.open((campaign / "report" / getattr(request, "param", EVERYTHING)).as_uri())
    return browser


def opening(*pages: str) -> pytest.MarkDecorator:
    """Runs a test with each of these pages `opened`."""
    return pytest.mark.parametrize("opened", pages, indirect=True)


def read_page(folder: Path, page: str = ANSWER) -> str:
    """A page of the report of the campaign in `folder`."""
    return (folder / "report" / page).read_text()


@opening(*PAGES)
def test_a_page_loads_nothing_and_complains_of_nothing(opened: Browser) -> None:
    assert opened.console() == []
    loaded = opened.run("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert [name for name in loaded if not name.startswith("data:")] == []
    broken = opened.eventually(
        "for (const i of document.images) { i.loading = 'eager'; }"
        "await Promise.all([...document.images].filter((i) => i.src).map((i) => i.decode()));"
        "return [...document.images].filter((i) => i.src && !i.naturalWidth).length;"
    )
    assert broken == 0


@pytest.mark.needs_axe
@pytest.mark.parametrize("page", PAGES)
def test_everybody_can_read_a_page(page: str, browser: Browser, campaign: Path) -> None:
    assert accessible(browser, (campaign / "report" / page).as_uri()) == []


@opening(ANSWER)
def test_the_answer_says_in_what_protocols_differ_besides_the_transport(opened: Browser) -> None:
    (text,) = opened.run("return [...document.querySelectorAll('#differences li')].map((one) => one.textContent)")
    assert text.startswith(
        "QUIC and TCP+ differ in round trips before the first request (1.1 against 2.1), and besides "
    )
    assert "window kept after one loss (0.85 against 0.70)" in text


def test_names_and_reasons_are_texts(opened: Browser) -> None:
    assert opened.run("return document.querySelectorAll('main b').length") == 0
    assert opened.run("return document.body.innerText.includes('<b>&site')")
    reasons = opened.run("return document.getElementById('table-excluded_attempts').textContent")
    assert "</script><script>alert(1)</script>" in reasons


def column(browser: Browser, table: str, heading: str) -> list[str]:
    script = (
        "const table = document.getElementById(arguments[0]);"
        "const at = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent === arguments[1]);"
        "return [...table.tBodies[0].rows].map((row) => row.cells[at].textContent);"
    )
    texts: list[str] = browser.run(script, table, heading)
    return texts


def sort_by(browser: Browser, table: str, heading: str) -> None:
    script = (
        "[...document.querySelectorAll(`#${arguments[0]} th button`)]"
        ".find((button) => button.textContent === arguments[1]).click()"
    )
    browser.run(script, table, heading)


@opening(PAPER)
def test_tables_sort_by_number_both_ways(opened: Browser) -> None:
    before = column(opened, "table-mean_gains", "change of the means")
    gains = [float(text.split()[0]) for text in before]
    assert gains != sorted(gains)
    sort_by(opened, "table-mean_gains", "change of the means")
    up = [float(text.split()[0]) for text in column(opened, "table-mean_gains", "change of the means")]
    assert up == sorted(gains)
    sort_by(opened, "table-mean_gains", "change of the means")
    down = [float(text.split()[0]) for text in column(opened, "table-mean_gains", "change of the means")]
    assert down == sorted(gains, reverse=True)


@opening(PAPER)
def test_missing_cells_come_last_whichever_way(opened: Browser) -> None:
    for _ in range(2):
        sort_by(opened, "table-beside_the_paper", "here")
        cells = column(opened, "table-beside_the_paper", "here")
        missing = [cell == "-" for cell in cells]
        assert missing == sorted(missing) and any(missing) and not all(missing)


def test_all_comparisons_can_be_chosen_and_sorted(opened: Browser, campaign: Path) -> None:
    assert len(column(opened, "table-explorer", "site")) == 6
    opened.run(
        "const form = document.getElementById('explorer');"
        "form.elements.pair.value = [...form.elements.pair.options].findIndex((o) => o.text === 'QUIC against TCP+');"
        "form.elements.network.value = 1; form.dispatchEvent(new Event('change'));"
    )
    assert len(column(opened, "table-explorer", "site")) == 5  # site-03 has no valid run of QUIC on lte
    assert set(column(opened, "table-explorer", "verdict")) == {"faster"}
    sort_by(opened, "table-explorer", "change")
    gains = column(opened, "table-explorer", "change")
    table = pd.read_csv(campaign / "report" / "tables" / "comparisons.csv")
    quic = table[(table["network"] == "lte") & (table["metric"] == "si") & (table["reference"] == "tcp+")]
    assert [float(text.split()[0]) for text in gains] == pytest.approx(100 * quic["ratio_gain"].sort_values(), abs=0.11)


def test_figures_enlarge_to_their_natural_size(opened: Browser) -> None:
    """On a phone this is larger than the screen: the dialog scrolls, and the page does not."""
    opened.narrow(390)
    opened.run("document.querySelector('.enlarge').click()")
    natural, enlarged, dialog, seen = opened.run(
        "const viewer = document.getElementById('viewer'), picture = viewer.querySelector('img');"
        "return [picture.naturalWidth, picture.getBoundingClientRect().width, viewer.scrollWidth, viewer.clientWidth]"
    )
    assert enlarged == natural > 390
    assert dialog > seen
    assert opened.run("return document.documentElement.scrollWidth") <= 390
    opened.run("document.querySelector('#viewer').click()")
    assert not opened.run("return document.getElementById('viewer').open")


def test_pictures_tell_their_finding_and_tables_their_title(opened: Browser) -> None:
    pictures = opened.run(
        "return [...document.querySelectorAll('.picture')]"
        ".map((i) => [i.alt, i.closest('figure').querySelector('figcaption').textContent])"
    )
    assert all(alt and not caption.startswith(alt) for alt, caption in pictures)
    assert "QUIC against TCP+: faster" in pictures[0][0]
    assert opened.run("return [...document.querySelectorAll('table')].every((t) => t.caption && t.caption.textContent)")


def test_at_most_half_of_the_tables_are_open_and_all_are_on_paper(opened: Browser) -> None:
    counts = "return ['', '[open]'].map((open) => document.querySelectorAll(`details.table${open}`).length)"
    tables, open_ones = opened.run(counts)
    assert 3 <= open_ones <= tables / 2
    opened.run("dispatchEvent(new Event('beforeprint'))")
    assert opened.run(counts) == [tables, tables]
    opened.run("dispatchEvent(new Event('afterprint'))")
    assert opened.run(counts) == [tables, open_ones]


def test_long_tables_repeat_their_heads_on_paper(opened: Browser) -> None:
    pages = page_texts(opened.print_page())
    rows = opened.run("return document.querySelectorAll('#table-settings tbody tr').length")
    of_table = [page for page in pages if len(re.findall(r"site-0\d (?:TCP|TCP\+|QUIC) [A-Z0-9]+ \[ms\]", page)) > 5]
    assert rows > 150 and len(of_table) >= 3
    assert [page[:300] for page in of_table if "skewness" not in page] == []


# The words that are visible in a window without scrolling; folded details are not.
WORDS_SEEN = """
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = [], range = document.createRange();
  while (texts.nextNode()) {
    range.selectNode(texts.currentNode);
    const box = range.getBoundingClientRect();
    if (box.width > 1 && box.top < innerHeight && texts.currentNode.parentElement.checkVisibility())
      seen.push(...texts.currentNode.textContent.split(/\\s+/).filter((word) => /[\\p{L}\\d]/u.test(word)));
  }
  return seen;
"""


@pytest.mark.parametrize("width", [1400, 390])
def test_the_first_screen_of_the_largest_campaign_has_at_most_250_words(width: int, browser: Browser) -> None:
    browser.narrow(width)
    browser.open((REFERENCE / ANSWER).as_uri())
    words = browser.run(WORDS_SEEN)
    assert 50 < len(words) <= 250
    assert "sooner" in words


def test_the_answer_of_the_largest_campaign_is_printed_on_three_sheets(browser: Browser) -> None:
    browser.open((REFERENCE / ANSWER).as_uri())
    sheets = page_texts(browser.print_page())
    assert len(sheets) <= 3
    assert "On average, QUIC" in sheets[0] and "its largest picture turns every few seconds" in " ".join(sheets)


@opening(ANSWER)
def test_the_first_screen_has_the_answer_a_line_for_each_network_and_warnings(opened: Browser) -> None:
    seen = opened.run(
        "return [...document.querySelectorAll('h1, .lines tbody tr, #warnings h2, #warnings li')]"
        ".filter((e) => e.getBoundingClientRect().top < 900).map((e) => e.textContent.replace(/\\s+/g, ' ').trim())"
    )
    title, dsl, lte, *others = seen
    places = "on DSL and among loads that succeeded on LTE"
    assert title == f"On average, QUIC shows these 5 to 6 pages sooner than TCP+ {places}."
    number = r"-\d\d\.\d % \(-\d\d\.\d % to -\d\d\.\d %\)"
    assert re.fullmatch(rf"DSL home line {number}faster", dsl)
    assert re.fullmatch(rf"LTE mobile {number}faster among loads that succeeded", lte)
    assert "Keep in mind" in others and "This campaign is simulated: nothing in it was measured." in others


@opening(*PAGES)
def test_a_page_says_which_campaign_it_is_of(opened: Browser) -> None:
    text = opened.run("return document.querySelector('.kicker').textContent")
    assert text.startswith("Campaign simulated, begun on 1 January 2026")
    assert re.search(r", \d+ runs that count\.$", text)


@opening(ANSWER)
def test_lines_are_drawn_on_one_axis_in_the_colours_of_their_verdicts(opened: Browser) -> None:
    lines = opened.run(
        "return [...document.querySelectorAll('#answer .lines tbody tr')].map((row) => {"
        "  const [zero, dot] = ['.zero', 'circle'].map((name) => row.querySelector(name).getBoundingClientRect());"
        "  return [row.className, Math.round(zero.left), dot.left + dot.width / 2 < zero.left,"
        "    getComputedStyle(row.querySelector('circle')).fill];"
        "})"
    )
    assert len({place for _, place, _, _ in lines}) == 1
    assert {(kind, is_left, fill) for kind, _, is_left, fill in lines} == {("sooner", True, "rgb(0, 114, 178)")}


def test_films_play(opened: Browser) -> None:
    opened.run("document.querySelector('[data-films] .play').click()")
    played = opened.eventually(
        "const films = [...document.querySelectorAll('video')];"
        "await Promise.all(films.map((film) => new Promise((done) => film.addEventListener('ended', done))));"
        "return films.map((film) => [film.currentTime, film.videoWidth, film.error]);"
    )
    assert len(played) == 2
    for seconds, width, error in played:
        assert seconds > 1 and width == 480 and error is None


@opening(*PAGES)
@pytest.mark.parametrize("width", [1400, 400])
def test_a_page_fits_its_window(opened: Browser, width: int) -> None:
    opened.narrow(width)
    opened.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert opened.run("return document.documentElement.scrollWidth") <= width
    hidden = (
        "return [...document.querySelectorAll('main p, main li, main h2, main h3, figcaption')]"
        ".filter((e) => e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.textContent)"
    )
    assert opened.run(hidden) == []


def test_the_answer_says_what_the_tables_say(campaign: Path) -> None:
    text, sentences = read_page(campaign), read_page(campaign, EVERYTHING)
    table = pd.read_csv(campaign / "report" / "tables" / "confirmatory.csv")
    for network, name in (("dsl", "DSL"), ("lte", "LTE")):
        key = (table["network"] == network) & (table["reference"] == "tcp+") & (table["compared"] == "quic")
        row = table[key & (table["metric"] == "si")].iloc[0]
        assert f"{percent(row['gain'])} ({percent_interval(row['gain_low'], row['gain_high'])})" in text
        assert f"On {name}, QUIC&#39;s SI is {-100 * row['gain']:.1f} % lower than TCP+&#39;s" in sentences
    assert "This campaign is simulated" in text
    assert "site-03 over QUIC" in text


def test_every_file_that_the_pages_name_is_there(campaign: Path) -> None:
    folder = campaign / "report"
    text = "".join(read_page(campaign, page) for page in PAGES)
    named = set(re.findall(r'href="((?:tables|figures)/[^"]+|\w+\.html)[^"]*"', text))
    assert len(named) > 40 and named > set(PAGES)
    assert [name for name in named if not (folder / name).exists()] == []
    assert {path.suffix for path in (folder / "figures").iterdir()} == {".pdf", ".png"}
    assert "figure4_dsl_1" in {path.stem for path in (folder / "figures").iterdir()}


def test_the_films_figure_has_links_to_what_its_runs_have_left(campaign: Path) -> None:
    links = re.findall(r'<a href="\.\./(runs/[^"]*)">([^<]*)</a>', read_page(campaign, EVERYTHING))
    assert [text.partition(" run ")[0] for _, text in links] == ["TCP+", "QUIC"]
    assert all(text.endswith(": network log") and (campaign / unquote(path)).is_file() for path, text in links)


def test_the_answer_leads_to_the_films_of_typical_loads(campaign: Path) -> None:
    assert '<p id="typical">Typical loads: <a href="everything.html#films">their films</a>' in read_page(campaign)


def test_tables_are_latex(campaign: Path) -> None:
    text = (campaign / "report" / "tables" / "mean_gains.tex").read_text()
    assert text.count(r"\begin{tabular}") + text.count(r"\begin{longtable}") == 1
    assert r"\toprule" in text and r"\%" in text
    assert not re.search(r"(?<!\\)%(?! Over)", text.partition("\n")[2])
    sites = (campaign / "report" / "tables" / "gains_quic_against_tcpplus.tex").read_text()
    assert r"\textless{}b\textgreater{}\&site" in sites


def test_runs_as_parquet_are_those_of_the_csv(campaign: Path) -> None:
    stored = pd.read_parquet(campaign / "report" / "runs.parquet")
    csv = pd.read_csv(campaign / "runs.csv", keep_default_na=False)
    assert stored["si"].tolist() == csv["si"].tolist()
    assert stored["valid"].dtype == bool
    assert stored["valid"].sum() == csv["valid"].sum()


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], dict[str, Any]]:
    """A function that runs the example on a table of runs, writing figure3.png; returns its variables.

    The example runs in this process, which has loaded all libraries.
    """

    def run(runs: Path) -> dict[str, Any]:
        monkeypatch.setattr(sys, "argv", ["", str(runs), str(tmp_path / "figure3.png")])
        return runpy.run_path(str(EXAMPLE), run_name="__main__")

    return run


def test_figure_3_can_be_rebuilt_in_few_lines(
    campaign: Path, tmp_path: Path, example: Callable[[Path], dict[str, Any]]
) -> None:
    assert len(EXAMPLE.read_text().splitlines()) < 30
    picture = tmp_path / "figure3.png"
    subprocess.run([sys.executable, EXAMPLE, campaign / "runs.csv", picture], check=True)
    assert picture.read_bytes().startswith(b"\x89PNG")
    picture.unlink()
    example(campaign / "report" / "runs.parquet")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_figure_3_names_networks_in_several_browsers_as_tables_do(
    tmp_path: Path, example: Callable[[Path], dict[str, Any]]
) -> None:
    folder = write(tmp_path / "two", Truth(sites=2, networks=("lte",), protocols=("tcp", "quic"), runs=2))
    runs = pd.read_csv(folder / "runs.csv", keep_default_na=False)
    both = pd.concat([runs.assign(browser=name) for name in ("chromium", "firefox")])
    both.to_csv(tmp_path / "runs.csv", index=False)
    assert example(tmp_path / "runs.csv")["networks"] == ["lte@chromium", "lte@firefox"]


@pytest.mark.usefixtures("without_figures")
def test_other_programs_have_a_section_only_where_they_were_measured(tmp_path: Path) -> None:
    folder = write(tmp_path / "c", Truth(sites=2, networks=("lte",), protocols=("tcp+", "quic", "quinn-h3"), runs=6))
    document = require_document(folder)
    choices = {name: choices_of_server(KNOWN[name]) for name in document.settings.protocols}
    write_document(folder, replace(document, server_choices=choices))
    report(folder)
    _, _, section = read_page(folder, EVERYTHING).partition('<section id="programs">')
    section, _, _ = section.partition("</section>")
    alone = (
        "Not the program alone: these settings also differ, quinn-h3 and QUIC in answer to a loss and order of service."
    )
    assert alone in section and alone in read_page(folder)
    assert "How quinn-h3 and QUIC differ was not measured in this campaign." in section
    assert "server (quinn against quic_server)" in section
    assert "figure" in section and (folder / "report" / "tables" / "program_gains.csv").exists()
    # Without quinn-h3, only the gain of the contrast's own programs is known, and there is no other to compare it with.
    runs = pd.read_csv(folder / "runs.csv", keep_default_na=False)
    runs[runs["protocol"] != "quinn-h3"].to_csv(folder / "runs.csv", index=False)
    report(folder)
    text = read_page(folder) + read_page(folder, EVERYTHING)
    assert "#programs" not in text and 'id="programs"' not in text and "programs_quic_against" not in text
    assert not list((folder / "report").rglob("*program*"))


@pytest.mark.usefixtures("without_files_of_figures")
def test_a_report_of_a_small_campaign_has_nothing_that_it_cannot_tell(tmp_path: Path) -> None:
    """It once had 17 claims that it could not test, a chart of one bar, and distributions over one site."""
    folder = write(tmp_path / "small", Truth(sites=1, networks=("dsl",), protocols=("tcp", "quic"), runs=1))
    report(folder)
    text, everything = read_page(folder), read_page(folder, EVERYTHING)
    assert "One site: nothing can be said of others" in text
    assert "The fewest valid runs of a setting are 1" in text
    assert "untested on 1" in everything
    assert not (folder / "report" / PAPER).exists() and PAPER not in text
    assert not any(name in text + everything for name in (": nothing.", "There are no films", "the campaign lacks"))
    written = {path.stem for path in (folder / "report").rglob("*.*")}
    assert {
        "figure1",
        "figure3",
        "over_sites",
        "beside_the_paper",
        "claims",
        "sites_quic_against_tcp",
    } & written == set()
    assert all(pd.read_csv(path).size for path in (folder / "report" / "tables").glob("*.csv"))


def without_what_is_usual(runs: pd.DataFrame) -> pd.DataFrame:
    """Remove what campaigns usually have: no Speed Index, no visual change, constant PLT, no time of day."""
    runs["si"], runs["fvc"], runs["plt"], runs["started_at"] = "", 0.0, 1000.0, ""
    return runs


def no_site_with_both(runs: pd.DataFrame) -> pd.DataFrame:
    return runs[(runs["site"] == "site-01") == (runs["protocol"] == "tcp")]


def what_must_be_there(runs: pd.DataFrame) -> pd.DataFrame:
    """Keep only the columns that every campaign must have, and the metrics."""
    return runs[[*KEYS, *metrics.time_names()]]


@pytest.mark.parametrize(
    ("protocols", "change", "text"),
    [
        (("tcp", "quic"), what_must_be_there, "No valid run has a known start"),
        (("tcp",), what_must_be_there, "No valid run has a known start"),
        (("tcp",), None, "the campaign has no pair of protocols and no metric"),
        (("tcp", "quic"), without_what_is_usual, "Valid runs lack some metrics: SI"),
        (("tcp", "quic"), no_site_with_both, "no runs to compare"),
        (("mine", "yours"), None, "it is not decided whether yours shows these 2 pages"),
    ],
)
@pytest.mark.usefixtures("without_files_of_figures")
def test_there_is_a_report_of_every_campaign_with_a_valid_run(
    tmp_path: Path, protocols: tuple[str, ...], change: Callable[[pd.DataFrame], pd.DataFrame] | None, text: str
) -> None:
    folder = write(tmp_path / "odd", Truth(sites=2, networks=("moon",), protocols=protocols, runs=4))
    if change:
        change(pd.read_csv(folder / "runs.csv", dtype=str)).to_csv(folder / "runs.csv", index=False)
    report(folder)
    assert text in read_page(folder)


@pytest.mark.usefixtures("without_figures")
def test_figures_alone_take_the_place_of_older_ones_and_make_no_page(tmp_path: Path) -> None:
    folder = write(tmp_path / "again", Truth(sites=2, networks=("dsl",), protocols=("tcp", "quic"), runs=3))
    (folder / "report" / "figures").mkdir(parents=True)
    (folder / "report" / "figures" / "old.png").write_text("old")
    report(folder, "--figures-only")
    assert not (folder / "report" / "figures" / "old.png").exists()
    assert (folder / "report" / "figures" / "figure3.png").exists()
    assert not (folder / "report" / "index.html").exists()


@pytest.mark.usefixtures("without_figures")
def test_the_first_screen_and_the_methods_say_whether_the_hypotheses_were_declared(tmp_path: Path) -> None:
    folder = write(tmp_path / "asked", Truth(sites=2, networks=("dsl",), protocols=("tcp", "quic"), runs=3))
    declared = folder / "hypotheses.toml"
    text = declared.read_text().replace("significant_p = 0.01", "significant_p = 0.02")
    declared.write_text(text.replace("confidence = 0.95", "confidence = 0.9"))
    document = json.loads((folder / "campaign.json").read_text())
    document["hypotheses"]["sha256"] = hashlib.sha256(declared.read_bytes()).hexdigest()
    (folder / "campaign.json").write_text(json.dumps(document))

    def sentence(answer: str) -> str:
        first = re.search(r'<p id="declared" class="(\w+)">(.*?)</p>', answer)
        assert first
        assert (first[1] == "warnings") == first[2].startswith("Post hoc: ")
        return first[2]

    report(folder)
    everything, origin = read_page(folder, EVERYTHING), sentence(read_page(folder))
    assert "were declared on 1 January 2026, 00:00 UTC, before the first run: hypotheses.toml" in origin
    assert origin in everything.partition('<section id="methods">')[2]
    assert "p &lt; 0.02" in everything, "what the campaign declared, not today's file"
    for text in (everything, read_page(folder)):
        assert "90 % interval" in text and "95 %" not in text
    _, _, family = (folder / "report" / "tables" / "confirmatory_family.tex").read_text().partition("\n")
    assert r"& 90 \% interval &" in family
    others = findings_of(load(folder), of_campaign(folder, require_document(folder), DECLARED))
    page = campaign_pages(others, [], frozenset(), {}, Links(folder, folder / "report"))[ANSWER]
    assert "not those that the campaign declared on 1 January 2026" in sentence(page)


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--site", "nowhere"], "the site nowhere is not in the campaign"), (["--hypotheses", "/nowhere"], "is missing")],
)
def test_what_is_not_there_is_one_line(tmp_path: Path, options: list[str], message: str) -> None:
    folder = write(tmp_path / "small", Truth(sites=1, networks=("dsl",), protocols=("tcp", "quic"), runs=2))
    done = CliRunner().invoke(main, [str(folder), *options])
    assert done.exit_code != 0
    assert message in str(done.exception or done.output)
    assert not (folder / "report").exists()


def test_a_campaign_without_a_valid_run_is_one_line(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "lost", Truth(sites=1, networks=("dsl",), protocols=("tcp",), runs=2, excluded={"tcp": 1})
    )
    done = CliRunner().invoke(main, [str(folder)])
    assert "no run of the campaign lost is valid (2 tried)" in str(done.exception)


def explored(page: str) -> dict[str, Any]:
    """The data about all comparisons in the script of the page with everything."""
    data = re.search(r'id="comparisons-data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    document: dict[str, Any] = json.loads(data[1])
    return document


@pytest.mark.parametrize("name", ["<!--<script>", "</script><script>alert(1)</script>", "<!-- a & b -->"])
def test_no_name_in_the_pages_data_can_end_or_prolong_its_script(name: str) -> None:
    text = script_json({"sites": [name]})
    assert "<" not in text
    assert json.loads(text) == {"sites": [name]}


def test_numbers_in_the_pages_script_are_json(campaign: Path) -> None:
    comparisons = explored(read_page(campaign, EVERYTHING))
    assert len(comparisons["rows"]) == len(pd.read_csv(campaign / "report" / "tables" / "comparisons.csv"))


@pytest.mark.usefixtures("without_files_of_figures")
def test_a_report_lacks_the_metric_of_a_missing_column_and_has_an_added_one_by_its_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "METRICS", [*metrics.METRICS, metrics.Metric("area", "px", "Area", lambda _: None)])
    folder = write(tmp_path / "other", Truth(sites=2, networks=("dsl",), protocols=("tcp", "quic"), runs=4))
    pd.read_csv(folder / "runs.csv").drop(columns=["vc85"]).to_csv(folder / "runs.csv", index=False)
    report(folder)
    assert "The campaign has no column of VC85" in read_page(folder)
    tables = folder / "report" / "tables"
    compared = set(pd.read_csv(tables / "comparisons.csv")["metric"])
    assert compared == set(metrics.time_names()) - {"vc85"} and "area" in compared
    paper = pd.read_csv(tables / "beside_the_paper.csv")
    assert paper.loc[paper["metric"] == "vc85", "ours"].isna().all()
    page = read_page(folder, EVERYTHING) + read_page(folder, PAPER)
    assert "<td>Area</td>" in page
    # Differences of metrics other than shares are in the metric's unit, in their table and in the table of all
    # comparisons.
    assert "<td>Area [px]</td>" in page and "mean difference [" not in page
    comparisons = explored(page)
    assert "Area [px]" in comparisons["metrics"] and "[" not in "".join(comparisons["headings"])
