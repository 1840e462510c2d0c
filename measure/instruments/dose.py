"""The dose of the processor: the browser's and the servers' processes get a share of it while the page loads
(`measure.host.pace`), as a method says."""

import os
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from base.files import read_json, write_json
from browsers.contract import PARTS
from browsers.registry import browser_named
from dataset.columns import Column
from dataset.run_files import DOSE
from measure.instruments.contract import FinishedRun, Instrument, ObservedLoad, Readings
from measure.instruments.processor import SERVERS, role_of
from servers.registry import programs_of

SHARE = "processor_share"


class Dose(Instrument):
    """Gives the browser's and the servers' processes the load's share of the processor, and leaves DOSE. Does nothing
    if the load has no share."""

    name = "dose"
    columns = (
        Column(
            SHARE,
            "",
            "in a [dose](../studies/dose/README.md): the share of a processor that each process of the browser and the "
            "servers had",
            is_share=True,
        ),
    )

    def around_load(self, load: ObservedLoad) -> AbstractContextManager[None]:
        """Limit the processes; raises EyelevelError when that is not possible."""
        if load.processor_share is None:
            return nullcontext()
        from measure.host.pace import PARTS_BEFORE, limited_to_share

        load.await_ready()  # its processes start until then
        browser, programs = browser_named(load.browser), programs_of([load.protocol])
        layout = load.layout
        cores = {*layout.browser, *layout.servers} if layout else os.sched_getaffinity(0)

        def part_of(process: int) -> str | None:
            role = role_of(process, browser, programs)
            return role if role in (*PARTS, SERVERS) else None

        return limited_to_share(
            load.root,
            part_of,
            {*PARTS_BEFORE, SERVERS},
            load.processor_share,
            cores,
            partial(write_json, load.folder / DOSE),
        )

    def read(self, run: FinishedRun) -> Readings:
        """The share."""
        return {SHARE: read_json(file)["share"]} if (file := run.folder / DOSE).exists() else {}


INSTRUMENT = Dose()
