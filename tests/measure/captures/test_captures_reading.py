"""Facts about a connection, read from captures."""

from collections import defaultdict

from measure.captures.reading import SERVER_HELLO, CapturedConnection, CapturedPacket


def packet(*, from_server: bool, **fields: str) -> CapturedPacket:
    by_name: dict[str, list[str]] = defaultdict(list)
    by_name.update({f"tls.handshake.{name}": [value] for name, value in fields.items()})
    return CapturedPacket(0.0, from_server, 100, by_name)


def test_a_group_is_that_of_the_handshake_that_followed_a_retry() -> None:
    """A HelloRetryRequest is a ServerHello without a key share (RFC 8446 section 4.1.4)."""
    packets = [
        packet(from_server=False, type="1"),
        packet(from_server=True, type=SERVER_HELLO),
        packet(from_server=False, type="1"),
        packet(from_server=True, type=SERVER_HELLO, extensions_key_share_group="23"),
    ]
    assert CapturedConnection("h3", tuple(packets)).handshake["key exchange group"] == "P-256"
