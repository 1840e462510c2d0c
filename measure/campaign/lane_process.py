"""`python -m measure.campaign.lane_process SOCKET`: be a lane (`measure.campaign.lane`). SOCKET is the file descriptor
of an open socket to the process that started the lane."""

import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path

from base.errors import EyelevelError
from base.portable import portable
from dataset.table import Row, Run
from measure.campaign.block import Block, Notice, measure_block
from measure.campaign.lane import Ending, LaneSetting
from measure.campaign.preparer import Preparer
from measure.campaign.slot import Slot
from measure.campaign.store import FolderStore
from measure.host.idle_priority import IdlePriority, idle_priority_of_blocks
from measure.host.sharing import ALONE, SharedProcessors


class LaneStore(FolderStore):
    """A lane's view of a campaign's folder: it sends each row to the starter, which stores all rows."""

    def __init__(self, folder: Path, earlier: Mapping[Run, tuple[int, int]], connection: Connection) -> None:
        super().__init__(folder, earlier=earlier)
        self._connection = connection

    def keep(self, *rows: Row) -> None:
        """Send `rows`; when this returns, they are stored."""
        for row in rows:
            self._connection.send(row)
            self._connection.recv()
        super().keep(*rows)


def serve(
    folder: Path,
    slot: Slot,
    connection: Connection,
    idle: Callable[[Callable[[str], object]], IdlePriority | None] = lambda _: None,
) -> None:
    """Measure the blocks that arrive on `connection` into the campaign's `folder`, until the connection is closed or a
    block cannot be measured. Before each block, `idle` is called with a function for warnings; it returns the priority
    at which the block's runs are prepared early, if there is one."""
    while True:
        try:
            block: Block = connection.recv()
        except EOFError:
            return
        store = LaneStore(folder, block.earlier, connection)
        try:
            with Preparer(store, idle(lambda text: connection.send(Notice(text, slot.lane)))) as preparer:
                measure_block(block, store, slot, connection.send, preparer)
        except (EyelevelError, OSError) as error:
            error.add_note(f"in lane {slot.lane}: {traceback.format_exc()}")
            connection.send(Ending(portable(error)))
            return
        connection.send(Ending())


def _stop(number: int, _: object) -> None:
    # React only once, so that a second signal does not interrupt the cleaning up. The handler does nothing, rather than
    # being SIG_IGN, because Python complains about a second signal that came just before it was ignored.
    signal.signal(number, lambda *_: None)
    raise KeyboardInterrupt


def main(descriptor: int) -> None:
    """Be a lane until the other end of the socket `descriptor` is closed, or until SIGTERM."""
    signal.signal(signal.SIGTERM, _stop)
    try:
        with Connection(descriptor) as connection:
            setting: LaneSetting = connection.recv()
            if (cores := os.sched_getaffinity(0)) != set(setting.lane.cores):
                text = f"lane {setting.lane.number} runs on the processors {sorted(cores)}, not {setting.lane.cores}"
                connection.send(Ending(EyelevelError(text)))
                return
            with idle_priority_of_blocks() as idle:
                sharing = SharedProcessors(setting.sharing) if setting.sharing else ALONE

                def idle_of_block(warn: Callable[[str], object]) -> IdlePriority | None:
                    priority = idle(warn)
                    if sharing.is_shared:
                        sharing.idle = priority
                    return priority

                slot = Slot(setting.canaries, setting.canary_s, setting.browser, setting.lane.number, sharing)
                serve(setting.folder, slot, connection, idle_of_block)
    except (KeyboardInterrupt, EOFError, BrokenPipeError, ConnectionResetError):
        sys.exit(128 + signal.SIGTERM)


if __name__ == "__main__":
    main(int(sys.argv[1]))
