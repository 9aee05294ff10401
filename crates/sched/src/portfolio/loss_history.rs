//! What selector lost lately, and how sure it is that one of them loses less than another.

use std::collections::{VecDeque, vec_deque};

use super::RULES;
use super::per_model_counts::PerModelCounts;
use crate::ModelId;

/// So many requests without a loss are added to what each model had: one lost of three says little.
const FEW: f64 = 20.0;

/// Rounds that must be there before anything can be said of how they vary.
const ROUNDS_MIN: usize = 4;

/// So many requests more or less are always doubted, on one stage: the few that are lost at first are lost by chance.
const BY_CHANCE: f64 = 5.0;

pub(crate) const RULE_COUNT: usize = RULES.len();

/// What each shadow lost of each model's requests, round by round. Only the last rounds are kept.
#[derive(Clone, Debug)]
pub(crate) struct LossHistory {
    rounds: VecDeque<Round>,
    /// Over all rounds, by model.
    sums: Vec<Entry>,
    most: usize,
}

/// What came in and was lost in one round.
#[derive(Clone, Debug)]
struct Round {
    /// How many stages it was played on.
    stages: u32,
    /// In the order of models.
    entries: Box<[Entry]>,
}

/// A model in one round, or in several.
#[derive(Clone, Copy, Debug)]
struct Entry {
    model: ModelId,
    arrived: u32,
    /// By the place of the rule in [`RULES`].
    lost: [u32; RULE_COUNT],
}

impl LossHistory {
    pub(crate) fn of_the_last(most: usize) -> LossHistory {
        LossHistory { rounds: VecDeque::new(), sums: Vec::new(), most }
    }

    pub(crate) fn clear(&mut self) {
        self.rounds.clear();
        self.sums.clear();
    }

    /// Adds a round: what came in, on each of so many stages, and what was lost by each rule on all of them.
    pub(crate) fn add(
        &mut self,
        arrived: &PerModelCounts,
        stages: u32,
        lost: impl Fn(usize) -> PerModelCounts,
    ) {
        let lost: [PerModelCounts; RULE_COUNT] = std::array::from_fn(lost);
        let end = lost.iter().map(PerModelCounts::models_end).fold(arrived.models_end(), u32::max);
        let lost_of = |model| lost.each_ref().map(|lost| lost.of(model));
        let entry = |model| Entry { model, arrived: stages * arrived.of(model), lost: lost_of(model) };
        let counts = |entry: &Entry| entry.arrived > 0 || entry.lost.iter().any(|&lost| lost > 0);
        let entries: Box<[Entry]> = (0..end).map(ModelId).map(entry).filter(counts).collect();
        self.sums.extend((self.sums.len() as u32..end).map(ModelId).map(Entry::none));
        entries.iter().for_each(|entry| self.sums[entry.model.0 as usize].add(entry));
        self.rounds.push_back(Round { stages, entries });
        self.forget_before_last(self.most);
    }

    /// Forgets all but the last rounds.
    pub(crate) fn forget_before_last(&mut self, rounds: usize) {
        for Round { entries, .. } in self.rounds.drain(..self.rounds.len().saturating_sub(rounds)) {
            entries.iter().for_each(|entry| self.sums[entry.model.0 as usize].take_off(entry));
        }
    }

    /// Forgets a model.
    pub(crate) fn strike(&mut self, model: ModelId) {
        if let Some(sum) = self.sums.get_mut(model.0 as usize) {
            *sum = Entry::none(model);
        }
        for Round { entries, .. } in &mut self.rounds {
            // Most models that come are new, and in none of them.
            if entries.binary_search_by_key(&model, |entry| entry.model).is_ok() {
                *entries = entries.iter().filter(|entry| entry.model != model).copied().collect();
            }
        }
    }

    /// What all of it says of some models.
    pub(crate) fn about(&self, models: impl Iterator<Item = ModelId>) -> Comparison<'_> {
        Comparison::new(self.rounds.range(..), &self.sums, models)
    }

    /// What the last rounds say of some models.
    pub(crate) fn about_last(&self, rounds: usize, models: impl Iterator<Item = ModelId>) -> Comparison<'_> {
        let rounds = self.rounds.range(self.rounds.len().saturating_sub(rounds)..);
        let mut sums: Vec<Entry> = (0..self.sums.len() as u32).map(ModelId).map(Entry::none).collect();
        for entry in rounds.clone().flat_map(|round| &round.entries) {
            sums[entry.model.0 as usize].add(entry);
        }
        Comparison::new(rounds, &sums, models)
    }
}

/// What a record says of some models.
#[derive(Debug)]
pub(crate) struct Comparison<'a> {
    rounds: vec_deque::Iter<'a, Round>,
    /// By model, over these rounds; none of models that were not asked for.
    sums: Vec<Option<Entry>>,
}

