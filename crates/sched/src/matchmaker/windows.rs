//! Windows: from when on a candidate may start, and on which devices.

use super::Matchmaker;
use crate::candidate::Candidate;
use crate::pool::Pool;
use crate::{ClassId, GpuId, ModelId, Pressure, Time};

impl Matchmaker {
    /// Moves the models whose window is open by now from `pending` to `open`; or to `held`, as long as it is not open
    /// on the last idle device.
    #[inline]
    pub(super) fn open_windows(&mut self, class: ClassId, now: Time) {
        let Matchmaker { pools, posted, .. } = self;
        let pool = &mut pools[class.0 as usize];
        while let Some((until, model)) = pool.held.peek()
            && let Some(candidate) = posted[model as usize].on(class)
            && until <= now
        {
            pool.held.remove(model);
            pool.open(model, candidate);
        }
        while let Some((frontrun, model)) = pool.pending.peek()
            && let Some(candidate) = posted[model as usize].on(class)
        {
            if frontrun > now && frontrun - pool.head_start(model, candidate.latency) > now {
                break;
            }
            pool.pending.remove(model);
            let until = held_until(pool, candidate);
            if until > now {
                pool.held.set(model, until);
            } else {
                pool.open(model, candidate);
            }
        }
    }

    /// When another window opens, or one that is open opens on the last idle device too.
    pub(super) fn next_to_open(&mut self, class: ClassId) -> Option<Time> {
        let pool = &mut self.pools[class.0 as usize];
        let held_until = pool.held.peek().map(|(until, _)| until);
        let next = pool.pending.peek().and_then(|(frontrun, model)| {
            let candidate = self.posted[model as usize].on(class)?;
            Some(frontrun - pool.head_start(model, candidate.latency))
        });
        next.into_iter().chain(held_until).min()
    }

    /// A model that is held and an idle device that it may have all the same, because others find another one in time.
    ///
    /// Those that are not held go first, as far as they are of its level or above.
    pub(super) fn held_and_let_go(&mut self, class: ClassId, now: Time) -> Option<(ModelId, GpuId)> {
        let pool = &self.pools[class.0 as usize];
        let (_, model) = pool.held.peek()?;
        let priority = self.posted[model as usize].on(class)?.priority;
        if pool.open.peek().is_some_and(|((open, _), _)| open <= priority) {
            return None;
        }
        let gpu = pool.idle.first()?;
        let others_wait_until = now + pool.pressure().patience;
        let one_is_left = pool.idle.len() > 1
            || self.free_next(class, now).is_some_and(|(free_at, _)| free_at <= others_wait_until);
        one_is_left.then_some((ModelId(model), gpu))
    }
}

/// Until when a candidate whose window is open may not have the last idle device: the past where nobody would miss it.
///
/// Nobody is held for the sake of a lower level, nor where there is no other device to wait for.
fn held_until(pool: &mut Pool, candidate: &Candidate) -> Time {
    let Candidate { frontrun, latency, priority, .. } = *candidate;
    let Pressure { gpus, patience, .. } = *pool.pressure();
    if gpus > 1 && latency > patience && pool.level_of_least_patient() <= priority {
        frontrun - pool.head_start_on_last(latency)
    } else {
        Time::ZERO
    }
}
