//! Downbeat's own rule: wait while the spare devices can make up for it.

use downbeat_profile::Span;

use super::{HeadroomDrop, Policy, Pressure, SmallestId};
use crate::{Candidate, Release, Time};

/// The least share of the devices that is reckoned to be spare. Below it, a head start is longer than any deadline.
const SPARE_MIN: f64 = 0.02;

/// Over how many times what waits the spare devices are given time: 1 would start everything before anything is late, and
/// keep devices busy with small batches at half load already.
const RELIANCE: f64 = 2.5;

/// How strongly a model that loses requests is drawn forward: one that loses an eighth goes before all that come in while
/// a device is waited for. Much more, and models overtake each other for a single lost request.
const LOSS_PULL: u64 = 8;

/// Deferral whose guard follows the load, with [`HeadroomDrop`] and a learned margin. It has no settings.
///
/// A window opens earlier by a part of the time that the spare devices need for what other models have waiting:
///
/// ```text
///   head start = (backlog - own) / (2.5 * (gpus - need - deviation of need))
/// ```
///
/// Waiting makes batches larger and costs nothing as long as a device can be found when the window opens. It will be
/// found if the devices that the traffic does not keep busy can absorb what waits. A model alone never guards against
/// itself: its batches leave one after the other, each waits for its own window. Where the traffic needs all devices,
/// the rule is eager dispatch. See `docs/adaptive.md` for how it was found and what it gives.
#[derive(Clone, Copy, Debug, Default)]
pub struct Adaptive;

impl Policy for Adaptive {
    type Drop = HeadroomDrop;
    type Order = SmallestId;
    const EARLY: Release = Release::Guard;
    const LEARNS_MARGIN: bool = true;

    fn head_start(&self, pressure: &Pressure, latency: Span) -> Span {
        let others = pressure.backlog - latency;
        let spare = pressure.spare_gpus().max(SPARE_MIN * f64::from(pressure.gpus.max(1)));
        Span::from_nanos((others.as_nanos() as f64 / (RELIANCE * spare)) as u64)
    }

    /// A model that loses requests goes before others, the more it loses the further: where there is too much for all, all
    /// lose alike. By deadlines alone, those with the least time or the smallest batches would lose most.
    fn urgency(&self, pressure: &Pressure, candidate: &Candidate) -> Time {
        let wait_ns = pressure.backlog.as_nanos() / u64::from(pressure.gpus.max(1));
        let loss = LOSS_PULL * u64::from(candidate.loss_permille);
        candidate.latest - Span::from_nanos(wait_ns / 1_000 * loss)
    }
}
