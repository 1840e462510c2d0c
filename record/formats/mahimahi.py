"""Recordings of Mahimahi's `mm-webrecord`: a folder of protobuf files `save.*`, one exchange each.

The format has no times and no order. Responses are as they were on the wire, with chunk framing.
"""

import re
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.message import DecodeError

from base.files import replacing_folder
from base.text import excerpt
from record.assemble import assemble
from record.content import Budget
from record.http1 import TOKEN, Headers, MalformedMessage, Response, first_value, parse_status_line
from record.intake import Intake, bounded, with_true_length
from record.limits import HEAD_BYTES
from record.provenance import SPOKEN
from record.site import Exchange, Recording, Site

NAME = "mahimahi"
DESCRIPTION = "a folder of Mahimahi's save.* files"
ENDINGS = ()

# The schema of a file, as in Mahimahi's `src/http/http_record.proto`.
DESCRIPTOR = Path(__file__).with_name("http_record.textproto")

HTTPS = 2
SCHEMES = {1: "http", HTTPS: "https"}
DEFAULT_PORTS = {"http": 80, "https": 443}

# A line end within a value that is followed by another field.
NEXT_FIELD = re.compile(rf"\r?\n(?={TOKEN.pattern}:)")


def recognises(path: Path) -> bool:
    """Whether `path` is a recording in this format."""
    return path.is_dir() and any(path.glob("save.*"))


def read(path: Path, *, keep_cookies: bool = False) -> Recording:
    """The exchanges of the folder `path`. Broken files are left out and named in `skipped`.

    Raises EyelevelError when no file can be used, or none of them is a page.
    """
    intake = Intake(path.name, keep_cookies=keep_cookies)
    for file in sorted(path.glob("save.*")):
        intake.take(file.name, partial(_read_exchange, file, intake.budget))
    # Its recorder is a proxy that speaks HTTP/1.1 to servers.
    return assemble(intake, {"tool": "mahimahi", SPOKEN: "HTTP/1.1"})


def write(site: Site, path: Path) -> None:
    """Write `site` as a folder of save.* files, numbered in recorded order.

    A request consists of its first line, Host and `request_headers`; sites store no more of it.
    """
    with replacing_folder(path, "save.*") as folder:
        for order, indexed in enumerate(site.exchanges):
            exchange = site.recorded(indexed)
            (folder / f"save.{order:06d}").write_bytes(_record_of(exchange, site).SerializeToString())


def _record_of(exchange: Exchange, site: Site) -> Any:
    url = urlsplit(exchange.url)
    target = exchange.url.partition(f"://{url.netloc}")[2].partition("#")[0]
    record = _RequestResponse(ip=exchange.recorded_ip, port=url.port or DEFAULT_PORTS[url.scheme], scheme=HTTPS)
    record.request.first_line = f"{exchange.method} {target or '/'} HTTP/1.1".encode("latin-1")
    request_headers = (("Host", url.netloc), *site.request_headers(exchange.url))
    response = exchange.response
    record.response.first_line = f"HTTP/1.1 {response.status} {response.reason}".encode("latin-1")
    record.response.body = response.body
    for message, headers in ((record.request, request_headers), (record.response, response.headers)):
        for key, value in headers:
            message.header.add(key=key.encode("latin-1"), value=value.encode("latin-1"))
    return record


def _read_exchange(file: Path, budget: Budget) -> Exchange:
    content = bounded(file)
    record = _RequestResponse()
    try:
        outline = _Outline.FromString(content)
        if len(content) - len(outline.response.body) > HEAD_BYTES:
            raise MalformedMessage(f"it has more than {HEAD_BYTES >> 20} MiB besides the body")
        record.ParseFromString(content)
    except MalformedMessage:
        raise
    except (DecodeError, ValueError) as error:  # ValueError: text that is not UTF-8
        raise MalformedMessage(f"it is broken: {error}") from None
    request = record.request.first_line.decode("latin-1").split(" ")
    if len(request) < 2 or record.scheme not in SCHEMES:
        raise MalformedMessage("no request line or scheme")
    if not isinstance(record.ip, str):  # bytes if it is not UTF-8
        raise MalformedMessage("its server's address is invalid")
    method, target = request[0], request[1]
    status, reason = parse_status_line(record.response.first_line)
    request_headers = _headers(record.request)
    response = Response(status, reason, _headers(record.response), record.response.body)
    return Exchange(
        method=method,
        url=_url(SCHEMES[record.scheme], target, first_value(request_headers, "host"), record.port),
        response=with_true_length(method, response, budget),
        recorded_ip=record.ip,
        request_headers=request_headers,
    )


def _url(scheme: str, target: str, host: str | None, port: int) -> str:
    """The request's full URL; a proxy's request line already contains it (RFC 9112 section 3.2.2)."""
    if target.startswith(("http://", "https://")):
        return target
    if not host:
        raise MalformedMessage("no Host header")
    name, _, named_port = host.lower().partition(":")
    if not re.fullmatch("[0-9]{0,5}", named_port):
        raise MalformedMessage(f"{excerpt(host)} is not a host and port")
    port = int(named_port or port)
    suffix = "" if port in (0, DEFAULT_PORTS[scheme]) else f":{port}"
    return f"{scheme}://{name}{suffix}{target}"


def _headers(message: Any) -> Headers:
    """The header fields. Mahimahi leaves bare line feeds in values; each ends a field."""
    fields = []
    for header in message.header:
        first, *others = NEXT_FIELD.split(header.value.decode("latin-1"))
        fields.append((header.key.decode("latin-1"), first.strip()))
        fields += [(name, value.strip()) for name, _, value in (line.partition(":") for line in others)]
    return tuple(fields)


def _message_class(*, with_headers: bool = True) -> Any:
    """The class of `RequestResponse`, made from its description without a protobuf compiler."""
    description = text_format.Parse(DESCRIPTOR.read_text(), descriptor_pb2.FileDescriptorProto())
    if not with_headers:
        for message in description.message_type:
            fields = [field for field in message.field if field.name != "header"]
            del message.field[:]
            message.field.extend(fields)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(description)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("MahimahiProtobufs.RequestResponse"))


_RequestResponse = _message_class()
# The message without header fields, for a first look: a small file can contain so many header fields that they fill the
# memory.
_Outline = _message_class(with_headers=False)
