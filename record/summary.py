"""A short description of a stored site, for a person."""

from record.site import Site


def summary(site: Site) -> str:
    """What `site` holds, and what was left out, in a few lines."""
    total = sum(exchange.bytes for exchange in site.exchanges)
    counts = f"{len(site.exchanges)} exchanges of {len(site.addresses)} hosts on {len(site.servers)} servers"
    lines = [f"{site.name}: {counts}, {total / 1e6:.2f} MB, starts at {site.url}"]
    return "\n".join([*lines, *(f"  left out: {reason[:160]}" for reason in site.skipped)])
