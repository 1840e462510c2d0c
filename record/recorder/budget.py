"""The bytes that a recording may still store, and the bodies that are collected while enough bytes remain.

Standard library only: the proxy's addon loads this module.
"""

from record.limits import BODY_BYTES, BODY_TOO_LONG


class ByteBudget:
    """A number of bytes that several bodies share; each reserves what it holds."""

    def __init__(self, remaining_bytes: int) -> None:
        self.remaining_bytes = remaining_bytes

    def reserve(self, size: int) -> bool:
        """Reserve `size` bytes; returns False if fewer are left."""
        fits = size <= self.remaining_bytes
        self.remaining_bytes -= size if fits else 0
        return fits

    def release(self, size: int) -> None:
        """Give back `size` reserved bytes."""
        self.remaining_bytes += size


class Body:
    """Collects a body on its way to the browser; `refusal` is why it is not kept, or None."""

    def __init__(self, budget: ByteBudget, full: str) -> None:
        """The body reserves its bytes from `budget`; if too few remain, its `refusal` is `full`."""
        self.bytes = bytearray()
        self.refusal: str | None = None
        self._budget = budget
        self._full = full

    def __call__(self, part: bytes) -> bytes:
        """Collect `part`; returns it, for forwarding."""
        if self.refusal is None:
            if len(self.bytes) + len(part) > BODY_BYTES:
                self.drop(BODY_TOO_LONG)
            elif not self._budget.reserve(len(part)):
                self.drop(self._full)
            else:
                self.bytes += part
        return part

    def drop(self, why: str) -> None:
        """Discard the body, for the reason `why`, and release its bytes."""
        self.refusal = why
        self._budget.release(len(self.bytes))
        self.bytes = bytearray()
