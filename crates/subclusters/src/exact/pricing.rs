//! Which sub-clusters are worth more than they cost, at given prices of the models.
//!
//! For each size and rhythm, and each place of the last epoch, that is a knapsack with two limits, load and memory. It is searched
//! in depth, the model with the largest activation first (it decides how much memory is left for weights), cut off where even
//! pieces of the remaining models would not be worth enough.

use std::cell::Cell;
use std::collections::BTreeSet;

use crate::need::{BLOCKED, CALM, Kind, Needs, capacity};
use crate::previous::Homes;

use super::Column;

/// What everything is worth.
#[derive(Clone, Debug)]
pub(super) struct Prices {
    /// To have a model somewhere.
    pub(super) models: Vec<f64>,
    /// To take the place of a sub-cluster of the last epoch.
    pub(super) places: Vec<f64>,
    /// To move a model.
    pub(super) a_move: f64,
}

impl Prices {
    pub(super) fn scaled(&self, factor: f64) -> Prices {
        Prices {
            models: self.models.iter().map(|price| price * factor).collect(),
            places: self.places.iter().map(|price| price * factor).collect(),
            a_move: self.a_move * factor,
        }
    }
}

/// The kinds of sub-clusters, of every size that may be wanted.
pub(super) struct Pricing<'a> {
    needs: &'a Needs,
    homes: &'a Homes,
    /// A kind with the index of its loads, and what it costs.
    kinds: Vec<(Kind, usize, u64)>,
}

/// A model as an item of a knapsack.
#[derive(Clone, Copy)]
struct Item {
    model: usize,
    worth: f64,
    load: u64,
    weights: u64,
    activation: u64,
}

/// A knapsack: one kind of sub-cluster in one place.
struct Knapsack {
    /// The largest activation first; of equal ones those that are worth most for what they take.
    items: Vec<Item>,
    /// The most that the items from each on are worth for each millionth of load, and for each KiB.
    densest: Vec<(f64, f64, f64)>,
    load: u64,
    memory: u64,
}

impl<'a> Pricing<'a> {
    pub(super) fn new(needs: &'a Needs, homes: &'a Homes) -> Pricing<'a> {
        let mut kinds: Vec<(Kind, usize, u64)> = Vec::new();
        for (index, &kind) in needs.kinds.iter().enumerate() {
            let all: u64 = (0..needs.models()).map(|model| needs.loads(model)[index]).filter(|load| *load < BLOCKED).sum();
            let sizes = if kind.count == CALM { CALM..=u32::MAX } else { kind.count..=kind.count };
            for count in sizes {
                // A device fewer already carries all that can be there.
                if count > CALM && capacity(count - 1) >= all {
                    break;
                }
                kinds.push((Kind { count, ..kind }, index, u64::from(count) * needs.units[kind.device]));
            }
        }
        Pricing { needs, homes, kinds }
    }

    /// The column that is worth most beyond its cost, of each kind and place where there is one. Each is with what it is worth.
    /// `None` when told to stop.
    pub(super) fn best_columns(&self, prices: &Prices, stop: &dyn Fn() -> bool) -> Option<Vec<(f64, Column)>> {
        let mut found = Vec::new();
        for &(kind, loads, cost) in &self.kinds {
            for place in self.places() {
                if stop() {
                    return None;
                }
                let paid = cost as f64 + place.map_or(0.0, |place| prices.places[place]);
                let knapsack = self.knapsack(prices, kind, loads, place, 1e-9);
                let due = paid - cost as f64;
                if let Some((worth, members)) = knapsack.best(paid + 1e-7) {
                    found.push((worth - due, self.column(members, place, cost)));
                }
            }
        }
        Some(found)
    }

    /// Every column whose reduced cost is at most `allowance`; `None` where there are more than `most`, or when told to stop.
    pub(super) fn columns_within(
        &self,
        prices: &Prices,
        allowance: f64,
        most: usize,
        stop: &dyn Fn() -> bool,
    ) -> Option<Vec<Column>> {
        let mut listed = BTreeSet::new();
        for &(kind, loads, cost) in &self.kinds {
            for place in self.places() {
                if stop() {
                    return None;
                }
                let paid = cost as f64 + place.map_or(0.0, |place| prices.places[place]);
                // A model that is worth nothing, or less, must be somewhere all the same.
                let knapsack = self.knapsack(prices, kind, loads, place, -allowance);
                let least = paid - allowance;
                let whole = knapsack.search(&mut |worth| worth >= least, &mut |worth, models| {
                    if worth >= least && !models.is_empty() {
                        listed.insert(self.column(models.to_vec(), place, cost));
                    }
                    listed.len() <= most
                });
                if !whole {
                    return None;
                }
            }
        }
        Some(listed.into_iter().collect())
    }

    fn places(&self) -> impl Iterator<Item = Option<usize>> + use<> {
        std::iter::once(None).chain((0..self.homes.count).map(Some))
    }

    /// The same set may do with less: the column has what it needs.
    fn column(&self, mut members: Vec<usize>, place: Option<usize>, cost: u64) -> Column {
        members.sort_unstable();
        let cost = self.needs.of_set(&members).map_or(cost, |choice| choice.cost.min(cost));
        Column { members, cost, place }
    }

    /// The knapsack of a kind in a place, without models that are worth less than `least`.
    fn knapsack(&self, prices: &Prices, kind: Kind, loads: usize, place: Option<usize>, least: f64) -> Knapsack {
        let item = |model: usize| {
            let home = self.homes.of[model];
            let moved = home.is_some() && home != place;
            let memory = self.needs.memory[model];
            Item {
                model,
                worth: prices.models[model] - if moved { prices.a_move } else { 0.0 },
                load: self.needs.loads(model)[loads],
                weights: memory.weights,
                activation: memory.activation,
            }
        };
        let (load, memory) = (capacity(kind.count), self.needs.room_kib[kind.device]);
        let mut items: Vec<Item> = (0..self.needs.models())
            .map(item)
            .filter(|item| item.worth >= least && item.load <= load && item.weights + item.activation <= memory)
            .collect();
        let takes = |item: &Item| item.load as f64 / load as f64 + item.weights as f64 / memory as f64;
        items.sort_by(|a, b| {
            let dense = (b.worth / takes(b)).total_cmp(&(a.worth / takes(a)));
            b.activation.cmp(&a.activation).then(dense)
        });
        let mut densest = vec![(0.0, 0.0, 0.0); items.len() + 1];
        for (index, item) in items.iter().enumerate().rev() {
            let (by_load, by_memory, sum): (f64, f64, f64) = densest[index + 1];
            let worth = item.worth.max(0.0);
            densest[index] = (
                by_load.max(worth / item.load.max(1) as f64),
                by_memory.max(worth / item.weights.max(1) as f64),
                sum + worth,
            );
        }
        Knapsack { items, densest, load, memory }
    }
}

