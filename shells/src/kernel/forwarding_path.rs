//! One direction of a pair: packets from one device, through an element, to the other.

use std::os::fd::AsFd;

use super::stamps::Stamps;
use super::tun::Tun;
use crate::element::Element;
use crate::error::Result;
use crate::time::{NANOS_PER_MILLISECOND, Nanos, now};

/// Packets taken from one device before the other, and what is due, have their turn.
///
/// A packet may be 64 KB long and take 10 µs or more to copy.
const READ_BATCH: usize = 16;

/// When something else wakes this process within so short a time, it need not be woken for a packet that can leave
/// only later than that anyway.
const PATIENCE: Nanos = 2 * NANOS_PER_MILLISECOND;

/// What packets pass on their way from one device to another.
pub struct ForwardingPath {
    element: Box<dyn Element>,
    /// When packets came in, where the kernel tells; else they count from when they are read.
    stamps: Option<Stamps>,
    /// Packets that had come in when [`ForwardingPath::next_due`] was asked last.
    came_in: u64,
    /// Whether packets came in faster than one device's turn takes them.
    is_crowded: bool,
    /// The latest instant that the element was given; it must be given none before.
    latest: Nanos,
    refused: u64,
}

impl ForwardingPath {
    /// For packets that come in at the device `from`.
    pub fn new(element: Box<dyn Element>, from: &Tun) -> Self {
        // Ordinary users may not load programs into the kernel.
        let stamps = Stamps::attach(from.as_fd()).ok();
        Self { element, stamps, came_in: 0, is_crowded: false, latest: 0, refused: 0 }
    }

    /// When something is to be done although no packet comes in.
    pub fn next_due(&mut self) -> Option<Nanos> {
        self.came_in = self.stamps.as_ref().map_or(0, Stamps::count);
        self.element.next_due()
    }

    /// Whether a packet that comes in may wait to be read until `wake`: only where the kernel tells when it did, and
    /// not when they are many, since nothing but this process that takes the processor from it holds a sender back.
    pub fn can_wait(&self, now: Nanos, wake: Option<Nanos>) -> bool {
        let is_soon = wake.is_some_and(|wake| wake <= now + PATIENCE);
        let is_noted = self.stamps.is_some() && !self.is_crowded;
        is_soon && is_noted && self.element.earliest_exit(now) >= now + 2 * PATIENCE
    }

    /// Note that after [`ForwardingPath::next_due`] was asked no packet was there to be read.
    pub fn nothing_waits(&self) {
        if let Some(stamps) = &self.stamps {
            stamps.skip_to(self.came_in);
        }
    }

    /// Give the element what waits on the device, or as much of it as is one device's turn.
    pub fn take_in(&mut self, from: &Tun, buffer: &mut [u8]) -> Result<()> {
        self.is_crowded = false;
        for _ in 0..READ_BATCH {
            let Some(packet) = from.read(buffer)? else {
                return Ok(());
            };
            let came_in = self.stamps.as_ref().and_then(Stamps::next);
            // A path between two networks, as each shell is, begins and ends with routers.
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

    /// Send on what the element has due; how late the first of it was.
    pub fn give_out(&mut self, to: &Tun) -> Nanos {
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

    /// Packets that the kernel did not take.
    pub fn refused(&self) -> u64 {
        self.refused
    }
}
