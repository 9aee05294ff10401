//! How many devices a load wants: what it keeps busy, and a reserve for what varies.
//!
//! Work that comes at random wants more devices than it keeps busy, by about the square root of their number
//! (square-root staffing). By how many square roots is learned where the usual number is not enough; and what the load
//! keeps busy is corrected where the devices turn out to have less to do than was reckoned.

use downbeat_sched::Time;

use crate::recent::Load;

/// What was seen at one load holds for loads that differ from it by this share...
const NEAR_LOAD: f64 = 0.25;

/// ...for those that differ by this share not at all, and in between in part.
const FAR_LOAD: f64 = 0.75;

/// Where this part of a reckoned need is used, or more, the reckoning is right...
const NO_DISCOUNT: f64 = 0.95;

/// ...and where this part is used, or less, the use is.
const FULL_DISCOUNT: f64 = 0.8;

/// The least that is believed of a reckoned need, however idle the devices are.
const DISCOUNT_MIN: f64 = 0.5;

/// A reserve beyond this many square roots is not learned: what is bad then has another cause.
const ROOTS_MAX: f64 = 5.0;

/// After so long, half of what was learned is forgotten.
const HALF_LIFE_S: f64 = 86_400.0;

/// What was learned about a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Staffing {
    /// The reserve in square roots of the need, as it was set.
    usual: f64,
    /// What is added to that.
    learned: f64,
    learned_at: Time,
    discount: Option<Discount>,
}

/// A load at which less is used than is reckoned to be needed: models that share devices fill batches that the
/// reckoning, a model at a time, does not know of.
#[derive(Clone, Copy, Debug)]
struct Discount {
    /// The load at which it was seen.
    needed: f64,
    /// What is wanted of it, at most 1.
    factor: f64,
}

impl Staffing {
    pub(crate) fn new(usual: f64) -> Staffing {
        Staffing { usual, learned: 0.0, learned_at: Time::ZERO, discount: None }
    }

    /// The devices that the load keeps busy.
    pub(crate) fn busy(&self, load: Load) -> f64 {
        let Some(Discount { needed, factor }) = self.discount else { return load.needed };
        let distance = (load.needed - needed).abs() / needed.max(1e-9);
        let belief = ((FAR_LOAD - distance) / (FAR_LOAD - NEAR_LOAD)).clamp(0.0, 1.0);
        load.needed * (1.0 - belief * (1.0 - factor))
    }

    /// The devices that are wanted beyond those.
    pub(crate) fn reserve(&self, load: Load, now: Time) -> f64 {
        load.deviation + self.roots(now) * self.busy(load).max(0.0).sqrt()
    }

    /// The devices that are wanted, as a number that need not be whole.
    pub(crate) fn wanted(&self, load: Load, now: Time) -> f64 {
        self.busy(load) + self.reserve(load, now)
    }

    /// Learns that `gpus` devices lost requests at this load although they were thought to be enough; `tried` where
    /// more of them were known to be enough.
    pub(crate) fn too_few(&mut self, load: Load, gpus: u32, tried: bool, now: Time) {
        let short = f64::from(gpus) + 0.75 - self.wanted(load, now);
        if short <= 0.0 || load.needed <= 0.0 {
            return;
        }
        if !tried {
            // Too little was used only because requests were dropped: what was seen of this load does not hold.
            self.discount = None;
        }
        let short = f64::from(gpus) + 0.75 - self.wanted(load, now);
        if short > 0.0 {
            let more = short / load.needed.sqrt();
            self.learned = (self.roots(now) - self.usual + more).min(ROOTS_MAX);
            self.learned_at = now;
        }
    }

    /// Learns that devices were busy for only `busy` of what a load was reckoned to need, while there was enough of
    /// them.
    pub(crate) fn used(&mut self, load: Load, busy: f64) {
        if load.needed > 0.0 {
            let used = (busy / load.needed).max(DISCOUNT_MIN);
            // Not all at once, so that what is used a little more or less does not tip the scales.
            let part = ((NO_DISCOUNT - used) / (NO_DISCOUNT - FULL_DISCOUNT)).clamp(0.0, 1.0);
            self.discount = Some(Discount { needed: load.needed, factor: 1.0 - part * (1.0 - used) });
        }
    }

    fn roots(&self, now: Time) -> f64 {
        let age_s = now.since(self.learned_at).as_secs_f64();
        self.usual + self.learned * 0.5f64.powf(age_s / HALF_LIFE_S)
    }
}

/// Devices are used in proportion to load only while some are spare: past this part, batches start early and are small.
pub(crate) const PROPORTIONAL: f64 = NO_DISCOUNT;
