"""Removes from a response what must not be published: the values of cookies."""

from record.http1 import Headers

FILLER = "x"


def without_cookie_values(headers: Headers) -> Headers:
    """`headers` with every cookie's value replaced by a stand-in of the same length; all else unchanged.

    A stand-in is not changed again, so a site that is exported and imported stays the same.
    """
    return tuple((name, _stand_in(value) if name.lower() == "set-cookie" else value) for name, value in headers)


def _stand_in(set_cookie: str) -> str:
    """A Set-Cookie field without its secret: what lies between the first `=` and the first `;` (RFC 6265, 5.2).

    A cookie without `=` is all value, as browsers take it.
    """
    pair, semicolon, attributes = set_cookie.partition(";")
    name, equals, value = pair.partition("=") if "=" in pair else ("", "", pair)
    secret = value.strip(" \t")
    space = len(value) - len(value.lstrip(" \t"))
    hidden = value[:space] + FILLER * len(secret) + value[space + len(secret) :]
    return f"{name}{equals}{hidden}{semicolon}{attributes}"
