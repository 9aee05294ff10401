//! What the scheduler saw: all that a decision is made from.

use downbeat_sched::{Span, Time};

/// What the scheduler saw of one class of devices over one interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Signals {
    /// The end of the interval.
    pub now: Time,
    /// Its length.
    pub over: Span,
    /// Devices that take work.
    pub gpus: u32,
    /// Devices that were asked for and are not there yet.
    pub coming: u32,
    /// Requests that came in.
    pub arrivals: u64,
    /// Requests that were answered, in whatever way.
    pub answered: u64,
    /// Those of them that were late, dropped or refused.
    pub bad: u64,
    /// Batches that were run.
    pub batches: u64,
    /// Rows in them.
    pub rows: u64,
    /// Requests that wait at the end of the interval.
    pub waiting: u64,
    /// How many devices the traffic keeps busy if every model runs the largest batches it can sustain
    /// ([`Scheduler::need`](downbeat_sched::Scheduler::need)): the mean over the interval.
    pub needed: f64,
    /// How much that varies.
    pub deviation: f64,
    /// The part of the interval that each device was busy, in the order of rank. Information only: an
    /// [`Autoscaler`](crate::Autoscaler) decides without it, because batches may start early on spare devices.
    pub busy: Vec<f64>,
}

impl Signals {
    /// Requests a second.
    pub fn rate_rps(&self) -> f64 {
        ratio(self.arrivals as f64, self.over.as_secs_f64())
    }

    /// Rows in a batch.
    pub fn mean_batch(&self) -> f64 {
        ratio(self.rows as f64, self.batches as f64)
    }

    /// The signals with all that cannot be made into what can.
    pub(crate) fn sound(&self) -> Signals {
        let sound = |value: f64, most: f64| if value.is_nan() { 0.0 } else { value.clamp(0.0, most) };
        Signals {
            needed: sound(self.needed, 1e9),
            deviation: sound(self.deviation, 1e9),
            busy: self.busy.iter().map(|&busy| sound(busy, 1.0)).collect(),
            ..self.clone()
        }
    }

    /// How many devices' time was used.
    pub fn busy_gpus(&self) -> f64 {
        self.busy.iter().sum()
    }
}

/// 0 where there is nothing to divide by.
pub(crate) fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
