"""Where pages come from that are generated when they are first needed: studies add theirs (`studies`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from record.generated import GeneratedSite

# The beginning of the names of a source's pages, such as `grid-`, also the name of their folder in the cache → what
# returns the page of a name; None when no page of it has this name.
SOURCES: dict[str, Callable[[str], GeneratedSite | None]] = {}
