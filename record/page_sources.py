"""The sources of pages that are generated when they are first needed; studies add theirs (`studies`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from record import web

if TYPE_CHECKING:
    from record.generated import GeneratedSite

# Prefix of the names of a source's pages, such as `grid-`; it also names their folder in the cache. → A function that
# returns the page with a given name; None if the source has no such page.
SOURCES: dict[str, Callable[[str], GeneratedSite | None]] = {"web-": web.page}
# Names that stand for several pages → a function that returns their names.
SETS: dict[str, Callable[[], list[str]]] = {web.SET: web.page_names}
