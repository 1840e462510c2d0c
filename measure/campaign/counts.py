"""How often each run of a campaign has been tried, and when that is enough: the rule by which a run is given up."""

from collections import Counter
from collections.abc import Iterable, Mapping

from measure.gates import PARDONS, attempts_against, is_pardoned
from measure.table import Row, Run


class AttemptCounts:
    """Counts the attempts at runs. An attempt counts against its run as its gate says (`measure.gates.Gate`)."""

    def __init__(self, rows: Iterable[Row] = (), earlier: Mapping[Run, tuple[int, int]] | None = None) -> None:
        """`rows` are the attempts so far. `earlier`: of runs whose rows are elsewhere, their attempts and failures."""
        earlier = earlier or {}
        self._attempts = Counter({run: attempts for run, (attempts, _) in earlier.items()})
        self._weights = Counter({run: failures for run, (_, failures) in earlier.items()})
        self._pardoned: Counter[Run] = Counter()
        self._valid: dict[Run, str] = {}
        for row in rows:
            self.add(row)

    def add(self, row: Row) -> None:
        """Count the attempt in `row`."""
        self._attempts[row.of] += 1
        self._weights[row.of] += attempts_against(row.reason)
        self._pardoned[row.of] += not row.valid and is_pardoned(row.reason)
        if row.valid:
            self._valid[row.of] = row.folder

    def attempts(self, run: Run) -> int:
        """How often `run` has been tried."""
        return self._attempts[run]

    def failures(self, run: Run) -> int:
        """How many attempts count against `run`."""
        return self._weights[run] - min(self._pardoned[run], PARDONS)

    def is_valid(self, run: Run) -> bool:
        """Whether `run` has been measured."""
        return run in self._valid

    def is_given_up(self, run: Run, repeats: int) -> bool:
        """Whether `run` has not been measured in the first attempt, and not in so many repeats either."""
        return not self.is_valid(run) and self.failures(run) > repeats

    def is_open(self, run: Run, repeats: int) -> bool:
        """Whether `run` is still to be measured."""
        return not self.is_valid(run) and self.failures(run) <= repeats
