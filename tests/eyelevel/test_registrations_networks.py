"""One file adds a key of networks: a toy is added to a copy of the testbed, validated, and followed to the report."""

import sys
from pathlib import Path

import pytest
from support.checkout import LIMIT_S, Checkout

ELEMENT = """//! An uplink that blinks.

use clap::Args;

use super::{Departure, Duplex, Element, Impairment, NetworkContext, Outbox};
use crate::error::Result;
use crate::packet::Packet;
use crate::time::Nanos;

struct Blink {
    off: u64,
    pushed: u64,
    outbox: Outbox,
}

impl Element for Blink {
    fn push(&mut self, packet: Packet, now: Nanos) {
        if self.pushed % 1000 >= self.off {
            self.outbox.push(packet, now);
        }
        self.pushed += 1;
    }

    fn pop(&mut self, now: Nanos) -> Option<Departure> {
        self.outbox.pop(now)
    }

    fn next_due(&self) -> Option<Nanos> {
        self.outbox.next_due()
    }
}

/// The blinks of `mm-net`.
#[derive(Args, Debug)]
pub struct NetBlink {
    /// The uplink loses this many packets at the beginning of each thousand
    #[arg(long, value_name = "PACKETS")]
    blink: Option<u64>,
}

impl Impairment for NetBlink {
    fn build(&self, _: &mut NetworkContext<'_>) -> Result<Option<Duplex>> {
        let link = |off| -> Box<dyn Element> { Box::new(Blink { off, pushed: 0, outbox: Outbox::default() }) };
        Ok(self.blink.map(|off| Duplex { uplink: link(off), downlink: link(0) }))
    }
}
"""
IMPAIRMENT = '''
"""Uplinks that blink."""

from dataclasses import dataclass

from tuning.impairments.contract import Impairment, Judgement, Path


@dataclass(frozen=True, kw_only=True)
class Blinking(Path):
    blink_packets: int | None = None


def check(network):
    if network.blink_packets is not None and not 0 < network.blink_packets < 1000:
        raise ValueError("blink_packets must be more than 0 and less than 1000")


def arguments(network):
    if network.blink_packets:
        yield from ("--blink", str(network.blink_packets))


def judge(network, measured):
    if network.blink_packets:
        lost = 100 * measured.up.lost / measured.up.sent
        yield Judgement("packets lost to blinks", network.blink_packets / 10, lost, 1, "%")


def hides(network):
    return dict.fromkeys(("uplink loss", "uplink mean rate"), "it blinks") if network.blink_packets else {}


def words(settings):
    if settings.get("blink_packets"):
        yield f"blinks for {settings['blink_packets']:g} packets"


IMPAIRMENT = Impairment(
    "blinking",
    Blinking,
    place=10,
    units={"blink_packets": "blink"},
    check=check,
    arguments=arguments,
    words=words,
    mahimahi={"blink_packets": "blinks"},
    judge=judge,
    hides=hides,
)
'''
NETWORKS = """
[toy]
like = "dsl"
blink_packets = [200, 300]
"""
SIMULATED = """
import sys
from dataclasses import asdict
from pathlib import Path
from eyelevel.simulate import Truth, write
from replay.shells.registry import shells_named
from studies.grid.cells import network_label
from tuning.networks import load
network = load()["toy-200blink"]
print(network_label(asdict(network)))
print(shells_named("mahimahi").refusal(network))
write(Path(sys.argv[1]), Truth(1, ("toy-200blink",), ("tcp",), runs=1))
"""


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.needs_namespaces
@pytest.mark.needs_rust
@pytest.mark.slow
def test_an_impairment_is_followed_to_the_report(tmp_path: Path) -> None:
    testbed = Checkout(tmp_path)
    (testbed.folder / "shells" / "src" / "element" / "blink.rs").write_text(ELEMENT)
    elements = testbed.folder / "shells" / "src" / "element" / "mod.rs"
    listed = "    Registration::of::<NetOnOff>(),\n"
    lines = elements.read_text().replace("mod chain;\n", "mod blink;\nmod chain;\n", 1)
    elements.write_text(lines.replace(listed, f"{listed}    Registration::of::<blink::NetBlink>(),\n"))
    testbed.build_emulator()
    (testbed.folder / "tuning" / "impairments" / "blinking.py").write_text(IMPAIRMENT)
    testbed.tune("networks", NETWORKS.replace("300", "3000"))
    assert "blink_packets must be more than 0" in testbed.eyelevel("networks").stderr
    testbed.tune("networks", NETWORKS)
    assert "blinks for 300 packets" in testbed.eyelevel("networks", "--net", "toy-300blink").stdout
    judged = testbed.eyelevel("validate", "--net", "toy-200blink").stdout
    (check,) = (line for line in judged.splitlines() if "packets lost to blinks" in line)
    assert check.split()[-1] == "ok", judged
    # Losses make these two checks impossible; others may fail on a busy machine.
    assert judged.count("not checked: it blinks") == 2
    simulation = testbed.run(sys.executable, "-c", SIMULATED, testbed.results)
    label, refusal = simulation.stdout.splitlines()
    assert label == "25 Mbit/s, 24 ms, blinks for 200 packets"
    assert "Mahimahi's shells have no blinks (blink_packets)" in refusal
    assert "blink_packets" in (testbed.results / "campaign.json").read_text()
    testbed.report(testbed.results)
    assert "blinks for 200 packets" in (testbed.results / "report" / "everything.html").read_text()
