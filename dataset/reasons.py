"""Why an attempt does not count: the gate that rejected it, and the gate's explanation."""

from dataclasses import dataclass

from base.text import printable

SEPARATOR = ": "
# If a larger share of attempts is rejected, the status reports a problem.
MANY_REJECTED = 0.1


@dataclass(frozen=True)
class Reason:
    """A gate's name and its text. As a string it is the cell of `runs.csv`: `load_failed: the browser crashed`.

    Pages may influence the text, so characters that cannot be written, or that would control a terminal, are escaped.
    """

    gate: str
    text: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "gate", printable(self.gate))
        object.__setattr__(self, "text", printable(" ".join(self.text.split())))

    def __str__(self) -> str:
        return f"{self.gate}{SEPARATOR}{self.text}" if self.text else self.gate

    @classmethod
    def parse(cls, cell: str) -> "Reason | None":
        """The reason in a cell of `runs.csv`; None if the cell is empty."""
        gate, _, text = cell.partition(SEPARATOR.strip())
        return cls(gate.strip(), text.strip()) if cell else None


def gate_name(cell: str) -> str:
    """The gate of the reason in a cell of `runs.csv`; empty if the cell is empty."""
    reason = Reason.parse(cell)
    return reason.gate if reason else ""
