"""The settings that the recorder gives to the proxy, through its environment.

Standard library only: both load it.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from record.recorder.addresses import AddressPolicy

VARIABLE = "EYELEVEL_PROXY"


@dataclass(frozen=True)
class ProxySettings:
    """The folder for exchanges, the descriptor for events, the one over which the proxy gets the socket to listen on,
    which addresses it may connect to, and whether it keeps the values of cookies."""

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
        """The settings of this process."""
        values = json.loads(os.environ[VARIABLE])
        policy = AddressPolicy(values["address_policy"])
        return cls(**values | {"exchanges": Path(values["exchanges"]), "address_policy": policy})
