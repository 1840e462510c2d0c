"""Heads of messages as other programs write them, converted to the form that we store (RFC 9112).

A bare line feed ends a line (section 2.2), a line that begins with white space continues the line before it (section
5.2), and white space before a colon does not belong to the field's name (section 5.1).
"""

import re

from record.http1 import MalformedMessage, Response, response_of

HEAD_END = re.compile(rb"\r?\n\r?\n")
LINE_END = re.compile(rb"\r?\n")
FOLD = re.compile(rb"\r?\n[ \t]+")


def normal_head(head: bytes) -> bytes:
    """The lines of `head` with CRLF between them, each as `name: value`, except for the first, which is no field."""
    first, *lines = LINE_END.split(FOLD.sub(b" ", head))
    fields = (line.partition(b":") for line in lines)
    return b"\r\n".join([first, *(name.rstrip(b" \t") + colon + value for name, colon, value in fields)])


def read_response(message: bytes) -> Response:
    """The response in a whole `message`. Raises MalformedMessage."""
    end = HEAD_END.search(message)
    if not end:
        raise MalformedMessage("no blank line after the headers")
    return response_of(normal_head(message[: end.start()]), message[end.end() :])
