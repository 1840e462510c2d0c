"""The content for the servers of a replay: a folder that stands in for the site's own.

It has the responses that the site's index lists, and nothing else: links to the recorded files or, where the page is
made repeatable, changed documents. A site may come from anybody, so what each file says of itself is read here before a
server reads it.
"""

from pathlib import Path

from base.errors import EyelevelError
from record.content import Budget
from record.http1 import MalformedMessage, Response, format_response, require_sendable_fields, response_of
from record.layout import INDEX, ORIGINAL_METHOD, ORIGINAL_URL, require_single_originals, without_originals
from record.limits import BODY_BYTES, HEAD_BYTES
from record.messages import read_head, read_message
from record.site import IndexedExchange, Site
from replay.repeatable import script_evidence, script_of, with_script

FILE_BYTES = BODY_BYTES + HEAD_BYTES


def make_content(site: Site, folder: Path, *, repeatable: bool) -> dict[str, object] | None:
    """Fill `folder`, which is empty; in it, documents begin with the script of `replay.repeatable` if `repeatable`.

    Returns what was done to documents, as evidence; None if nothing. Raises EyelevelError for a file that is not the
    response which the index lists.
    """
    script = script_of(site) if repeatable else None
    documents, budget = 0, Budget(site.folder)
    for host in set(site.host_folders.values()):
        (folder / host).mkdir()
    # Servers follow a link to a file that is named by a path without further links.
    recorded = site.folder.resolve()
    for exchange in site.exchanges:
        file = recorded / exchange.file
        document = _document(file, exchange)
        changed = _changed(document, script, budget) if script and document else None
        if changed is None:
            (folder / exchange.file).symlink_to(recorded / exchange.file)
        else:
            (folder / exchange.file).write_bytes(format_response(changed))
            documents += 1
    return script_evidence(script, documents) if script else None


def _document(file: Path, exchange: IndexedExchange) -> Response | None:
    """The response in `file` if it is an HTML document, with the fields that say which request it answers.

    Raises EyelevelError when the file is not the response of `exchange`.
    """
    try:
        response = response_of(read_head(file, FILE_BYTES), b"")
        require_single_originals(response.headers)
        document = response_of(*read_message(file, FILE_BYTES)) if response.is_html else None
    except (OSError, MalformedMessage) as error:
        raise EyelevelError(f"{file} is no recorded response: {error}; import the site again") from None
    answered = (response.header(ORIGINAL_METHOD.lower()), response.header(ORIGINAL_URL.lower()), response.status)
    # Servers find responses by what the files say, addresses and certificates are made by what the index says.
    if answered != (exchange.method, exchange.url, exchange.status):
        raise EyelevelError(
            f"{file} is not the response with status {exchange.status} to {exchange.method} {exchange.url}, "
            f"as {INDEX} has it; import the site again"
        )
    return document


def _changed(response: Response, script: bytes, budget: Budget) -> Response | None:
    """`response` as a document with the script; None when it is none, or its policies become too long to be sent."""
    changed = with_script(response, script, budget)
    if changed is None:
        return None
    headers = tuple(header for header in changed.headers if header[0].lower() != "content-length")
    headers = (*headers, ("Content-Length", str(len(changed.body))))
    try:
        require_sendable_fields(without_originals(headers))
    except MalformedMessage:
        return None
    return changed._replace(headers=headers)
