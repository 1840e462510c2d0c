//! One direction of a shell: packets from one TUN device, through an element, to the other.

use std::os::fd::AsFd;

use super::stamps::Stamps;
use super::tun::Tun;
use crate::element::Element;
use crate::error::Result;
use crate::time::{NANOS_PER_MILLISECOND, Nanos, now};

/// How many packets are read from one device before the other device is read and due packets are sent.
///
/// A packet may be 64 KB long and take 10 µs or more to copy.
const READ_BATCH: usize = 16;

/// If another event wakes this process within this time, a new packet need not wake it earlier, provided that the
/// packet cannot leave before then anyway.
const PATIENCE: Nanos = 2 * NANOS_PER_MILLISECOND;

/// The way of packets from one device to another.
pub struct ForwardingPath {
    element: Box<dyn Element>,
    /// When packets arrived, if the kernel records it; otherwise the time of reading counts.
    stamps: Option<Stamps>,
    /// The number of packets that had arrived when [`ForwardingPath::next_due`] was last called.
    came_in: u64,
    /// Whether more packets were waiting than one turn reads.
    is_crowded: bool,
    /// The time of the latest call of the element; calls must not go back in time.
    latest: Nanos,
    refused: u64,
}

impl ForwardingPath {
    /// Make the path of packets that arrive at the device `from`.
    pub fn new(element: Box<dyn Element>, from: &Tun) -> Self {
        // Ordinary users may not load programs into the kernel.
        let stamps = Stamps::attach(from.as_fd()).ok();
        Self { element, stamps, came_in: 0, is_crowded: false, latest: 0, refused: 0 }
    }

    /// Whether the kernel records when packets arrive.
    pub fn has_stamps(&self) -> bool {
        self.stamps.is_some()
    }

    /// When the element acts next, if no packet arrives.
    pub fn next_due(&mut self) -> Option<Nanos> {
        self.came_in = self.stamps.as_ref().map_or(0, Stamps::count);
        self.element.next_due()
    }

    /// Whether an arriving packet may wait until `wake` before it is read. It may only if the kernel records arrival
    /// times, and if packets are few. If they are many, this process must keep waking: only by taking the processor
    /// from a fast sender does it slow the sender down.
    pub fn can_wait(&self, now: Nanos, wake: Option<Nanos>) -> bool {
        let is_soon = wake.is_some_and(|wake| wake <= now + PATIENCE);
        let is_noted = self.stamps.is_some() && !self.is_crowded;
        is_soon && is_noted && self.element.earliest_exit(now) >= now + 2 * PATIENCE
    }

    /// Note that no packet was waiting after the last call of [`ForwardingPath::next_due`].
    pub fn nothing_waits(&self) {
        if let Some(stamps) = &self.stamps {
            stamps.skip_to(self.came_in);
        }
    }

    /// Read the packets that wait on the device, at most one turn of them, and pass them to the element.
    pub fn read_from(&mut self, from: &Tun, buffer: &mut [u8]) -> Result<()> {
        self.is_crowded = false;
        for _ in 0..READ_BATCH {
            let Some(packet) = from.read(buffer)? else {
                return Ok(());
            };
            let came_in = self.stamps.as_ref().and_then(Stamps::next);
            // Like a router, a shell does not forward packets that are for neighbours on a link.
            if !packet.is_for_link_only() {
                self.latest = came_in.unwrap_or_else(now).max(self.latest);
                self.element.push(packet, self.latest);
            }
            if self.stamps.as_ref().is_some_and(|stamps| !stamps.has_next()) {
                return Ok(());
            }
        }
        self.is_crowded = true;
        Ok(())
    }

    /// Write the packets that are due to the device. Returns how late the first one was.
    pub fn write_to(&mut self, to: &Tun) -> Nanos {
        self.latest = now().max(self.latest);
        let mut lateness = None;
        while let Some(departure) = self.element.pop(self.latest) {
            lateness.get_or_insert(self.latest.saturating_sub(departure.at));
            if !to.write(&departure.packet) {
                self.refused += 1;
            }
        }
        lateness.unwrap_or(0)
    }

    /// The number of packets that the kernel refused.
    pub fn refused(&self) -> u64 {
        self.refused
    }
}
