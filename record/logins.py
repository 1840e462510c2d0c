"""Logins in a recording. A browser that is asked for a login shows a dialog and waits, so a replay must not ask."""

import re
from collections.abc import Iterable

from record.site import Exchange

# The statuses with which a server or a proxy asks for a login, and their header fields (RFC 9110, sections 15.5.2 and
# 15.5.8).
FIELDS = {401: "www-authenticate", 407: "proxy-authenticate"}
# The schemes to which browsers respond with a dialog. Other schemes (Bearer) are left to the page's script, which gets
# the status.
SCHEMES = re.compile(r"(?:^|,)\s*(?:basic|digest|negotiate|ntlm)\b", re.IGNORECASE)


def without_logins(exchanges: Iterable[Exchange]) -> tuple[list[Exchange], list[str]]:
    """The exchanges without requests for a login if the answer after the login was recorded; and a line for each
    login."""
    exchanges = list(exchanges)
    answers = {(e.method, e.url): e for e in exchanges if not _asks_for_login(e)}
    kept, lines = [], []
    for exchange in exchanges:
        if not _asks_for_login(exchange):
            kept.append(exchange)
            continue
        name, status = f"{exchange.method} {exchange.url}", exchange.response.status
        answer = answers.get((exchange.method, exchange.url))
        if answer and _is_in_order(exchange.started_ms, answer.started_ms):
            lines.append(f"{name}: a login (status {status}), since the answer after it was recorded")
        else:
            kept.append(exchange)
            lines.append(f"{name}: the answer after its login (status {status}), which was not recorded")
    return kept, list(dict.fromkeys(lines))


def _is_in_order(one_ms: float | None, other_ms: float | None) -> bool:
    """Whether the first came first, as far as is known: some formats have no times."""
    return one_ms is None or other_ms is None or one_ms <= other_ms


def _asks_for_login(exchange: Exchange) -> bool:
    field = FIELDS.get(exchange.response.status)
    return field is not None and any(
        name.lower() == field and SCHEMES.search(value) for name, value in exchange.response.headers
    )
