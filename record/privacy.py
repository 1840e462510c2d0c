"""Credentials, which must not be published: those in header fields are removed; those in URLs stay.

Bodies are not searched.
"""

import re
from collections import Counter
from collections.abc import Iterable
from urllib.parse import parse_qsl, urlsplit

from record.http1 import Headers

FILLER = "x"

# Query parameters with one of these words in their name often have secret values. Words are separated by `-`, `_`, `.`,
# `[` and changes of case.
SECRET_WORDS = frozenset(
    {
        *("apikey", "auth", "authorization", "bearer", "code", "credential", "csrf", "jwt", "nonce", "otp", "passwd"),
        *("password", "pwd", "secret", "session", "sessionid", "sid", "sig", "signature", "ticket", "token", "xsrf"),
    }
)
SECRET_NAMES = frozenset({"access_key", "api_key", "key", "pass", "private_key"})
WORD = re.compile("[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
# Fields of responses with one of these words in their name may carry a credential or a session's token, and no page
# needs them to be displayed; they are removed. (Set-Cookie stays, since pages look for the cookies' names.)
FIELD_WORDS = SECRET_WORDS - {"code", "nonce"} | {"cookie", "cookie2"}
CREDENTIALS = frozenset({"authentication-info", "proxy-authentication-info", "x-api-key"})
JWT = re.compile(r"ey[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*")
# A shorter value is a number or a word.
SECRET_LETTERS = 8


def secret_parameters(urls: Iterable[str]) -> Counter[str]:
    """Name of a query parameter whose values look like secrets → how many different values it has in `urls`."""
    pairs = (pair for url in urls for pair in _parameters(url) if _looks_secret(*pair))
    return Counter(name for name, _ in dict.fromkeys(pairs))


def _parameters(url: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(urlsplit(url).query, max_num_fields=1000)
    except ValueError:
        return []


def _looks_secret(name: str, value: str) -> bool:
    if len(value) < SECRET_LETTERS:
        return False
    words = {word.lower() for word in WORD.findall(name)}
    return name.lower() in SECRET_NAMES or bool(words & SECRET_WORDS) or JWT.fullmatch(value) is not None


def without_credentials(headers: Headers) -> Headers:
    """The `headers` of a response without fields that carry credentials, and with stand-ins for the values of
    cookies."""
    return tuple(field for field in without_cookie_values(headers) if not _is_credential(field[0].lower()))


def _is_credential(name: str) -> bool:
    """Whether the field `name` (lower case) carries a credential."""
    return name in CREDENTIALS or (name != "set-cookie" and not FIELD_WORDS.isdisjoint(WORD.findall(name)))


def without_cookie_values(headers: Headers) -> Headers:
    """`headers` with every cookie's value replaced by a stand-in of the same length; all else is unchanged.

    A stand-in is not changed again, so a site that is exported and imported stays the same.
    """
    return tuple((name, _stand_in(value) if name.lower() == "set-cookie" else value) for name, value in headers)


def _stand_in(set_cookie: str) -> str:
    """A Set-Cookie field without its secret: the text between the first `=` and the first `;` (RFC 6265, 5.2).

    A cookie without `=` consists only of a value, as in browsers.
    """
    pair, semicolon, attributes = set_cookie.partition(";")
    name, equals, value = pair.partition("=") if "=" in pair else ("", "", pair)
    secret = value.strip(" \t")
    space = len(value) - len(value.lstrip(" \t"))
    hidden = value[:space] + FILLER * len(secret) + value[space + len(secret) :]
    return f"{name}{equals}{hidden}{semicolon}{attributes}"
