"""Logins that a recording has: a browser that is asked for one again shows a dialog, and waits for its answer."""

import re
from collections.abc import Iterable

from record.site import Exchange

# The statuses by which a server and a proxy ask for a login, and their fields (RFC 9110, sections 15.5.2 and 15.5.8).
FIELDS = {401: "www-authenticate", 407: "proxy-authenticate"}
# The schemes in which browsers answer by themselves. Others (Bearer) are the page's, whose script gets the status.
SCHEMES = re.compile(r"(?:^|,)\s*(?:basic|digest|negotiate|ntlm)\b", re.IGNORECASE)


def without_logins(exchanges: Iterable[Exchange]) -> tuple[list[Exchange], list[str]]:
    """The exchanges without those that ask for a login where the answer after it was recorded, and a line for each
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
    """Whether the first came first, as far as it is known: some formats have no times."""
    return one_ms is None or other_ms is None or one_ms <= other_ms


def _asks_for_login(exchange: Exchange) -> bool:
    field = FIELDS.get(exchange.response.status)
    return field is not None and any(
        name.lower() == field and SCHEMES.search(value) for name, value in exchange.response.headers
    )
