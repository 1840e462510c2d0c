"""The description of one recording, which goes to the process inside the namespaces."""

from dataclasses import dataclass
from pathlib import Path

from record.recorder.addresses import AddressPolicy


@dataclass(frozen=True)
class RecordSpec:
    """One recording: the page, the site's folder, and options.

    `origin_ca`: the certificate authority that must have signed the servers' certificates, instead of the public ones.
    `also`: URLs that the page is made to request after the visit. `address_policy`: which addresses it may
    connect to.
    """

    url: str
    folder: Path
    mobile: bool = False
    keep_cookies: bool = False
    origin_ca: Path | None = None
    also: tuple[str, ...] = ()
    address_policy: AddressPolicy = AddressPolicy.PUBLIC
