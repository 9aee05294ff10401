//! What each rule lost lately, and how sure it is that one of them loses less than another.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use super::RULES;
use super::per_model_counts::PerModelCounts;
use crate::ModelId;

/// So many requests without a loss are added to what each model had: one lost of three says little.
const PRIOR_REQUESTS: f64 = 20.0;

/// Rounds that must be there before anything can be said of how they vary.
const ROUNDS_MIN: usize = 4;

/// So many requests more or less are always doubted: the few that are lost at first are lost by chance.
const CHANCE_REQUESTS: f64 = 5.0;

/// What each rule lost of each model's requests, round by round. Only the last rounds are kept.
#[derive(Clone, Debug)]
pub(super) struct LossHistory {
    rounds: VecDeque<Box<[Entry]>>,
    /// Over all rounds, by model.
    sums: Vec<Entry>,
    most: usize,
}

/// A model in one round, or in several.
#[derive(Clone, Copy, Debug)]
struct Entry {
    model: ModelId,
    arrived: u32,
    /// By the number of the rule.
    lost: [u32; RULES],
}

impl LossHistory {
    pub(super) fn of_the_last(most: usize) -> LossHistory {
        LossHistory { rounds: VecDeque::new(), sums: Vec::new(), most }
    }

    pub(super) fn clear(&mut self) {
        self.rounds.clear();
        self.sums.clear();
    }

    /// Adds a round: what came in, and what was lost by each rule.
    pub(super) fn add<'a>(
        &mut self,
        arrived: &PerModelCounts,
        lost: &(impl Iterator<Item = &'a PerModelCounts> + Clone),
    ) {
        let end = lost.clone().map(PerModelCounts::models_end).fold(arrived.models_end(), u32::max);
        let entry = |model| {
            let mut entry = Entry { arrived: arrived.of(model), ..Entry::none(model) };
            entry.lost.iter_mut().zip(lost.clone()).for_each(|(count, lost)| *count = lost.of(model));
            entry
        };
        let counts = |entry: &Entry| entry.arrived > 0 || entry.lost.iter().any(|&lost| lost > 0);
        let round: Box<[Entry]> = (0..end).map(ModelId).map(entry).filter(counts).collect();
        self.sums.extend((self.sums.len() as u32..end).map(ModelId).map(Entry::none));
        round.iter().for_each(|entry| self.sums[entry.model.0 as usize].add(entry));
        self.rounds.push_back(round);
        if self.rounds.len() > self.most
            && let Some(oldest) = self.rounds.pop_front()
        {
            oldest.iter().for_each(|entry| self.sums[entry.model.0 as usize].subtract(entry));
        }
    }

    /// Forgets a model.
    pub(super) fn forget(&mut self, model: ModelId) {
        if let Some(sum) = self.sums.get_mut(model.0 as usize) {
            *sum = Entry::none(model);
        }
        for round in &mut self.rounds {
            // Most models that come are new, and in none of them.
            if round.binary_search_by_key(&model, |entry| entry.model).is_ok() {
                *round = round.iter().filter(|entry| entry.model != model).copied().collect();
            }
        }
    }

    /// The rules compared by what they lost of some models.
    pub(super) fn of_models(&self, models: impl Iterator<Item = ModelId>) -> Comparison<'_> {
        let mut sums = vec![None; self.sums.len()];
        for model in models {
            if let Some(sum) = self.sums.get(model.0 as usize) {
                sums[model.0 as usize] = Some(*sum);
            }
        }
        Comparison { rounds: &self.rounds, sums }
    }
}

/// The rules compared by what they lost of some models.
#[derive(Debug)]
pub(super) struct Comparison<'a> {
    rounds: &'a VecDeque<Box<[Entry]>>,
    /// By model; none of models that were not asked for.
    sums: Vec<Option<Entry>>,
}

impl Comparison<'_> {
    /// About the share that the model lost that lost most, by a rule. In a norm that is close to the largest share and
    /// more even, because the share of a single model is a matter of chance.
    pub(super) fn badness(&self, rule: usize) -> f64 {
        let fourth = |sum: &Entry| sum.share(rule).powi(4);
        self.sums.iter().flatten().map(fourth).sum::<f64>().sqrt().sqrt()
    }

    /// Whether one rule is better than another by more than so many standard deviations of the difference.
    pub(super) fn is_better(&self, one: usize, other: usize, deviations: f64) -> bool {
        let gain = self.badness(other) - self.badness(one);
        gain > 0.0 && gain > deviations * self.deviation_of_difference(one, other)
    }

    /// The standard deviation of the difference between two rules' [`badness`](Self::badness), from how it differs from
    /// round to round. What the traffic does by chance it does to both, and cancels out. Infinite where there are too
    /// few rounds to tell.
    fn deviation_of_difference(&self, one: usize, other: usize) -> f64 {
        if self.rounds.len() < ROUNDS_MIN {
            return f64::INFINITY;
        }
        let badness = [one, other].map(|rule| self.badness(rule));
        // How much worse one lost request more makes it: the slope of the norm, which is steep for those that lose
        // most.
        let slope = |sum: &Entry, rule: usize, badness: f64| {
            if badness > 0.0 { (sum.share(rule) / badness).powi(3) / sum.requests() } else { 0.0 }
        };
        let slope = |sum: &Entry| slope(sum, one, badness[0]).max(slope(sum, other, badness[1]));
        let slopes: Vec<f64> = self.sums.iter().map(|sum| sum.as_ref().map_or(0.0, slope)).collect();
        let difference = |entry: &Entry| {
            let slope = slopes.get(entry.model.0 as usize).copied().unwrap_or(0.0);
            slope * (f64::from(entry.lost[one]) - f64::from(entry.lost[other]))
        };
        let (mut sum, mut squares) = (0.0, 0.0);
        for round in self.rounds {
            let difference: f64 = round.iter().map(difference).sum();
            sum += difference;
            squares += difference * difference;
        }
        let rounds = self.rounds.len() as f64;
        // Of the sum over all rounds, as if they were independent of each other.
        let variance = (squares - sum * sum / rounds).max(0.0) * rounds / (rounds - 1.0);
        let by_chance = CHANCE_REQUESTS * slopes.iter().copied().fold(0.0, f64::max);
        (variance + by_chance * by_chance).sqrt()
    }
}

impl Entry {
    const fn none(model: ModelId) -> Entry {
        Entry { model, arrived: 0, lost: [0; RULES] }
    }

    fn add(&mut self, other: &Entry) {
        self.arrived += other.arrived;
        self.lost.iter_mut().zip(other.lost).for_each(|(lost, other)| *lost += other);
    }

    fn subtract(&mut self, other: &Entry) {
        self.arrived -= other.arrived;
        self.lost.iter_mut().zip(other.lost).for_each(|(lost, other)| *lost -= other);
    }

    fn requests(&self) -> f64 {
        f64::from(self.arrived) + PRIOR_REQUESTS
    }

    fn share(&self, rule: usize) -> f64 {
        f64::from(self.lost[rule]) / self.requests()
    }
}
