"""The content for the servers of a replay: a folder in place of the site's own.

It has only the responses that the site's index lists: links to the recorded files, or, if the page is made repeatable
or has a page script, changed documents and scripts of workers. A site may come from anybody, so each file's own fields
are checked here before a server reads the file.
"""

from pathlib import Path

from base.errors import EyelevelError
from record.content import Budget
from record.http1 import MalformedMessage, Response, format_response, require_sendable_fields, response_of
from record.layout import INDEX, ORIGINAL_METHOD, ORIGINAL_URL, require_single_originals, without_originals
from record.limits import BODY_BYTES, HEAD_BYTES
from record.messages import read_head, read_message
from record.page_script import placeholders, runnable
from record.site import IndexedExchange, Site
from replay.repeatable import is_worker, script_evidence, script_of, with_scripts, worker_with_script, workers_named

FILE_BYTES = BODY_BYTES + HEAD_BYTES


def make_content(site: Site, folder: Path, *, repeatable: bool) -> dict[str, dict[str, object]]:
    """Fill the empty `folder`. If `repeatable`, documents and workers begin with the script of `replay.repeatable`; if
    the site has a page script, documents begin with that.

    Returns evidence of the changes: name of the script → its counts and digest. Raises EyelevelError for a file that is
    not the response listed in the index.
    """
    scripts: dict[str, bytes] = {"repeatable": script_of(site)} if repeatable else {}
    if site.page_script is not None:
        scripts["page_script"] = runnable(site.page_script, placeholders(site.page_script)).encode()
    documents, urls, workers, budget = 0, dict[Path, str](), set[str](), Budget(site.folder)
    for host in set(site.host_folders.values()):
        (folder / host).mkdir()
    # Servers follow a link only if its target is a path without further links.
    recorded = site.folder.resolve()
    for exchange in site.exchanges:
        response = _text(recorded / exchange.file, exchange)
        if repeatable and response:
            workers |= workers_named(response, budget)
        if repeatable and response and response.is_script:
            urls[Path(exchange.file)] = exchange.url
        changed = _sendable(with_scripts(response, tuple(scripts.values()), budget)) if scripts and response else None
        if changed is None:
            (folder / exchange.file).symlink_to(recorded / exchange.file)
        else:
            (folder / exchange.file).write_bytes(format_response(changed))
            documents += 1
    of_workers = 0
    for file in (file for file, url in urls.items() if is_worker(url, workers)):
        response = response_of(*read_message(recorded / file, FILE_BYTES))
        if changed := _sendable(worker_with_script(response, scripts["repeatable"], budget)):
            (folder / file).unlink()
            (folder / file).write_bytes(format_response(changed))
            of_workers += 1
    counts = {"repeatable": (documents, of_workers), "page_script": (documents, 0)}
    return {name: script_evidence(script, *counts[name]) for name, script in scripts.items()}


def _text(file: Path, exchange: IndexedExchange) -> Response | None:
    """The response in `file` if it is an HTML document or a script, with the fields that name the request it answers.

    Raises EyelevelError when the file is not the response of `exchange`.
    """
    try:
        response = response_of(read_head(file, FILE_BYTES), b"")
        require_single_originals(response.headers)
        is_text = response.is_html or response.is_script
        text = response_of(*read_message(file, FILE_BYTES)) if is_text else None
    except (OSError, MalformedMessage) as error:
        raise EyelevelError(f"{file} is not a recorded response: {error}; import the site again") from None
    answered = (response.header(ORIGINAL_METHOD.lower()), response.header(ORIGINAL_URL.lower()), response.status)
    # Servers find responses by the fields in files; addresses and certificates are made from the index. Both must
    # agree.
    if answered != (exchange.method, exchange.url, exchange.status):
        raise EyelevelError(
            f"{file} is not the response with status {exchange.status} to {exchange.method} {exchange.url}, "
            f"as {INDEX} has it; import the site again"
        )
    return text


def _sendable(changed: Response | None) -> Response | None:
    """`changed` with its Content-Length; None if it is None, or if its policies became too long to be sent."""
    if changed is None:
        return None
    headers = tuple(header for header in changed.headers if header[0].lower() != "content-length")
    headers = (*headers, ("Content-Length", str(len(changed.body))))
    try:
        require_sendable_fields(without_originals(headers))
    except MalformedMessage:
        return None
    return changed._replace(headers=headers)
