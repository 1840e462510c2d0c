"""The hypotheses of a campaign: `hypotheses.toml`, reduced to the campaign's protocols and metrics.

A campaign keeps a copy that was made before its first run (`dataset.declaration`). All other hypotheses are post hoc.
"""

import math
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from analysis.statistics.hypotheses import Hypotheses, Origin, Pair
from analysis.text import moment
from base.errors import EyelevelError
from base.places import PROJECT
from dataset.clients import clients_of
from dataset.declaration import HYPOTHESES, declaration_of, kept_hypotheses, text_sha256
from dataset.metrics import time_names
from dataset.table import CampaignDocument

DECLARED = Path(__file__).with_name("hypotheses.toml")
SHARES = ("significant_p", "confidence", "equivalence_margin")
KEYS = {*SHARES, "equivalence_round_trips", "comparisons", "family"}


def of_campaign(folder: Path, document: CampaignDocument, file: Path | None = None) -> Hypotheses:
    """The hypotheses on the campaign in `folder`, whose `campaign.json` is `document`: those in `file`; unless given,
    those that the campaign declared; if it declared none, those of DECLARED. Raises EyelevelError."""
    if file is None and document.hypotheses:
        hypotheses = parse(kept_hypotheses(folder, document), folder / HYPOTHESES)
        source = HYPOTHESES
    else:
        hypotheses = load(file or DECLARED)
        source = hypotheses.origin.source
    declared = declaration_of(document, folder)
    is_post_hoc = hypotheses.origin.sha256 != declared.sha256
    origin = Origin(source, hypotheses.origin.sha256, declared.declared_at, is_post_hoc)
    if is_post_hoc:
        return replace(hypotheses, origin=origin)
    # A client is a network in a browser. If one of them was added to the campaign, the client was added at that time;
    # if both were, at the later time.
    clients = clients_of(dict.fromkeys((*document.settings.networks, *declared.networks)), document.settings.browsers)
    came_at = {
        name: max(declared.networks.get(client.network, ""), declared.further_browsers.get(client.program, ""))
        for name, client in clients.items()
    }
    added = dict(declared.networks) | {name: time for name, time in came_at.items() if time}
    return replace(hypotheses, added_protocols=declared.protocols, added_networks=added, origin=origin)


def load(path: Path = DECLARED) -> Hypotheses:
    """The hypotheses in the file `path`. Raises EyelevelError if it is missing or wrong."""
    return parse(read_text(path), path)


def read_text(path: Path) -> str:
    """The text of the file `path`, byte for byte. Raises EyelevelError."""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        raise EyelevelError(f"{path} is missing") from None
    except (OSError, ValueError) as error:
        raise EyelevelError(f"{path} is not a file of hypotheses: {error}") from None


def parse(text: str, path: Path) -> Hypotheses:
    """The hypotheses in `text`, the content of the file `path`. Raises EyelevelError if it is wrong."""
    source = path.relative_to(PROJECT) if path.is_relative_to(PROJECT) else path
    try:
        document = tomllib.loads(text)
        if unknown := document.keys() ^ KEYS:
            raise EyelevelError(f"{path}: {', '.join(sorted(unknown))} is missing or unknown; see {DECLARED}")
        hypotheses = Hypotheses(
            significant_p=float(document["significant_p"]),
            confidence=float(document["confidence"]),
            equivalence_margin=float(document["equivalence_margin"]),
            equivalence_round_trips=float(document["equivalence_round_trips"]),
            comparisons=_pairs(document["comparisons"]),
            family=_pairs(document["family"]["pairs"]),
            family_metrics=tuple(document["family"]["metrics"]),
            origin=Origin(str(source), text_sha256(text)),
        )
    except (ValueError, TypeError, KeyError) as error:
        raise EyelevelError(f"{path} is not a file of hypotheses: {error}") from None
    if fault := next(_faults(hypotheses), ""):
        raise EyelevelError(f"{path}: {fault}")
    return hypotheses


def _faults(hypotheses: Hypotheses) -> Iterator[str]:
    for name in SHARES:
        if not 0 < getattr(hypotheses, name) < 1:
            yield f"{name} is {getattr(hypotheses, name)}, must lie between 0 and 1"
    for reference, compared in set(hypotheses.family) - set(hypotheses.comparisons):
        yield f"the family has {compared} against {reference}, which is not among the comparisons"
    for metric in set(hypotheses.family_metrics) - set(time_names()):
        yield f"there is no metric {metric} to compare by; there are {', '.join(time_names())}"
    if not 0 <= (round_trips := hypotheses.equivalence_round_trips) < math.inf:
        yield f"equivalence_round_trips is {round_trips}, must be 0 (equivalence_margin holds everywhere) or above"


def _pairs(entries: Sequence[Sequence[str]]) -> tuple[Pair, ...]:
    return tuple(Pair(reference, compared) for reference, compared in entries)


def origin_sentence(origin: Origin) -> str:
    """A sentence that says where hypotheses come from."""
    text, when = f"{origin.source} (SHA-256 {origin.sha256[:16]}…)", moment(origin.declared_at)
    if not origin.is_post_hoc:
        return f"Pairs, family and thresholds were declared on {when}, before the first run: {text}."
    if when:
        return (
            f"Post hoc: pairs, family and thresholds are those of {text}, not those that the campaign declared on "
            f"{when}, before its first run."
        )
    return (
        "Post hoc: the campaign has not declared its hypotheses, so nothing shows that pairs, family and "
        f"thresholds, which are those of {text}, were chosen before its results were known."
    )
