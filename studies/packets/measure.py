"""How a load is captured at both ends, and when it counts: its pings must match the network, and no packet may be
missing."""

import os
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from base.errors import EyelevelError
from base.files import read_json
from dataset.reasons import Reason
from dataset.run_files import REPLAY_LOG
from measure.campaign.method import Method, claim
from measure.captures.recording import add_keys
from measure.run.evidence import Evidence, last_line
from measure.run.gates import REPLAY, reason_against
from measure.run.load import Observers
from measure.run.setting import Setting
from studies.campaign import study_campaign
from studies.packets.delays import delays_in_ms, with_added_rtt
from studies.packets.files import CLIENT, KEYS, PING, SERVERS, STUDY
from studies.packets.ping import ECHOES, MOST_SD_MS, TOLERANCE, TOLERANCE_MS, PingTimes, fault
from studies.study import Measurement, Request

ENDS = (sys.executable, "-m", "studies.packets.ends")
PING_GATE, CAPTURE_GATE = "ping", "capture"

# The types of blocks in a pcapng file.
PACKET_BLOCK, SECRETS_BLOCK = 6, 10


@dataclass(frozen=True)
class PacketsMethod(Method):
    """Loads a page after a ping, and captures the load at both ends in the run's folder."""

    captures: bool = True

    def settings(self) -> Mapping[str, Any]:
        """See `Method`."""
        return {"ping": {"echoes": ECHOES, "tolerance_ms": TOLERANCE_MS, "tolerance": TOLERANCE, "sd_ms": MOST_SD_MS}}

    def observers(self, setting: Setting, folder: Path) -> Observers:
        """See `Method`."""
        address, rtt_ms = next(iter(setting.site.addresses.values()))[0], setting.network.path_rtt_ms
        return Observers(
            monitor=(*ENDS, "servers", str(folder)), around=(*ENDS, "client", str(folder), address, str(rtt_ms))
        )

    def reason_against(self, setting: Setting, folder: Path, evidence: Evidence) -> Reason | None:
        """See `Method`. If the run counts, this puts the keys into its captures."""
        return (
            reason_against(evidence, claim(setting), [REPLAY])
            or _reason_of_ping(setting, folder)
            or super().reason_against(setting, folder, evidence)
            or _reason_of_captures(folder)
        )


def read_ping(folder: Path) -> PingTimes:
    """The pings before the load in `folder`."""
    return PingTimes(**read_json(folder / PING))


def _reason_of_ping(setting: Setting, folder: Path) -> Reason | None:
    if not (folder / PING).exists():
        return Reason(PING_GATE, last_line(folder / REPLAY_LOG))
    text = fault(read_ping(folder), setting.network)
    return Reason(PING_GATE, text) if text else None


def _reason_of_captures(folder: Path) -> Reason | None:
    for name in (CLIENT, SERVERS, KEYS):
        if not (folder / name).exists():
            return Reason(CAPTURE_GATE, f"there is no {name}; {last_line(folder / REPLAY_LOG)}")
    try:
        for capture in (folder / CLIENT, folder / SERVERS):
            # A run that was judged before a power cut is judged again, so its captures may have the keys already.
            if not has_keys(capture):
                add_keys(capture, folder / KEYS)
    except EyelevelError as error:
        return Reason(CAPTURE_GATE, str(error))
    return None


def has_keys(capture: Path) -> bool:
    """Whether a capture contains keys: a block of secrets before the first packet (draft-ietf-opsawg-pcapng 4)."""
    with capture.open("rb") as file:
        while len(head := file.read(8)) == 8:
            kind, length = struct.unpack("<II", head)
            if kind == SECRETS_BLOCK:
                return True
            if kind == PACKET_BLOCK or length < 12:
                return False
            file.seek(length - 8, os.SEEK_CUR)
    return False


def campaign(request: Request) -> Measurement:
    """The measurement for `request`."""
    delays_ms = delays_in_ms(request.options["delays"])
    chosen = study_campaign(
        request, STUDY, PacketsMethod(), change=lambda network: with_added_rtt(network, delays_ms).values()
    )
    message = f"captured: {chosen.folder}; the keys are in the files, so Wireshark shows them decrypted"
    return Measurement(chosen, summary=lambda: [message])
