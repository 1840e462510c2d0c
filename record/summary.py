"""A short description of a stored site, for people."""

from base.text import printable
from base.words import plural
from record.intake import CHANGED
from record.privacy import secret_parameters
from record.round_trips import rtts_of
from record.site import Site

# At most this many query parameters are named.
NAMES = 5
# The letters shown of a long line's beginning, which is a URL, and of its end, which has the reason.
BEGINNING, END = 100, 200


def summary(site: Site) -> str:
    """The content of `site`, and what was left out, in a few lines."""
    total = sum(exchange.bytes for exchange in site.exchanges)
    counts = (
        f"{plural('exchange', len(site.exchanges))} of {plural('host', len(site.addresses))} on "
        f"{plural('server', len(site.servers))}"
    )
    lines = [f"{site.name}: {counts}, {total / 1e6:.2f} MB, starts at {site.url}"]
    if rtts := rtts_of(site).values():
        shortest, longest = min(rtt.rtt_ms for rtt in rtts), max(rtt.rtt_ms for rtt in rtts)
        lines.append(
            f"  round-trip times of {plural('server', len(rtts))} are known: {shortest:.3g} to {longest:.3g} ms"
        )
    lines += [f"  {'' if line.startswith(CHANGED) else 'left out: '}{_shortened(line)}" for line in site.skipped]
    if secrets := secret_parameters(exchange.url for exchange in site.exchanges):
        names = ", ".join(printable(name[:40]) for name, _ in secrets.most_common(NAMES))
        more = f" and {len(secrets) - NAMES} more names" if len(secrets) > NAMES else ""
        lines.append(
            f"  URLs have {plural('value', secrets.total())} that look like secrets ({names}{more}) and stay in the "
            "site, as do all bodies: share only pages that were recorded without a login"
        )
    return "\n".join(lines)


def _shortened(line: str) -> str:
    return line if len(line) <= BEGINNING + END else f"{line[:BEGINNING]}…{line[-END:]}"
