"""Recordings in other formats. Each module in this folder is a format, and is found automatically.

A module describes its format in `NAME`, `DESCRIPTION` and `ENDINGS`, and has the functions `recognises` and `read`. It
also has `read_page` if its recordings say which page each exchange belongs to, and `write` if sites can be exported in
it. No other part of the project names a format.
"""

import importlib
import pkgutil
import re
from pathlib import Path
from typing import Protocol, runtime_checkable

from base.errors import EyelevelError
from base.text import nearest
from record.limits import NAME_LETTERS
from record.site import Recording, Site


@runtime_checkable
class Format(Protocol):
    """The interface of every module in this folder."""

    @property
    def NAME(self) -> str:
        """The format's name on the command line."""

    @property
    def DESCRIPTION(self) -> str:
        """A recording in this format in words, with an article, as in "give a folder of raw responses"."""

    @property
    def ENDINGS(self) -> tuple[str, ...]:
        """The endings of names of files in this format; empty if a recording is a folder."""

    def recognises(self, path: Path) -> bool:
        """Whether `path` is a recording in this format."""

    def read(self, path: Path, *, keep_cookies: bool = False) -> Recording:
        """The recording at `path`; broken parts are left out and named. Raises EyelevelError.

        Without `keep_cookies`, the values of cookies are replaced by stand-ins.
        """


@runtime_checkable
class WritableFormat(Format, Protocol):
    """A format in which sites can be exported."""

    def write(self, site: Site, path: Path) -> None:
        """Write `site` to `path`; an existing recording is replaced once the new one is complete."""


@runtime_checkable
class DigestedFormat(Format, Protocol):
    """A format whose recordings contain digests of their files. `read` refuses a recording that does not match them."""

    def read_changed(self, path: Path, *, keep_cookies: bool = False) -> Recording:
        """The recording at `path`, even if it does not match its digests. Raises EyelevelError."""


@runtime_checkable
class PagedFormat(Format, Protocol):
    """A format whose recordings say which page an exchange belongs to. `read` returns the exchanges of the first
    page."""

    def read_page(self, path: Path, url: str, *, keep_cookies: bool = False) -> Recording:
        """The recording of the page at `url` among those at `path`. Raises EyelevelError."""


def formats() -> list[Format]:
    """All formats, in the order in which they are tried.

    Formats that are recognised by the ending of a name come first, then folders. Each of the two is in alphabetical
    order, so a folder is tried as `mahimahi` before `responses` looks into its files.
    """
    return sorted(map(_format, pkgutil.iter_modules(__path__)), key=lambda form: (not form.ENDINGS, form.NAME))


def _format(info: pkgutil.ModuleInfo) -> Format:
    module = importlib.import_module(f"{__name__}.{info.name}")
    assert isinstance(module, Format), f"record/formats/{info.name}.py lacks something that Format asks for"
    return module


def writable_formats() -> dict[str, WritableFormat]:
    """Name → format, for the formats in which sites can be exported."""
    return {form.NAME: form for form in formats() if isinstance(form, WritableFormat)}


def descriptions() -> str:
    """All recordings that can be imported, as the end of a sentence: "an archive (.x), or a folder of files"."""
    texts = [form.DESCRIPTION + (f" ({', '.join(form.ENDINGS)})" if form.ENDINGS else "") for form in formats()]
    return ", ".join(texts[:-1]) + f", or {texts[-1]}"


def read_recording(
    source: Path, *, keep_cookies: bool = False, url: str | None = None, allow_changed: bool = False
) -> Recording:
    """Read `source` in the format that recognises it. If it has several pages, read the one at `url`, by default the
    first. `allow_changed`: it need not match its digests. Raises EyelevelError."""
    if not source.exists():
        near = nearest(source.name, (entry.name for entry in source.parent.glob("*")))
        meant = f"; did you mean {source.with_name(near)}?" if near else ""
        raise EyelevelError(f"there is no recording at {source}{meant}")
    try:
        for form in formats():
            if form.recognises(source):
                if url and isinstance(form, PagedFormat):
                    return form.read_page(source, url, keep_cookies=keep_cookies)
                if allow_changed and isinstance(form, DigestedFormat):
                    return form.read_changed(source, keep_cookies=keep_cookies)
                return form.read(source, keep_cookies=keep_cookies)
    except OSError as error:
        raise EyelevelError(f"{source} cannot be read: {error.strerror or error}") from None
    raise EyelevelError(f"{source} is not a recording that can be imported: give {descriptions()}")


def name_of(source: Path) -> str:
    """The source's name without its format's ending; characters that no site's name may have become hyphens."""
    name = source.resolve().name
    endings = sorted((ending for form in formats() for ending in form.ENDINGS), key=len, reverse=True)
    stem = next((name.removesuffix(ending) for ending in endings if name.endswith(ending)), name)
    return re.sub(r"[^\w.@-]+", "-", stem).strip("-.")[:NAME_LETTERS]
