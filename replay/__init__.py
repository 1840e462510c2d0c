"""A recorded site behind an emulated network, in fresh namespaces."""

from replay.sandbox import run
from replay.spec import ReplayOutcome, ReplaySpec

__all__ = ["ReplayOutcome", "ReplaySpec", "run"]
