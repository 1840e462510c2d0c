"""The steps of an answer, and the time that the remaining steps take."""

from dataclasses import dataclass, field

from rich.console import Console

from base.terminal import print_line
from base.words import clock_in, in_words

STEPS = ("record", "close", "validate", "measure", "report")
# Durations on two cores (s): a page's recording, and the report.
RECORD_S, REPORT_S = 45.0, 40.0


@dataclass
class Progress:
    """Prints the current step and the expected end of the whole answer.

    `left_s` is the time that each remaining step will take, if known. `is_limited`: the answer may end earlier than
    expected but not later.
    """

    console: Console
    is_limited: bool
    left_s: dict[str, float] = field(default_factory=dict)

    def begins(self, step: str, text: str) -> None:
        """Announce that `step` begins; the steps before it are over."""
        for before in STEPS[: STEPS.index(step)]:
            self.left_s.pop(before, None)
        total_s = sum(self.left_s.values())
        duration = f"; about {in_words(step_s)}" if (step_s := self.left_s.get(step)) else ""
        about = "at most" if self.is_limited else "about"
        self._say(step, f"{text}{duration}; {about} {in_words(total_s)} left, done {clock_in(total_s)}")

    def skips(self, step: str, text: str) -> None:
        """Announce that `step` is skipped: `text` says how it was done before."""
        self._say(step, text)

    def _say(self, step: str, text: str) -> None:
        print_line(self.console, f"[{STEPS.index(step) + 1}/{len(STEPS)}] {step}: {text}")
