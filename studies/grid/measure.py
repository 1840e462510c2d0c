"""Page load times over a grid of generated pages and networks.

A preset names the pages, networks and protocols. It becomes an ordinary campaign, without films: each round loads a
page once over every protocol, one after the other. A cell is a page on a network.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path

from base.errors import EyelevelError, Misuse
from base.words import in_words
from browsers.browsertime.configuration import STATIC_QUIET_MS
from dataset.plan import Enough
from dataset.table import RUNS, Row, Run, read_document, read_rows
from films.policy import ALL_FILMS
from measure.campaign.budget import read_budget
from measure.campaign.campaign import Campaign
from measure.campaign.forecast import Forecaster, RunModel
from measure.run.aliases import choose_protocols
from measure.run.gates import is_over_time
from measure.run.setting import Loading
from record import collection
from studies.grid.defaults import PRESETS
from studies.grid.pages import Page, page_named, read_size, size_name
from studies.grid.presets import Preset, read_preset
from studies.study import Measurement, Request
from tuning import networks, protocols
from tuning.defaults import DEFAULT_BROWSER
from tuning.networks import UNLIMITED_MBPS, Network
from tuning.protocols import TRANSPORTS, Protocol
from tuning.settings import Catalogue, choose

STUDY = "grid"

# The servers of protocols that do not name one.
USUAL_SERVERS = frozenset(transport.default_server for transport in TRANSPORTS.values())
# A cell gets no more rounds after this many loads that took too long.
OVER_TIME_ENDS = 2
NO_TIME, NO_BUDGET = "time", "budget"

Cell = tuple[str, str]


@dataclass(frozen=True)
class LeftOut:
    """A cell that is not measured: its page and network, whether `time` or `budget` is lacking, and the reason in
    words."""

    site: str
    network: str
    of: str
    reason: str


def least_s(page: Page, network: Network) -> float:
    """The shortest time in which any protocol can load `page` on `network`, in s: the time of its bytes at the rate
    of the slower half of the path, a round trip for the handshake, which may end at a hop, and a round trip for a
    request, which reaches the server."""
    mbps = min(half.down_mbps or UNLIMITED_MBPS for half in network.halves)
    return 8 * page.count * page.size_bytes / (mbps * 1e6) + (network.min_rtt_ms + network.path_rtt_ms) / 1000


def impossible(pages: Iterable[Page], chosen: Iterable[Network], limit_s: float) -> list[LeftOut]:
    """The cells whose loads cannot end within `limit_s` over any protocol."""
    return [
        LeftOut(page.name, network.name, NO_TIME, f"takes at least {least:.0f} s, may take {limit_s:g} s")
        for page, network in product(pages, chosen)
        if (least := least_s(page, network)) > limit_s
    ]


def beyond_budget(expected_s: Mapping[Cell, float], budget_s: float) -> list[LeftOut]:
    """The cells that do not fit into `budget_s` if each takes `expected_s`. The cells with the longest expected times
    are left out, so that as many cells as possible fit."""
    left_out, taken_s = [], 0.0
    for cell, seconds in sorted(expected_s.items(), key=lambda entry: entry[1]):
        if taken_s + seconds > budget_s:
            left_out.append(LeftOut(*cell, NO_BUDGET, f"would take about {in_words(seconds)}"))
        else:
            taken_s += seconds
    return left_out


def too_slow(rows: Iterable[Row]) -> set[Cell]:
    """The cells that get no more rounds because too many of their loads took too long."""
    late = Counter((row.site, row.network) for row in rows if is_over_time(row.reason))
    return {cell for cell, times in late.items() if times >= OVER_TIME_ENDS}


def no_more_rounds(without: Collection[Cell]) -> Enough:
    """Returns a function that says which cells get no more rounds: cells that are too slow, and those in `without`,
    which are left out now but may have been planned when there was more time."""
    return lambda folder: {*without} | too_slow(read_rows(folder))


def left_out(
    pages: Sequence[Page],
    chosen: Sequence[Network],
    over: Sequence[Protocol],
    runs: int,
    limit_s: float,
    budget_s: float | None,
    folder: Path,
    browsers: Sequence[str] = (DEFAULT_BROWSER,),
) -> list[LeftOut]:
    """The cells that cannot end in time, and those that do not fit into `budget_s` according to a forecast from the
    sites, the networks and the measurements in `folder`. Without a budget, the second kind are the cells that did not
    fit into the previous budget. Raises EyelevelError."""
    out = impossible(pages, chosen, limit_s)
    if budget_s is None:
        document = read_document(folder)
        before = [LeftOut(**one) for one in (document.study.get("left_out", ()) if document else ())]
        return out + [one for one in before if one.of == NO_BUDGET]
    rows = read_rows(folder) if (folder / RUNS).exists() else []
    done, known = {row.of for row in rows if row.valid}, {network.name: network for network in chosen}
    no_more = {(one.site, one.network) for one in out} | too_slow(rows)
    cells = [cell for cell in product((page.name for page in pages), known) if cell not in no_more]
    sites = {name: collection.load_site(name) for name in dict.fromkeys(name for name, _ in cells)}
    expected_s = {}
    for site, network in cells:
        conditions = product(browsers, over, range(1, runs + 1))
        planned = [Run(site, network, one.name, number, browser) for browser, one, number in conditions]
        open_runs = [run for run in planned if run not in done]
        model = RunModel({site: sites[site].page_bytes}, known, ALL_FILMS, filmed=False)
        seconds = Forecaster(rows, folder, model).forecast(open_runs).seconds
        expected_s[site, network] = min(seconds, len(open_runs) * limit_s)
    return out + beyond_budget(expected_s, budget_s)


def measurement(request: Request) -> Measurement:
    """The measurement for `request`. Raises EyelevelError."""
    study = request.document.study if request.document else {}
    preset = request.options["preset"]
    if preset and study.get("preset", preset) != preset:
        raise EyelevelError(
            f"{request.folder} is a campaign of the grid {study['preset']}; name another for {preset} with --campaign"
        )
    if not (preset := preset or study.get("preset")):
        raise Misuse(f"name a grid with --preset: {', '.join(PRESETS)}")
    counts, sizes, spread, budget = (request.options[name] for name in ("counts", "sizes", "spread", "budget"))
    grid = narrowed(read_preset(preset), counts, sizes, spread)
    before = [page for site in study.get("pages", ()) if (page := page_named(site))]
    chosen = choose("network", request.names("net", "networks", grid.networks), networks.load())
    known = protocols.load()
    over = choose_protocols(request.names("proto", "protocols", grid.protocols), known)
    if servers := request.options["servers"]:
        over += [one for one in served_by(servers, known) if one not in over]
    if len(over) < 2:
        raise Misuse(f"a grid compares protocols, and {over[0].name} is one alone; name more with --proto")
    budget_s = read_budget(budget) if budget else None
    campaign = grid_campaign(
        request.folder,
        preset,
        list(dict.fromkeys([*before, *(grid.pages() if counts or sizes or spread or not before else ())])),
        chosen,
        over,
        request.runs or request.setting("runs", grid.runs),
        request.plan_seed,
        request.options["limit"] or request.setting("limit_s", None) or grid.limit_s,
        budget_s,
        request.browser_names(grid.devices),
    )
    measured = set(product(campaign.sites, campaign.networks)) - campaign.without

    def summary() -> list[str]:
        lines = [
            f"{site} on {network} cannot finish in its time ({campaign.loading.limit_s:g} s)"
            for site, network in sorted(too_slow(read_rows(campaign.folder)))
        ]
        return [*lines, f"measured: {campaign.folder}"]

    left_out = [LeftOut(**one) for one in campaign.study["left_out"]]
    lines = [*left_out_lines(left_out, len(measured)), *too_few_lines(grid)]
    return Measurement(campaign, lines, summary, no_more_rounds(campaign.without), budget_s)


def narrowed(grid: Preset, counts: str | None, sizes: str | None, spread: str | None = None) -> Preset:
    """`grid` with other counts, sizes or numbers of servers, each a list in the user's form. Raises EyelevelError, also
    if no page is left."""
    some, servers = _numbers("--counts", counts), _numbers("--spread", spread)
    large = [size_name(read_size(size)) for size in _words(sizes)]
    narrow = replace(grid, series=tuple(one.narrowed(some, large, servers) for one in grid.series))
    if not narrow.pages():
        raise EyelevelError(f"no page of this grid can be measured: {'; '.join(too_few_lines(narrow))}")
    return narrow


def too_few_lines(grid: Preset) -> list[str]:
    """The requested pages that cannot exist, one line each, for the terminal."""
    return [
        f"{'one object' if count == 1 else f'{count} objects'} cannot be spread over {servers} servers"
        for count, servers in grid.too_few()
    ]


def _words(text: str | None) -> list[str]:
    return (text or "").replace(",", " ").split()


def _numbers(option: str, text: str | None) -> list[int]:
    try:
        numbers = [int(word) for word in _words(text)]
    except ValueError:
        raise Misuse(f"{option} takes whole numbers, not {text!r}") from None
    if min(numbers, default=1) < 1:
        raise Misuse(f"{option} takes numbers from 1 on, not {text!r}")
    return numbers


def served_by(text: str, known: Catalogue[Protocol]) -> list[Protocol]:
    """The protocols of the further servers in the list `text`. A server's name stands for the protocols that are named
    after it and its version of HTTP (caddy: caddy-h2 and caddy-h3); other protocols go by their own names. Raises
    EyelevelError."""
    names = []
    for word in _words(text):
        of_server = [
            name for name in (f"{word}-{transport.http_version}" for transport in TRANSPORTS.values()) if name in known
        ]
        if not of_server and (word not in known or known[word].server in USUAL_SERVERS):
            further = sorted({one.server for one in known.values()} - USUAL_SERVERS)
            raise EyelevelError(
                f"--servers takes further servers ({', '.join(further)}) or their protocols, not {word!r}; other "
                "protocols are chosen with --proto, and over how many servers objects are spread with --spread"
            )
        names += of_server or [word]
    return choose_protocols(list(dict.fromkeys(names)), known)


def grid_campaign(
    folder: Path,
    preset: str,
    pages: Sequence[Page],
    chosen: Sequence[Network],
    over: Sequence[Protocol],
    runs: int,
    seed: int,
    limit_s: float,
    budget_s: float | None = None,
    browsers: Sequence[str] = (DEFAULT_BROWSER,),
) -> Campaign:
    """The campaign of `pages` in `folder`, without the cells that are `left_out`. Raises EyelevelError."""
    out = left_out(pages, chosen, over, runs, limit_s, budget_s, folder, browsers)
    without = frozenset((one.site, one.network) for one in out)
    document = read_document(folder)
    earlier = document.settings.sites if document else {}
    names = [page.name for page in pages if any((page.name, network.name) not in without for network in chosen)]
    if not names:
        raise EyelevelError(f"nothing is left to measure: {out[0].site} on {out[0].network} {out[0].reason}")
    return Campaign(
        folder=folder,
        sites={name: collection.load_site(name) for name in dict.fromkeys([*earlier, *names])},
        networks={network.name: network for network in chosen},
        protocols={protocol.name: protocol for protocol in over},
        runs=runs,
        seed=seed,
        loading=Loading(repeatable=False, filmed=False, quiet_ms=STATIC_QUIET_MS, limit_s=limit_s, browser=browsers[0]),
        further_browsers=tuple(browsers[1:]),
        without=without,
        study={
            "name": STUDY,
            "preset": preset,
            "pages": [page.name for page in pages],
            "budget_s": budget_s,
            "left_out": [asdict(one) for one in out],
        },
    )


def left_out_lines(left_out: Sequence[LeftOut], measured: int) -> list[str]:
    """The cells that are not measured, and how many are, in lines for the terminal."""
    lines = [f"{measured} cells are to be measured, {len(left_out)} are left out"]
    for one in left_out:
        why = "cannot finish in its time" if one.of == NO_TIME else "is beyond the budget"
        lines.append(f"  {one.site} on {one.network} {why}: it {one.reason}")
    return lines
