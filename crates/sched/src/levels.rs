//! What the traffic of each priority needs: those above are not pressed by those below.

#[cfg(test)]
mod tests;

use crate::Priority;

/// How many levels are told apart, besides the lowest.
const LEVELS_TOLD: usize = 3;

/// The need of the highest levels, each with all above it. Everyone else shares the need of all.
///
/// Nothing as long as all traffic is of one level. A level and what it needs, in millionths of a device, are one
/// number, to be carried to other threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HigherNeeds([u64; LEVELS_TOLD]);

/// Bits of a number for what is needed; the others are for the level.
const NEED_BITS: u32 = 56;

impl HigherNeeds {
    /// What the traffic of this level and those above needs, in devices; `None` where that is all traffic.
    #[inline]
    pub fn of(&self, level: Priority) -> Option<f64> {
        let told = self.0.iter().take_while(|&&number| number != 0);
        let at_or_above = |number: &&u64| level.0 <= (*number >> NEED_BITS) as u8;
        told.copied().find(|number| at_or_above(&number)).map(|number| {
            let millionths = number & ((1 << NEED_BITS) - 1);
            millionths as f64 / 1e6
        })
    }

    /// Whether all traffic is of one level.
    pub fn is_none(&self) -> bool {
        *self == HigherNeeds::default()
    }

    /// The numbers it is made of.
    pub const fn numbers(self) -> [u64; LEVELS_TOLD] {
        self.0
    }

    /// What has these [`numbers`](Self::numbers).
    pub const fn from_numbers(numbers: [u64; LEVELS_TOLD]) -> HigherNeeds {
        HigherNeeds(numbers)
    }
}

/// The level of every model, as its last batch had it, and what each level needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Levels {
    /// By model; 0 where it has started no batch.
    of_model: Vec<Priority>,
    /// By level, the highest first, in millionths of a device; only those that need any.
    needs: Vec<(Priority, u64)>,
}

impl Levels {
    /// The level of a model; 0, above all others, where it has started no batch.
    pub(crate) fn of(&self, model: u32) -> Priority {
        self.of_model.get(model as usize).copied().unwrap_or_default()
    }

    /// Learns of which level a batch is that a model with this need starts; returns whether the model had another one.
    #[inline]
    pub(crate) fn started(&mut self, model: u32, level: Priority, need: u64) -> bool {
        let known = self.of(model);
        if known == level {
            return false;
        }
        self.change(known, need, 0);
        self.change(level, 0, need);
        let index = model as usize;
        if self.of_model.len() <= index {
            self.of_model.resize(index + 1, Priority(0));
        }
        self.of_model[index] = level;
        true
    }

    /// Learns that a model needs `new` instead of `old`; returns whether levels are told apart, or were until now.
    #[inline]
    pub(crate) fn needs(&mut self, model: u32, old: u64, new: u64) -> bool {
        let before = self.needs.len();
        self.change(self.of(model), old, new);
        before.max(self.needs.len()) > 1
    }

    fn change(&mut self, level: Priority, old: u64, new: u64) {
        if level == Priority(0) || old == new {
            return;
        }
        match self.needs.binary_search_by_key(&level, |(level, _)| *level) {
            Ok(at) => {
                let need = &mut self.needs[at].1;
                *need = need.saturating_sub(old).saturating_add(new);
                if *need == 0 {
                    self.needs.remove(at);
                }
            }
            Err(at) if new > 0 => self.needs.insert(at, (level, new)),
            Err(_) => {}
        }
    }

    /// What the highest levels need, the lowest of all not among them.
    pub(crate) fn higher(&self) -> HigherNeeds {
        let mut numbers = [0; LEVELS_TOLD];
        let mut sum = 0u64;
        let above_the_lowest = self.needs.len().saturating_sub(1);
        for (number, (level, need)) in numbers.iter_mut().zip(&self.needs[..above_the_lowest]) {
            sum = sum.saturating_add(*need).min((1 << NEED_BITS) - 1);
            *number = u64::from(level.0) << NEED_BITS | sum;
        }
        HigherNeeds(numbers)
    }
}
