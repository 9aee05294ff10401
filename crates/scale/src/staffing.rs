//! The devices that a load wants: its need, and a reserve for what varies.
//!
//! Work that comes at random wants more devices than it keeps busy, by about the square root of their number
//! (square-root staffing). The number of square roots grows where requests are lost with devices that should have been
//! enough.

use downbeat_sched::Time;

use crate::recent::Load;

/// A reserve beyond this many square roots is not learned: what is bad then has another cause.
const ROOTS_MAX: f64 = 5.0;

/// After so long, half of what was learned is forgotten.
const HALF_LIFE_S: f64 = 86_400.0;

/// The reserve of a cluster, as it was set and as it was learned.
#[derive(Clone, Debug)]
pub(crate) struct Staffing {
    /// The reserve in square roots of the need, as it was set.
    usual: f64,
    /// What is added to that.
    learned: f64,
    learned_at: Time,
}

impl Staffing {
    pub(crate) fn new(usual: f64) -> Staffing {
        Staffing { usual, learned: 0.0, learned_at: Time::ZERO }
    }

    /// The devices that are wanted beyond the need.
    pub(crate) fn reserve(&self, load: Load, now: Time) -> f64 {
        load.deviation + self.roots(now) * load.needed.max(0.0).sqrt()
    }

    /// The devices that are wanted, as a number that need not be whole.
    pub(crate) fn wanted(&self, load: Load, now: Time) -> f64 {
        load.needed + self.reserve(load, now)
    }

    /// Learns that `gpus` devices lost requests at this load although they were thought to be enough.
    pub(crate) fn too_few(&mut self, load: Load, gpus: u32, now: Time) {
        let short = f64::from(gpus) + 0.75 - self.wanted(load, now);
        if short > 0.0 && load.needed > 0.0 {
            let more = short / load.needed.sqrt();
            self.learned = (self.roots(now) - self.usual + more).min(ROOTS_MAX);
            self.learned_at = now;
        }
    }

    fn roots(&self, now: Time) -> f64 {
        let age_s = now.since(self.learned_at).as_secs_f64();
        self.usual + self.learned * 0.5f64.powf(age_s / HALF_LIFE_S)
    }
}
