"""Durations, times, sizes and counts in readable words."""

from datetime import datetime, timedelta


def in_words(seconds: float) -> str:
    """A readable duration: `40 s`, `12 min`, `3 h 05 min`, `2 d 4 h`."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    if minutes < 90:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60:02} min"
    return f"{minutes // 1440} d {minutes % 1440 // 60} h"


def clock_in(seconds: float) -> str:
    """The time on this machine's clock after this many seconds: `at 17:05`, on another day `on Tue 24 Nov at 04:10`."""
    now = datetime.now().astimezone()
    then = now + timedelta(seconds=seconds)
    return then.strftime("at %H:%M" if then.date() == now.date() else "on %a %d %b at %H:%M")


def in_bytes(count: float) -> str:
    """A readable number of bytes: `12 MB`, `3.4 GB`."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def plural(noun: str, count: int) -> str:
    """A count with its noun: 1 site, 2 sites."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
