"""The set `web`: 40 generated pages that together are like today's web, so that everybody can measure the same ones.

`marginals.toml` has the published numbers, `pages.csv` what is drawn from them for each page, `manifest.json` the
checksums of the pages and their numbers as generated. README.md says how to work on them. This module loads fast; the
others load what they need.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from base.errors import EyelevelError

if TYPE_CHECKING:
    from record.generated import GeneratedSite
    from record.site import Recording

SET = "web"
"""The name that stands for all pages."""


def page_names() -> list[str]:
    """The names of the set's pages."""
    from record.web.spec import specs

    return list(specs())


def page(name: str) -> GeneratedSite | None:
    """The page of the set with this name; None if it has none."""
    from record.generated import GeneratedSite
    from record.web.manifest import manifest

    if name not in page_names():
        return None
    recorder = {"name": "eyelevel web", "sha256": manifest()[name]["sha256"]}
    return GeneratedSite(recorder, lambda: _generate(name, recorder))


def _generate(name: str, recorder: dict[str, str]) -> Recording:
    """Generate a page. Raises EyelevelError if it is not the one that everybody has."""
    from record.web.build import digest, recording
    from record.web.spec import specs

    print(f"generating {name}", file=sys.stderr)
    recorded = recording(specs()[name])
    if digest(recorded) != recorder["sha256"]:
        raise EyelevelError(
            f"{name}: this machine generates other bytes than those of record/web/manifest.json; run 'make setup', so "
            "that the libraries have the locked versions"
        )
    return replace(recorded, recorder=recorder)
