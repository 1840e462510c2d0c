"""The pages' numbers beside the published ones."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import spearmanr

from record.web.facts import Facts
from record.web.quantiles import Marginal, marginals

# A number fits if it is this near to the published one, as a share of it, or if it is at most one unit off.
SHARE = 0.10
# The whole of which a share is one: a marginal's `of` → the fact that counts it; None: it counts pages.
WHOLES: dict[str, str | None] = {
    "pages": None,
    "pages with an image as LCP": None,
    "pages with an img element as LCP": None,
    "requests": "requests",
    "scripts": "js_requests",
    "scripts in HTML": "scripts_in_html",
    "images": "image_requests",
    "servers": "servers",
}
# The pages that do not count, if a share is one of fewer: those with one of these facts.
WITHOUT = {
    "pages with an image as LCP": ("lcp_text",),
    "pages with an img element as LCP": ("lcp_text", "lcp_background"),
}
# Pairs of numbers that are large on the same pages: Butkiewicz et al., Understanding Website Complexity, IMC 2011
# (objects, servers, bytes); Web Almanac 2025: Page Weight (bytes by type, layout shift by weight), Cookies (third
# parties and their cookies), Performance (scripts and blocking).
POSITIVE = (
    ("requests", "bytes"),
    ("requests", "servers"),
    ("js_requests", "js_bytes"),
    ("image_requests", "image_bytes"),
    ("js_bytes", "blocking_ms"),
    ("bytes", "image_bytes"),
    ("servers", "cookies"),
    ("bytes", "shift"),
)


@dataclass(frozen=True)
class Row:
    """A marginal: the published numbers, and ours at the same percentiles (a share has one of each, in percent)."""

    name: str
    marginal: Marginal
    ours: tuple[float, ...]
    tolerance: float
    """How far off a number may be: one unit; a share of few items, half an item, so the nearest number fits."""

    @property
    def published(self) -> tuple[float, ...]:
        return self.marginal.values or (self.marginal.percent,)

    @property
    def title(self) -> str:
        """The subject of its numbers, for a reader."""
        one = self.marginal
        if one.values:
            levels = "median" if one.percentile else "p10, 25, 50, 75, 90"
            return f"{one.title} ({levels}{' of all' if one.over == 'items' else ''})"
        return f"{one.title}: % of {one.of}"

    @property
    def judgement(self) -> str:
        """Whether it fits, for a reader."""
        word = ("no", "yes")[self.fits] if self.marginal.fit else "not made to"
        return f"{word} (guess)" if self.marginal.guess else word

    @property
    def fits(self) -> bool:
        """Whether each of our numbers is within 10 % or the tolerance of the published one."""
        pairs = zip(self.published, self.ours, strict=True)
        return all(round(abs(ours - there), 2) <= max(SHARE * there, self.tolerance) for there, ours in pairs)


def rows(pages: Mapping[str, Facts]) -> list[Row]:
    """A row for each marginal, counted from the facts of `pages`."""
    return [_row(name, marginal, list(pages.values())) for name, marginal in marginals().items()]


def _row(name: str, marginal: Marginal, pages: Sequence[Facts]) -> Row:
    if marginal.values:
        numbers = [page[name] for page in pages] if marginal.over == "pages" else _flat(page[name] for page in pages)
        ours = tuple(round(one, 2) for one in percentiles(numbers, marginal.levels))
        return Row(name, marginal, ours, marginal.unit)
    count = WHOLES[marginal.of]
    among = [page for page in pages if not any(page[fact] for fact in WITHOUT.get(marginal.of, ()))]
    whole = len(among) if count is None else sum(page[count] for page in among)
    share = 100 * sum(page[name] for page in among) / whole
    return Row(name, marginal, (round(share, 1),), max(marginal.unit, 50 / whole))


def percentiles(numbers: Sequence[float], levels: Sequence[int]) -> list[float]:
    """Percentiles of `numbers`, of which the i-th of n has the level (i - ½)/n (Hazen), so that equally spaced draws
    have the percentiles they are drawn from."""
    values: list[float] = np.percentile(numbers, levels, method="hazen").tolist()
    return values


def correlation(pages: Mapping[str, Facts], first: str, second: str) -> float:
    """Spearman's rank correlation of two numbers of pages."""
    return float(spearmanr(*([page[name] for page in pages.values()] for name in (first, second))).statistic)


def _flat(lists: Iterable[Sequence[float]]) -> list[float]:
    return [number for some in lists for number in some]
