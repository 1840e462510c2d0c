"""The shares of the processor that are measured, and the networks that stand for them."""

# From the whole processor down. The first one has no suffix: it is the network itself.
SHARES = (1.0, 0.7, 0.5)
SUFFIXES = {share: "" if share == 1 else f"+cpu{100 * share:.0f}" for share in SHARES}


def base_network(name: str) -> str:
    """The network on which `name` is based; the name of any other network is returned unchanged."""
    return next((name.removesuffix(suffix) for suffix in SUFFIXES.values() if suffix and name.endswith(suffix)), name)


def share_of(network: str) -> float:
    """The share of the processor on the network with this name."""
    return next(share for share, suffix in SUFFIXES.items() if base_network(network) + suffix == network)
