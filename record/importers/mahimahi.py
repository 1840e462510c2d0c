"""Recordings of Mahimahi's `mm-webrecord`: a folder of protobuf files `save.*`, one exchange each.

The format is `src/http/http_record.proto` of Mahimahi. It stores no times and no order; responses are
as they came off the wire, with chunk framing inside.
"""

from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from record.assemble import assemble
from record.http1 import MalformedMessage, Response, first_value, is_chunked, parse_status_line, unchunk
from record.site import Exchange, Recording, kept_request_headers

SCHEMES = {1: "http", 2: "https"}
DEFAULT_PORTS = {"http": 80, "https": 443}


def recognises(path: Path) -> bool:
    """Whether `path` is a recording of this kind."""
    return path.is_dir() and any(path.glob("save.*"))


def read(path: Path) -> Recording:
    """The exchanges of the folder `path`. Broken files are left out and named in `skipped`.

    Raises EyelevelError when no file can be used, or none of them is a page.
    """
    exchanges, skipped = [], []
    for file in sorted(path.glob("save.*")):
        try:
            exchanges.append(_read_exchange(file))
        except (DecodeError, MalformedMessage) as error:
            skipped.append(f"{file.name}: {error}")
    return assemble(path.name, exchanges, skipped, {"tool": "mahimahi"})


def _read_exchange(file: Path) -> Exchange:
    record = _RequestResponse()
    record.ParseFromString(file.read_bytes())
    request = record.request.first_line.decode("latin-1").split(" ")
    if len(request) < 2 or record.scheme not in SCHEMES:
        raise MalformedMessage("no request line or scheme")
    method, target = request[0], request[1]
    status, reason = parse_status_line(record.response.first_line)
    if status == 101:
        raise MalformedMessage("switched protocols (101), which no HTTP server can replay")
    request_headers = _headers(record.request)
    headers = _headers(record.response)
    body = record.response.body
    if "chunked" in (first_value(headers, "transfer-encoding") or "").lower() and is_chunked(body):
        body = unchunk(body)
        headers = tuple(h for h in headers if h[0].lower() != "transfer-encoding")
    return Exchange(
        method=method,
        url=_url(SCHEMES[record.scheme], target, first_value(request_headers, "host"), record.port),
        response=Response(status, reason, headers, body),
        recorded_ip=record.ip,
        request_headers=kept_request_headers(request_headers),
    )


def _url(scheme: str, target: str, host: str | None, port: int) -> str:
    """The request's full URL; a proxy's request line has it already (RFC 9112 section 3.2.2)."""
    if target.startswith(("http://", "https://")):
        return target
    if not host:
        raise MalformedMessage("no Host header")
    name, _, named_port = host.lower().partition(":")
    port = int(named_port) if named_port.isdigit() else port
    suffix = "" if port in (0, DEFAULT_PORTS[scheme]) else f":{port}"
    return f"{scheme}://{name}{suffix}{target}"


def _headers(message: Any) -> tuple[tuple[str, str], ...]:
    return tuple((h.key.decode("latin-1"), h.value.decode("latin-1").strip()) for h in message.header)


def _message_class() -> Any:
    """The class of `RequestResponse`, from its description; no protobuf compiler is needed."""
    kind = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="http_record.proto", package="MahimahiProtobufs")

    def message(name: str, *fields: tuple[str, int, int, str | None]) -> None:
        described = file.message_type.add(name=name)
        for number, (field, field_type, label, type_name) in enumerate(fields, start=1):
            described.field.add(name=field, number=number, type=field_type, label=label, type_name=type_name)

    one, many = kind.LABEL_OPTIONAL, kind.LABEL_REPEATED
    http_message = ".MahimahiProtobufs.HTTPMessage"
    message("HTTPHeader", ("key", kind.TYPE_BYTES, one, None), ("value", kind.TYPE_BYTES, one, None))
    message(
        "HTTPMessage",
        ("first_line", kind.TYPE_BYTES, one, None),
        ("header", kind.TYPE_MESSAGE, many, ".MahimahiProtobufs.HTTPHeader"),
        ("body", kind.TYPE_BYTES, one, None),
    )
    message(
        "RequestResponse",
        ("ip", kind.TYPE_STRING, one, None),
        ("port", kind.TYPE_UINT32, one, None),
        ("scheme", kind.TYPE_UINT32, one, None),
        ("request", kind.TYPE_MESSAGE, one, http_message),
        ("response", kind.TYPE_MESSAGE, one, http_message),
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("MahimahiProtobufs.RequestResponse"))


_RequestResponse = _message_class()
