"""The campaign of doses: every protocol with every share of the processor, in the same blocks.

A share is a variant of a network (`lte+cpu70`), as the conditions of a ladder are. The share is that of the browser and
the servers (`measure.instruments.dose`).
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from base.errors import EyelevelError, Misuse
from measure.campaign.method import Method
from measure.host.device_index import limits
from measure.run.load import Observers
from measure.run.setting import Loading, Setting
from studies.campaign import study_campaign
from studies.dose import PROTOCOLS
from studies.dose.shares import SHARES, SUFFIXES, base_network, share_of
from studies.study import Measurement, Request
from tuning.devices import device_of
from tuning.networks import Network

STUDY = "dose"


@dataclass(frozen=True)
class DoseMethod(Method):
    """Loads pages like a campaign, with the share of the processor that the network's name says."""

    def settings(self) -> Mapping[str, Any]:
        """See `Method`."""
        return {"processor_shares": list(SHARES)}

    def observers(self, setting: Setting, folder: Path) -> Observers:
        """See `Method`."""
        return Observers(processor_share=share_of(setting.network.name))


def campaign(request: Request, limits: Callable[[], AbstractContextManager[object]] = limits) -> Measurement:
    """The measurement for `request`. Raises EyelevelError, also where processes cannot be limited (`limits`)."""
    if device_of(request.browser_name):
        raise Misuse("a dose sets the share of the processor itself, and a device would, too; leave out --device")
    names = request.names("proto", "protocols", PROTOCOLS)
    over = names if isinstance(names, str) else ",".join(names)
    planned = study_campaign(replace(request, proto=over), STUDY, DoseMethod(), change=with_shares)
    assert planned.selection
    if len(planned.selection.protocols) < 2:
        raise Misuse("a dose compares protocols; name two with --proto")
    with limits():
        pass
    plain = tuple(name for name in planned.selection.networks if base_network(name) == name)
    further = [suffix for suffix in SUFFIXES.values() if suffix]
    companions = {
        name: tuple(product([name + suffix for suffix in further], planned.selection.protocols)) for name in plain
    }
    planned = replace(
        planned,
        loading=Loading(browser=request.browser_name),
        films=request.films,
        selection=replace(planned.selection, networks=plain),
        companions=companions,
    )
    return Measurement(planned, summary=lambda: [f"measured: {planned.folder}"])


def with_shares(network: Network) -> list[Network]:
    """`network` with each share of the processor. Raises EyelevelError."""
    if base_network(network.name) != network.name:
        raise EyelevelError(f"{network.name} has the name of a share of the processor; name the network itself")
    return [replace(network, name=network.name + suffix) for suffix in SUFFIXES.values()]
