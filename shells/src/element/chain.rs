//! Several elements, one after the other.

use super::{Departure, Element, Outbox};
use crate::packet::Packet;
use crate::time::Nanos;

/// Passes packets through its elements in order.
///
/// A packet enters the next element at the instant at which it left the one before, not at the instant of the call.
/// So a late wake-up does not change what the elements do.
pub struct Chain {
    elements: Vec<Box<dyn Element>>,
    outbox: Outbox,
}

impl Chain {
    /// # Panics
    /// When there is no element.
    #[must_use]
    pub fn new(elements: Vec<Box<dyn Element>>) -> Self {
        assert!(!elements.is_empty(), "a chain needs an element");
        Self { elements, outbox: Outbox::default() }
    }

    /// The element that acts next, and when. If several act at the same instant, this is the one nearest to the end,
    /// because a departure comes before an arrival at the same instant.
    fn next(&self) -> Option<(usize, Nanos)> {
        let mut next: Option<(usize, Nanos)> = None;
        for (index, element) in self.elements.iter().enumerate() {
            if let Some(due) = element.next_due() {
                if next.is_none_or(|(_, earliest)| due <= earliest) {
                    next = Some((index, due));
                }
            }
        }
        next
    }

    /// The earliest instant at which a packet could leave the chain. Until then the process need not wake up: the chain
    /// catches up later with the events inside it.
    fn earliest_departure(&self) -> Option<Nanos> {
        let elements = self.elements.iter().enumerate();
        elements.filter_map(|(index, element)| Some(self.exit_through(index + 1, element.next_due()?))).min()
    }

    /// When a packet that arrives at the element with this index leaves the chain at the earliest.
    fn exit_through(&self, index: usize, arrival: Nanos) -> Nanos {
        self.elements[index..].iter().fold(arrival, |at, element| element.earliest_exit(at))
    }

    /// Bring all elements up to `now`.
    fn advance(&mut self, now: Nanos) {
        while let Some((index, due)) = self.next().filter(|(_, due)| *due <= now) {
            let Some(departure) = self.elements[index].pop(due) else {
                continue;
            };
            match self.elements.get_mut(index + 1) {
                Some(following) => following.push(departure.packet, departure.at),
                None => self.outbox.push(departure.packet, departure.at),
            }
        }
    }
}

impl Element for Chain {
    fn push(&mut self, packet: Packet, now: Nanos) {
        self.advance(now);
        self.elements[0].push(packet, now);
    }

    fn pop(&mut self, now: Nanos) -> Option<Departure> {
        self.advance(now);
        self.outbox.pop(now)
    }

    fn next_due(&self) -> Option<Nanos> {
        self.outbox.next_due().or_else(|| self.earliest_departure())
    }

    fn earliest_exit(&self, arrival: Nanos) -> Nanos {
        self.exit_through(0, arrival)
    }

    fn end(&self) -> Option<Nanos> {
        self.elements.iter().filter_map(|element| element.end()).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{ConstantRate, Delay};
    use crate::queue::{Infinite, Queue};

    fn delay_then_link() -> Chain {
        let queue: Box<dyn Queue> = Box::new(Infinite::default());
        Chain::new(vec![
            Box::new(Delay::new(1000)),
            Box::new(ConstantRate::new(8_000_000_000, 0, queue)),
            Box::new(Delay::new(5)),
        ])
    }

    #[test]
    fn delays_add_up() {
        let mut chain = delay_then_link();
        chain.push(Packet::new(&[0; 100]), 7);
        assert_eq!(chain.pop(1111), None);
        assert_eq!(chain.pop(1112).map(|departure| departure.at), Some(1112));
    }

    #[test]
    fn a_late_call_changes_no_instant() {
        let mut chain = delay_then_link();
        for at in [0, 10, 500] {
            chain.push(Packet::new(&[0; 100]), at);
        }
        let late: Vec<_> =
            std::iter::from_fn(|| chain.pop(1_000_000)).map(|departure| departure.at).collect();
        assert_eq!(late, [1105, 1205, 1605]);
    }
}
