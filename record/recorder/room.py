"""How much a recording may still hold, and bodies that are collected as long as there is room.

Standard library only: the proxy's addon loads it.
"""

from record.limits import BODY_BYTES


class Room:
    """Bytes that several share; each takes what it holds."""

    def __init__(self, size: int) -> None:
        self.size = size

    def take(self, size: int) -> bool:
        """Take `size` bytes; false when there are not so many."""
        fits = size <= self.size
        self.size -= size if fits else 0
        return fits

    def give_back(self, size: int) -> None:
        """Let others have `size` bytes again."""
        self.size += size


class Body:
    """Collects a body on its way to the browser; `refusal` says why it is not kept, if it is not."""

    def __init__(self, room: Room, full: str) -> None:
        """Take what it needs of `room`; when there is too little of that, `full` is the reason."""
        self.bytes = bytearray()
        self.refusal: str | None = None
        self._room = room
        self._full = full

    def __call__(self, part: bytes) -> bytes:
        """Keep `part`; returns it, to be sent on."""
        if self.refusal is None:
            if len(self.bytes) + len(part) > BODY_BYTES:
                self.drop(f"its body is longer than {BODY_BYTES >> 20} MiB")
            elif not self._room.take(len(part)):
                self.drop(self._full)
            else:
                self.bytes += part
        return part

    def drop(self, why: str) -> None:
        """Keep nothing of it, and let others have its room."""
        self.refusal = why
        self._room.give_back(len(self.bytes))
        self.bytes = bytearray()