/// A search in progress.
struct Depth<'k, 'f> {
    knapsack: &'k Knapsack,
    chosen: Vec<usize>,
    /// Whether sets that may be worth so much are still of interest.
    wanted: &'f mut dyn FnMut(f64) -> bool,
    /// Told of every set; false ends the search.
    found: &'f mut dyn FnMut(f64, &[usize]) -> bool,
}

impl Knapsack {
    /// Goes through all sets that fit and may be wanted. False where it was ended.
    fn search(
        &self,
        wanted: &mut dyn FnMut(f64) -> bool,
        found: &mut dyn FnMut(f64, &[usize]) -> bool,
    ) -> bool {
        let mut depth = Depth { knapsack: self, chosen: Vec::new(), wanted, found };
        depth.go(0, 0.0, self.load, self.memory)
    }

    /// The set that is worth most, if that is more than `least`.
    fn best(&self, least: f64) -> Option<(f64, Vec<usize>)> {
        let limit = Cell::new(least);
        let mut best = None;
        self.search(&mut |worth| worth > limit.get() + 1e-9, &mut |worth, models| {
            if worth > limit.get() {
                limit.set(worth);
                best = Some((worth, models.to_vec()));
            }
            true
        });
        best
    }
}

impl Depth<'_, '_> {
    fn go(&mut self, from: usize, worth: f64, load: u64, memory: u64) -> bool {
        if !(self.found)(worth, &self.chosen) {
            return false;
        }
        for index in from..self.knapsack.items.len() {
            let (by_load, by_memory, all) = self.knapsack.densest[index];
            let more = (by_load * load as f64).min(by_memory * memory as f64).min(all);
            if !(self.wanted)(worth + more) {
                return true;
            }
            let item = self.knapsack.items[index];
            // The first model has the largest activation of all: what it takes is gone for the rest.
            let activation = if self.chosen.is_empty() { item.activation } else { 0 };
            if item.load > load || item.weights + activation > memory {
                continue;
            }
            self.chosen.push(item.model);
            let whole = self.go(index + 1, worth + item.worth, load - item.load, memory - item.weights - activation);
            self.chosen.pop();
            if !whole {
                return false;
            }
        }
        true
    }
}
