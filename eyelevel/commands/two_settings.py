"""The two settings of `eyelevel ab`: read from the command line, and checked to be a pair that blocks have.

A block pairs protocols, browsers on their devices, and variants of a site (`measure.campaign.plan`).
"""

import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from analysis.ab import Side
from base.errors import EyelevelError, Misuse
from base.text import nearest
from dataset.table import CampaignDocument
from eyelevel.commands.campaign import chosen_browsers
from eyelevel.make import targets
from measure.campaign.campaign import Campaign
from measure.run.aliases import choose_protocols
from record.names import original_of
from tuning import protocols as tuned

# The variables in which A and B may differ: a block has a run of each of their values.
PAIRED = ("PROTO", "BROWSER", "DEVICE", "SITES")


def read_setting(name: str, text: str, known: Collection[str]) -> dict[str, str]:
    """Variable → value of the setting called `name` (A or B), from a `text` such as `PROTO=quic BROWSER=firefox`.
    `known`: all variables of a campaign. Raises Misuse."""
    setting = {}
    try:
        words = shlex.split(text)
    except ValueError:
        words = [text]
    for word in words:
        variable, _, value = word.partition("=")
        if not value.strip():
            raise Misuse(f"{name} must be a setting such as PROTO=quic, not {text!r}")
        if variable not in known:
            near = nearest(variable, known)
            meant = f"did you mean {near}?" if near else f"A and B may differ in {', '.join(PAIRED)}"
            raise Misuse(f"{name}: a campaign has no {variable}; {meant}")
        if variable not in PAIRED:
            raise Misuse(
                f"{name}: blocks do not pair {variable}, only protocols (PROTO), browsers (BROWSER), devices (DEVICE) "
                f"and variants of a site (SITES): if A and B share it, give it once, outside A and B; otherwise "
                "measure two campaigns, and compare them with 'make compare'"
            )
        setting[variable] = value
    return setting


@dataclass(frozen=True)
class TwoSettings:
    """A and B, as the user wrote them (`texts`), and what each is: the protocols of a campaign that has both, as an
    option names them; its browsers, and the sites of A and of B (None: those of the campaign)."""

    texts: tuple[str, str]
    protocols: str
    browsers: tuple[str, ...] | None
    sites: tuple[tuple[str, ...], tuple[str, ...]] | None

    @classmethod
    def of(cls, texts: tuple[str, str], options: Mapping[str, Any], original: CampaignDocument | None) -> "TwoSettings":
        """The settings of the `texts`, which share the `options`, in a new campaign or the `original` one.

        Raises Misuse if these are not two settings that a block has, and EyelevelError.
        """
        known = targets()["campaign"].variables
        common = {variable: options[variable.lower()] for variable in PAIRED}
        if original:
            common["PROTO"] = common["PROTO"] or next(iter(original.settings.protocols), None)
        a, b = (common | read_setting(name, text, known) for name, text in zip("AB", texts, strict=True))
        protocols = tuple(_protocol(name, of["PROTO"]) for name, of in zip("AB", (a, b), strict=True))
        browsers = None
        if any(of[variable] for of in (a, b) for variable in ("BROWSER", "DEVICE")):
            browsers = tuple(_browser(name, of) for name, of in zip("AB", (a, b), strict=True))
        sites = None
        if a["SITES"] != b["SITES"]:
            sites = _names(a["SITES"]), _names(b["SITES"])
            require_variants(*sites)
        differing = {
            "PROTO": protocols[0] != protocols[1],
            "BROWSER or DEVICE": browsers is not None and browsers[0] != browsers[1],
            "SITES": sites is not None,
        }
        if sum(differing.values()) > 1:
            names = ", and in ".join(name for name, differs in differing.items() if differs)
            raise Misuse(
                f"A and B differ in {names}, so a block would have a run of each combination; "
                "let them differ in only one of these"
            )
        # Equal settings (A/A): the protocol twice, the second time under another name (`measure.run.aliases`).
        is_twice = differing["PROTO"] or not any(differing.values())
        return cls(
            texts,
            ",".join(protocols) if is_twice else protocols[0],
            browsers and tuple(dict.fromkeys(browsers)),
            sites,
        )

    @property
    def all_sites(self) -> str | None:
        """The sites of both as an option names them; None if they are those of the campaign."""
        return self.sites and ",".join(dict.fromkeys([*self.sites[0], *self.sites[1]]))

    def sides(self, campaign: Campaign) -> tuple[Side, Side]:
        """A and B in the `campaign` that has both."""
        protocols, browsers, names = tuple(campaign.protocols), campaign.browsers, tuple(campaign.sites)
        sites = self.sites or (names, names)
        return (
            Side(self.texts[0], protocols[0], browsers[0], sites[0]),
            Side(self.texts[1], protocols[-1], browsers[-1], sites[1]),
        )


def _names(text: str | None) -> tuple[str, ...]:
    return tuple((text or "all").replace(",", " ").split())


def _protocol(name: str, text: str | None) -> str:
    """The one protocol of the setting called `name`. Raises EyelevelError."""
    if not text:
        raise Misuse(f"{name} has no protocol; give PROTO in A and B, or once for both (PROTO=quic)")
    chosen = choose_protocols(text, tuned.load())
    if len(chosen) != 1:
        raise Misuse(f"{name} has the protocols {', '.join(one.name for one in chosen)}; a setting has one")
    return chosen[0].name


def _browser(name: str, setting: Mapping[str, str | None]) -> str:
    """The one browser of a `setting`, with its device. Raises EyelevelError."""
    chosen = chosen_browsers(setting["BROWSER"], setting["DEVICE"], CampaignDocument())
    if len(chosen) != 1:
        raise Misuse(f"{name} has the browsers {', '.join(chosen)}; a setting has one")
    return chosen[0]


def require_variants(a: Collection[str], b: Collection[str]) -> None:
    """Raise Misuse unless the sites of A and of B are pairs of variants of one site each."""
    originals = [sorted(map(original_of, sites)) for sites in (a, b)]
    if originals[0] != originals[1] or len(set(originals[0])) < len(originals[0]) or set(a) & set(b):
        raise Misuse(
            f"A has the sites {', '.join(a)}, B has {', '.join(b)}: blocks pair a site with one variant of it "
            "(demo-news, demo-news@no-fonts); for other pages, measure two campaigns, and compare "
            "them with 'make compare'"
        )


def require_same_settings(campaign: Campaign, original: CampaignDocument) -> None:
    """Raise EyelevelError unless the `original` campaign has the protocols, browsers and sites of `campaign`, and no
    others: what is added later is in blocks of its own."""
    settings = original.settings
    for what, planned, begun in (
        ("protocols", [*campaign.protocols], [*settings.protocols]),
        ("browsers", [*campaign.browsers], [*settings.browsers]),
        ("sites", sorted(campaign.sites), sorted(settings.sites)),
    ):
        if planned != begun:
            raise EyelevelError(
                f"the campaign {campaign.folder.name} has the {what} {', '.join(begun)}, and A and B have "
                f"{', '.join(planned)}; give them as before, or use another CAMPAIGN (--campaign)"
            )
