"""The description of one recording, which is passed to the process inside the namespaces."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from record.recorder.addresses import AddressPolicy


@dataclass(frozen=True)
class RecordSpec:
    """One recording: the page, the site's folder, and options.

    `origin_ca`: the certificate authority that must have signed the servers' certificates, in place of the public ones.
    `also`: URLs that the page is made to request after the visit. `address_policy`: the addresses to which it may
    connect. `page_script`: the steps that are made in the page (`record.page_script`); `values` is name → value to fill
    in.
    """

    url: str
    folder: Path
    mobile: bool = False
    keep_cookies: bool = False
    origin_ca: Path | None = None
    also: tuple[str, ...] = ()
    address_policy: AddressPolicy = AddressPolicy.PUBLIC
    page_script: str | None = None
    values: Mapping[str, str] = field(default_factory=dict)
