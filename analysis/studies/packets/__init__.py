"""Packets: captures of `measure.studies.packets`, taken apart.

capture (tshark's packets)  →  bytes, layers (what each byte is for)  →  connections, sequence  →  runs  →  report
"""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analysis.report.section import Section


def section(folder: Path) -> "Section | None":
    """What the captures in the folder of a campaign tell; None when it has none. Raises EyelevelError."""
    # The figures that it draws are of these modules' values.
    from analysis.studies.packets import report

    return report.section(folder)