impl<'a> Comparison<'a> {
    fn new(
        rounds: vec_deque::Iter<'a, Round>,
        sums: &[Entry],
        models: impl Iterator<Item = ModelId>,
    ) -> Comparison<'a> {
        let mut asked = vec![None; sums.len()];
        for index in models.map(|model| model.0 as usize).filter(|&index| index < sums.len()) {
            asked[index] = Some(sums[index]);
        }
        Comparison { rounds, sums: asked }
    }

    /// How bad it is what would have been lost by a rule: about the share that the model lost that lost most. In a norm
    /// that is close to the largest share and more even, because the share of a single model is a matter of chance.
    pub(crate) fn bad(&self, rule: usize) -> f64 {
        let fourth = |sum: &Entry| sum.share(rule).powi(4);
        self.sums.iter().flatten().map(fourth).sum::<f64>().sqrt().sqrt()
    }

    /// Whether one rule is better than another by more than so many standard deviations of the difference.
    pub(crate) fn is_better(&self, one: usize, other: usize, deviations: f64) -> bool {
        let gain = self.bad(other) - self.bad(one);
        gain > 0.0 && gain > deviations * self.deviation_of_difference(one, other)
    }

    /// The standard deviation of the difference between two rules' [`bad`](Self::bad), told from how it differs from
    /// round to round. What the traffic does by chance it does to both, and cancels out. Infinite where there are too
    /// few rounds to tell.
    fn deviation_of_difference(&self, one: usize, other: usize) -> f64 {
        if self.rounds.len() < ROUNDS_MIN {
            return f64::INFINITY;
        }
        let bads = [one, other].map(|rule| self.bad(rule));
        // How much worse one lost request more makes it: the slope of the norm, which is steep for those that lose
        // most.
        let slope = |sum: &Entry, rule: usize, bad: f64| {
            if bad > 0.0 { (sum.share(rule) / bad).powi(3) / sum.requests() } else { 0.0 }
        };
        let slope = |sum: &Entry| slope(sum, one, bads[0]).max(slope(sum, other, bads[1]));
        let slopes: Vec<f64> = self.sums.iter().map(|sum| sum.as_ref().map_or(0.0, slope)).collect();
        let difference = |entry: &Entry| {
            let slope = slopes.get(entry.model.0 as usize).copied().unwrap_or(0.0);
            slope * (f64::from(entry.lost_by(one)) - f64::from(entry.lost_by(other)))
        };
        let (mut sum, mut squares) = (0.0, 0.0);
        let mut stages = 1;
        for round in self.rounds.clone() {
            stages = stages.max(round.stages);
            let difference: f64 = round.entries.iter().map(difference).sum();
            sum += difference;
            squares += difference * difference;
        }
        let rounds = self.rounds.len() as f64;
        // Of the sum over all rounds, as if they were independent of each other.
        let variance = (squares - sum * sum / rounds).max(0.0) * rounds / (rounds - 1.0);
        // What happens by chance on several stages adds up like roots.
        let steepest = slopes.iter().copied().fold(0.0, f64::max);
        let by_chance = BY_CHANCE * f64::from(stages).sqrt() * steepest;
        (variance + by_chance * by_chance).sqrt()
    }
}

impl Entry {
    fn none(model: ModelId) -> Entry {
        Entry { model, arrived: 0, lost: [0; RULE_COUNT] }
    }

    fn add(&mut self, other: &Entry) {
        self.arrived += other.arrived;
        self.lost.iter_mut().zip(other.lost).for_each(|(lost, other)| *lost += other);
    }

    fn take_off(&mut self, other: &Entry) {
        self.arrived -= other.arrived;
        self.lost.iter_mut().zip(other.lost).for_each(|(lost, other)| *lost -= other);
    }

    fn lost_by(&self, rule: usize) -> u32 {
        self.lost[rule]
    }

    fn requests(&self) -> f64 {
        f64::from(self.arrived) + FEW
    }

    fn share(&self, rule: usize) -> f64 {
        f64::from(self.lost_by(rule)) / self.requests()
    }
}

#[cfg(test)]
mod tests {
    use crate::ModelId;

    use super::{LossHistory, PerModelCounts};

    fn counts(each: [u32; 2]) -> PerModelCounts {
        let mut counts = PerModelCounts::default();
        for (model, count) in (0..).map(ModelId).zip(each) {
            (0..count).for_each(|_| counts.count(model));
        }
        counts
    }

    /// A record of rounds of 49 requests for each of two models, of which `own` and `eager` lose so many, and the
    /// others none.
    fn record(rounds: &[([u32; 2], [u32; 2])]) -> LossHistory {
        record_of_stages(1, rounds)
    }

    fn record_of_stages(stages: u32, rounds: &[([u32; 2], [u32; 2])]) -> LossHistory {
        let mut record = LossHistory::of_the_last(20);
        for (own, eager) in rounds {
            record.add(&counts([49, 49]), stages, |rule| match rule {
                0 => counts(*own),
                6 => counts(*eager),
                _ => PerModelCounts::default(),
            });
        }
        record
    }

    fn both() -> impl Iterator<Item = ModelId> {
        [ModelId(0), ModelId(1)].into_iter()
    }

