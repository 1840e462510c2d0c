"""The set as it was generated: each page's checksum and numbers, `manifest.json`.

    python -m record.web.manifest

generates all pages and renews it; everybody else's pages must have these checksums.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from base.files import write_atomically

FILE = Path(__file__).with_name("manifest.json")


@cache
def manifest() -> dict[str, dict[str, Any]]:
    """Page → `sha256` and `facts` (`record.web.facts`)."""
    pages: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    return pages


def write() -> None:
    """Generate every page, and write the manifest."""
    from record.web.build import digest, recording
    from record.web.facts import facts
    from record.web.spec import specs

    lines = []
    for name, spec in specs().items():
        recorded = recording(spec)
        entry = {"sha256": digest(recorded), "facts": facts(recorded)}
        lines.append(f"{json.dumps(name)}: {json.dumps(entry, separators=(',', ':'))}")
    write_atomically(FILE, "{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    write()
