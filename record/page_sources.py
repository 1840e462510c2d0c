"""The sources of pages that are generated when they are first needed; studies add theirs (`studies`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from record.generated import GeneratedSite

# Prefix of the names of a source's pages, such as `grid-`; it also names their folder in the cache. → A function that
# returns the page with a given name; None if the source has no such page.
SOURCES: dict[str, Callable[[str], GeneratedSite | None]] = {}
