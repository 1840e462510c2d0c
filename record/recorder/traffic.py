"""The traffic through the proxy while a page loads, derived from the proxy's events."""

import json
import threading
import time
from typing import IO

from base.errors import EyelevelError


class Traffic:
    """Follows the proxy's events in a thread of its own, so that the proxy never has to wait for us."""

    def __init__(self, events: IO[bytes]) -> None:
        self._changed = threading.Condition()
        self._port: int | None = None
        self.proxy = ""
        self._in_flight: dict[int, str] = {}
        self._failures: list[tuple[str, str]] = []
        self._last_change_s = time.monotonic()
        self._ended = False
        threading.Thread(target=self._follow, args=(events,), daemon=True).start()

    def port(self, limit_s: float) -> int:
        """The port on which the proxy listens, once it does. Raises EyelevelError."""
        with self._changed:
            self._changed.wait_for(lambda: self._port is not None or self._ended, limit_s)
        if self._port is None:
            raise EyelevelError("mitmdump did not start")
        return self._port

    def await_quiet(self, quiet_s: float, limit_s: float) -> None:
        """Return when no request has been under way for `quiet_s`, or after `limit_s`."""
        give_up_s = time.monotonic() + limit_s
        with self._changed:
            while not self._ended and (now_s := time.monotonic()) < give_up_s:
                # While a request is under way, only an event can end it.
                quiet_at_s = give_up_s if self._in_flight else self._last_change_s + quiet_s
                if now_s >= quiet_at_s:
                    return
                self._changed.wait(min(quiet_at_s, give_up_s) - now_s)

    def failures(self) -> tuple[tuple[str, str], ...]:
        """Each request that was not stored, including unfinished ones, and why."""
        with self._changed:
            unfinished = ((what, "had not ended when the recording did") for what in self._in_flight.values())
            return (*self._failures, *unfinished)

    def _follow(self, events: IO[bytes]) -> None:
        with events:
            for line in events:
                event = json.loads(line)
                with self._changed:
                    self._note(event)
                    self._last_change_s = time.monotonic()
                    self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _note(self, event: dict[str, object]) -> None:
        match event:
            case {"listening": int(port), "proxy": str(proxy)}:
                self._port, self.proxy = port, proxy
            case {"requested": int(number), "what": str(what)}:
                self._in_flight[number] = what
            case {"stored": int(number)}:
                del self._in_flight[number]
            case {"failed": int(number), "why": str(why)}:
                self._failures.append((self._in_flight.pop(number), why))
