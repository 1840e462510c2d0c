"""The settings that the recorder passes to the proxy through its environment.

Standard library only: both load this module.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from record.recorder.addresses import AddressPolicy

VARIABLE = "EYELEVEL_PROXY"


@dataclass(frozen=True)
class ProxySettings:
    """The folder for exchanges, the descriptor for events, the descriptor over which the proxy receives its listening
    socket, the policy of addresses, and whether the proxy keeps the values of cookies."""

    exchanges: Path
    events: int
    handover: int
    address_policy: AddressPolicy
    keep_cookies: bool

    def environment(self) -> dict[str, str]:
        """The variable that `of_environment` reads."""
        texts = {"exchanges": str(self.exchanges), "address_policy": self.address_policy.value}
        return {VARIABLE: json.dumps(asdict(self) | texts)}

    @classmethod
    def of_environment(cls) -> "ProxySettings":
        """The settings in this process's environment."""
        values = json.loads(os.environ[VARIABLE])
        policy = AddressPolicy(values["address_policy"])
        return cls(**values | {"exchanges": Path(values["exchanges"]), "address_policy": policy})
