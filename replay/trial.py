"""A short replay, which shows whether this machine can serve a site over a protocol."""

from record.site import Site
from replay.sandbox import run
from replay.spec import ReplaySpec
from tuning.networks import Network
from tuning.protocols import Protocol

# The network on which a site is tried.
TRIAL = Network("trial", min_rtt_ms=0, up_mbps=10, down_mbps=10, queue_ms=100)


def require_replayed(site: Site, protocol: Protocol, *, recorded_alpn: bool = False) -> None:
    """Raise EyelevelError when `site` cannot be served over `protocol` here."""
    run(ReplaySpec(site.folder, TRIAL, protocol, recorded_alpn=recorded_alpn), ["true"])
