"""What is recorded, and how."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class RecordSpec:
    """One recording: the page, the site's folder, and options.

    `origin_ca`: the authority that must have signed the servers' certificates, instead of the public ones.
    `also`: URLs that the page is made to request after the visit.
    """

    url: str
    folder: Path
    mobile: bool = False
    keep_cookies: bool = False
    origin_ca: Path | None = None
    also: tuple[str, ...] = ()

    def dumps(self) -> str:
        """As JSON, for the process inside the namespaces."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def loads(cls, text: str) -> "RecordSpec":
        """The inverse of `dumps`."""
        values = json.loads(text)
        values["folder"] = Path(values["folder"])
        values["origin_ca"] = values["origin_ca"] and Path(values["origin_ca"])
        values["also"] = tuple(values["also"])
        return cls(**values)
