"""The steps of an answer, and how long the rest of them takes."""

from dataclasses import dataclass, field

from rich.console import Console

from base.terminal import print_line
from base.words import clock_in, in_words

STEPS = ("record", "close", "validate", "measure", "report")
# Durations on two cores (s): a page's recording, and the report.
RECORD_S, REPORT_S = 45.0, 40.0


@dataclass
class Progress:
    """Tells which step is done, and when all will be: `left_s` is what each step will take, as far as that is known.
    `is_limited`: whether it may end sooner and not later."""

    console: Console
    is_limited: bool
    left_s: dict[str, float] = field(default_factory=dict)

    def begins(self, step: str, text: str) -> None:
        """`step` is about to be done; those before it are over."""
        for before in STEPS[: STEPS.index(step)]:
            self.left_s.pop(before, None)
        total_s = sum(self.left_s.values())
        duration = f"; about {in_words(step_s)}" if (step_s := self.left_s.get(step)) else ""
        about = "at most" if self.is_limited else "about"
        self._say(step, f"{text}{duration}; all is done in {about} {in_words(total_s)}, {clock_in(total_s)}")

    def skips(self, step: str, text: str) -> None:
        """`step` was done before, as `text` says."""
        self._say(step, text)

    def _say(self, step: str, text: str) -> None:
        print_line(self.console, f"[{STEPS.index(step) + 1}/{len(STEPS)}] {step}: {text}")
