//! Both directions of an impairment.

use super::{Chain, Element};

/// The elements for packets from inside to outside, and for those from outside to inside.
pub struct Duplex {
    pub uplink: Box<dyn Element>,
    pub downlink: Box<dyn Element>,
}

impl Duplex {
    /// Several impairments as one, given in the order in which shells would be nested: outermost first.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn stack(outermost_first: Vec<Self>) -> Self {
        let (mut uplink, downlink): (Vec<_>, Vec<_>) =
            outermost_first.into_iter().map(|one| (one.uplink, one.downlink)).unzip();
        uplink.reverse();
        Self { uplink: Box::new(Chain::new(uplink)), downlink: Box::new(Chain::new(downlink)) }
    }
}
