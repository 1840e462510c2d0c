"""The registrable domains of hosts, from the list of public suffixes (publicsuffix.org)."""

from contextlib import suppress
from functools import cache
from pathlib import Path

from publicsuffixlist import PSLFILE, PublicSuffixList


def registrable_domain(host: str) -> str:
    """The part of `host` that somebody registered, such as shop.co.uk of www.shop.co.uk; `host` itself if there is
    none."""
    return _suffixes_below(host.removesuffix(".").lower().rpartition(".")[2]).privatesuffix(host) or host


@cache
def _suffixes_below(top: str) -> PublicSuffixList:
    """The public suffixes in the domain `top`. (To read all would take 40 to 70 ms of each load.)"""
    tops = [top]
    with suppress(UnicodeError):
        tops.append(top.encode("ascii").decode("idna"))  # the list has names as people write them
    rules = (line.partition(" ")[0] for line in Path(PSLFILE).read_text("utf-8").splitlines())
    return PublicSuffixList([rule for rule in rules if rule.endswith(tuple(tops))])