    /// 20 rounds of 49 requests, and 20 that never were: 1000.
    #[test]
    fn it_is_as_bad_as_for_the_model_that_loses_most_and_a_little_worse_if_others_lose_too() {
        let bad = |lost| record(&[(lost, [0, 0]); 20]).about(both()).bad(0);
        assert!((bad([3, 0]) - 0.06).abs() < 1e-12);
        assert!((bad([4, 2]) / 0.08 - 1.0).abs() < 0.02);
        assert!((bad([3, 3]) / 0.06 - 2f64.powf(0.25)).abs() < 1e-9);
        assert!(bad([0, 0]).abs() < 1e-12);
    }

    #[test]
    fn only_the_models_that_are_asked_for_and_the_last_rounds_count() {
        let lately = [[([40, 0], [0, 0]); 5], [([0, 1], [0, 0]); 5]].concat().repeat(2);
        let record = record(&[vec![([0, 49], [49, 49]); 20], lately].concat());
        assert!((record.about(both()).bad(0) - 0.4).abs() < 1e-3);
        let second = record.about([ModelId(1)].into_iter());
        assert!((second.bad(0) - 0.01).abs() < 1e-12);
        assert!(second.bad(6).abs() < 1e-12);
    }

    #[test]
    fn three_rounds_are_too_few_to_tell_and_a_number_that_was_another_models_is_struck() {
        let mut record = record(&[([9, 1], [0, 0]); 3]);
        let doubt = |record: &LossHistory| record.about(both()).deviation_of_difference(0, 6);
        assert!(doubt(&record).is_infinite());
        record.add(&counts([49, 49]), 1, |_| PerModelCounts::default());
        assert!(doubt(&record).is_finite());
        record.strike(ModelId(0));
        let bad = record.about(both()).bad(0);
        assert!((bad - 3.0 / (4.0 * 49.0 + 20.0)).abs() < 1e-12, "{bad}");
    }

    /// However much is lost, and however much that varies: where both lose the same, nothing but five requests are in
    /// doubt.
    #[test]
    fn what_both_lose_alike_is_no_reason_for_doubt() {
        let rounds: Vec<_> = (0..20).map(|round| ([round % 7, 0], [round % 7, 0])).collect();
        let doubt = record(&rounds).about(both()).deviation_of_difference(0, 6);
        assert!((doubt - 0.005).abs() < 1e-12, "{doubt}");
    }

    /// 20 rounds of 49 requests on four stages, and 20 that never were: 3940. Twice as many are in doubt as on one.
    #[test]
    fn on_four_stages_there_are_four_times_the_requests_and_twice_the_chance() {
        let record = record_of_stages(4, &[([12, 0], [12, 0]); 20]);
        let comparison = record.about(both());
        assert!((comparison.bad(0) - 240.0 / 3_940.0).abs() < 1e-12);
        let doubt = comparison.deviation_of_difference(0, 6);
        assert!((doubt - 10.0 / 3_940.0).abs() < 1e-12, "{doubt}");
    }

    /// In every other round one of them loses two more: 20 more of 1000 in all, give or take sqrt(20 * 20 / 19).
    #[test]
    fn doubt_is_how_the_difference_varies_from_round_to_round() {
        let rounds: Vec<_> = (0..20).map(|round| ([5 + 2 * (round % 2), 0], [5, 0])).collect();
        let record = record(&rounds);
        let comparison = record.about(both());
        let doubt = comparison.deviation_of_difference(0, 6);
        let expected = (20.0 * 20.0 / 19.0 + 25.0_f64).sqrt() / 1_000.0;
        assert!((doubt - expected).abs() < 1e-9, "{doubt}, not {expected}");
        assert!((comparison.bad(0) - comparison.bad(6) - 0.02).abs() < 1e-12);
    }

    /// A round on one stage, after some on four, does not make what was lost by chance on these any surer.
    #[test]
    fn doubt_is_that_of_the_most_stages() {
        let mut record = record_of_stages(4, &[([12, 0], [12, 0]); 20]);
        let doubt = |record: &LossHistory| record.about(both()).deviation_of_difference(0, 6);
        let before = doubt(&record);
        record.add(&counts([49, 49]), 1, |_| PerModelCounts::default());
        assert!(doubt(&record) > 0.9 * before);
    }

    #[test]
    fn sums_are_those_of_the_rounds_that_are_left() {
        let mut record = LossHistory::of_the_last(5);
        for round in 0..30 {
            let lost = counts([round % 4, round % 3]);
            record.add(&counts([10, (round % 2) * 10]), 1 + round % 4, |_| lost.clone());
            if round % 7 == 3 {
                record.strike(ModelId(round % 2));
            }
            if round % 11 == 5 {
                record.forget_before_last(2);
            }
            let [kept, anew] =
                [record.about(both()), record.about_last(usize::MAX, both())].map(|all| all.bad(0));
            assert!((kept - anew).abs() < 1e-12, "round {round}: {kept}, not {anew}");
        }
    }
}
