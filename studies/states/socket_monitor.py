"""`python -m studies.states.socket_monitor FOLDER`: a replay's monitor, which asks the kernel many times a second for
the state of every TCP connection of the servers.

Writes two files into FOLDER, from which `studies.states.socket_series` makes qlogs:
    sockets.bin    the accounts (`servers.kernel_sockets`), one whenever a connection's account has changed
    sockets.json   how often the kernel was asked, and the gaps in which it was not asked: when each ended (s since
                   1970), and how long it was (ms)
"""

import json
import os
import signal
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

from base.errors import reports_errors
from servers.kernel_sockets import ACCOUNTS, RECORD, KernelSockets, identity, lasting

SAMPLING = "sockets.json"
# A fifth of the round trip of the fastest network in the paper. Asking takes 5 % of a core, with few connections or
# with thirty, since the kernel searches its whole table.
INTERVAL_S = 0.005
GAP_S = 4 * INTERVAL_S


@reports_errors
def main(folder: Path) -> None:
    """Ask until SIGTERM. Raises EyelevelError."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    # Asking takes some hundred microseconds each time and must not wait for the browser, so it has real-time priority.
    # If that is not permitted, the gaps show the waits.
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    latest: dict[bytes, bytes] = {}
    questions, gaps = 0, []
    with closing(KernelSockets()) as kernel, (folder / ACCOUNTS).open("wb") as accounts:
        print("ready", flush=True)
        before = due = time.monotonic()
        while signal.sigtimedwait({signal.SIGTERM}, max(0.0, due - time.monotonic())) is None:
            now, at_s = time.monotonic(), time.time()
            for message in kernel.ask():
                connection, account = identity(message), lasting(message)
                if latest.get(connection) != account:
                    latest[connection] = account
                    accounts.write(RECORD.pack(at_s, len(message)) + message)
            questions += 1
            if now - before > GAP_S:
                gaps.append((round(at_s, 3), round((now - before) * 1e3, 3)))
            before = now
            # Samples that were missed on a busy machine are not made up for.
            due = max(due + INTERVAL_S, now)
    sampling = {"interval_ms": INTERVAL_S * 1e3, "asked": questions, "gaps": gaps}
    (folder / SAMPLING).write_text(json.dumps(sampling) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
