"""Replays a recorded site on an emulated network, in fresh namespaces."""

from replay.sandbox import Replay, run
from replay.spec import ReplayOutcome, ReplaySpec

__all__ = ["Replay", "ReplayOutcome", "ReplaySpec", "run"]
