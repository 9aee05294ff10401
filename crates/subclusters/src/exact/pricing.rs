//! Which sub-clusters are worth more than they cost, at given prices of the models.
//!
//! For each size and rhythm, and each place of the last epoch, that is a knapsack with two limits, load and memory. It
//! is searched in depth for each model that may have the largest activation (which decides how much memory is left for
//! weights), cut off where even pieces of the remaining models, with the two limits mixed into one, would not be worth
//! enough.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::need::{BLOCKED, CALM, Kind, Needs, capacity};
use crate::previous::Homes;

use super::Column;

/// After how many sets a search looks whether it is told to stop.
const LOOK_UP: u32 = 4096;

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
    /// Being here, it would not be at home.
    moved: bool,
    worth: f64,
    /// As a share of what the devices carry.
    load: f64,
    weights: u64,
    activation: u64,
}

/// A knapsack: one kind of sub-cluster in one place.
struct Knapsack {
    items: Vec<Item>,
    memory: u64,
}

impl<'a> Pricing<'a> {
    pub(super) fn new(needs: &'a Needs, homes: &'a Homes) -> Pricing<'a> {
        let mut kinds: Vec<(Kind, usize, u64)> = Vec::new();
        for (index, &kind) in needs.kinds.iter().enumerate() {
            let all: u64 = (0..needs.models())
                .map(|model| needs.loads(model)[index])
                .filter(|load| *load < BLOCKED)
                .sum();
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

    /// The column that is worth most beyond its cost, of each kind and place where there is one. Each is with what it
    /// is worth. `None` when told to stop.
    pub(super) fn best_columns(
        &self,
        prices: &Prices,
        stop: &dyn Fn() -> bool,
    ) -> Option<Vec<(f64, Column)>> {
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

    /// Every column whose reduced cost is at most `allowance` and that no model can be added to without a move or a
    /// device more: a division is as good with the larger ones, since covering a model twice does no harm. `None` where
    /// there are more than `most`, or when told to stop.
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
                let mut looked_at = 0u32;
                let mut stopped = false;
                let whole = knapsack.search(&mut |worth| worth >= least, &mut |worth, models| {
                    looked_at = looked_at.wrapping_add(1);
                    stopped |= looked_at.is_multiple_of(LOOK_UP) && stop();
                    if worth >= least && knapsack.is_full(models) {
                        listed.insert(self.column(models.to_vec(), place, cost));
                    }
                    listed.len() <= most && !stopped
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
    fn knapsack(
        &self,
        prices: &Prices,
        kind: Kind,
        loads: usize,
        place: Option<usize>,
        least: f64,
    ) -> Knapsack {
        let (load, memory) = (capacity(kind.count) as f64, self.needs.room_kib[kind.device]);
        let item = |model: usize| {
            let home = self.homes.of[model];
            let moved = home.is_some() && home != place;
            let own = self.needs.memory[model];
            Item {
                model,
                moved,
                worth: prices.models[model] - if moved { prices.a_move } else { 0.0 },
                load: self.needs.loads(model)[loads] as f64 / load,
                weights: own.weights,
                activation: own.activation,
            }
        };
        let items = (0..self.needs.models()).map(item);
        let fits =
            |item: &Item| item.worth >= least && item.load <= 1.0 && item.weights + item.activation <= memory;
        Knapsack { items: items.filter(fits).collect(), memory }
    }
}

impl Knapsack {
    /// Whether nothing that is worth something fits in addition, but for what would move.
    fn is_full(&self, models: &[usize]) -> bool {
        let inside = || self.items.iter().filter(|item| models.contains(&item.model));
        let load: f64 = inside().map(|item| item.load).sum();
        let weights: u64 = inside().map(|item| item.weights).sum();
        let activation = inside().map(|item| item.activation).max().unwrap_or(0);
        // A little more than full, so that rounding never makes two sets leave room for each other.
        let fits = |item: &Item| {
            load + item.load <= 1.0 - 1e-9
                && weights + item.weights + item.activation.max(activation) <= self.memory
        };
        let adds = |item: &&Item| !item.moved && item.worth >= 0.0 && !models.contains(&item.model);
        !self.items.iter().filter(adds).any(fits)
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

    /// Goes through all sets that fit and may be `wanted`, telling each to `found`; false where that ended it.
    fn search(
        &self,
        wanted: &mut dyn FnMut(f64) -> bool,
        found: &mut dyn FnMut(f64, &[usize]) -> bool,
    ) -> bool {
        // Each model in turn has the largest activation of its set: then the memory for weights is known. Of models
        // with the same activation the one with the smaller number counts as having the largest.
        self.items.iter().all(|first| {
            let Some(room) = self.memory.checked_sub(first.activation + first.weights) else { return true };
            let smaller = |item: &&Item| {
                (item.activation, Reverse(item.model)) < (first.activation, Reverse(first.model))
            };
            let rest: Vec<Item> = self.items.iter().filter(smaller).copied().collect();
            let mut depth = Depth::new(rest, room as f64, 1.0 - first.load, wanted, found);
            depth.chosen.push(first.model);
            depth.go(0, first.worth, 1.0 - first.load, room as f64)
        })
    }
}

/// A search among the models that may accompany one.
struct Depth<'f> {
    /// Those that are worth most for what they take first.
    items: Vec<Item>,
    /// What each takes of the two limits in one number, which is at most `load * by_load + memory * by_memory` of what
    /// is left.
    takes: Vec<f64>,
    by_load: f64,
    by_memory: f64,
    chosen: Vec<usize>,
    /// Whether sets that may be worth so much are still of interest.
    wanted: &'f mut dyn FnMut(f64) -> bool,
    /// Told of every set; false ends the search.
    found: &'f mut dyn FnMut(f64, &[usize]) -> bool,
}

/// How the two limits may be mixed into one.
const MIXES: [f64; 5] = [0.05, 0.3, 0.5, 0.7, 0.95];

impl<'f> Depth<'f> {
    fn new(
        items: Vec<Item>,
        memory: f64,
        load: f64,
        wanted: &'f mut dyn FnMut(f64) -> bool,
        found: &'f mut dyn FnMut(f64, &[usize]) -> bool,
    ) -> Depth<'f> {
        let mut depth = Depth {
            items,
            takes: Vec::new(),
            by_load: 0.0,
            by_memory: 0.0,
            chosen: Vec::new(),
            wanted,
            found,
        };
        // The mix that bounds best from the start is kept.
        let bound = |mix: &f64| {
            depth.mix(*mix, load, memory);
            depth.more(0, load, memory)
        };
        let bounds: Vec<f64> = MIXES.iter().map(bound).collect();
        let best = MIXES.iter().zip(&bounds).min_by(|a, b| a.1.total_cmp(b.1)).map_or(0.5, |(mix, _)| *mix);
        depth.mix(best, load, memory);
        depth
    }

    /// Counts load and memory as one, and sorts by what is worth most for it.
    fn mix(&mut self, mix: f64, load: f64, memory: f64) {
        self.by_load = mix / load.max(1e-9);
        self.by_memory = (1.0 - mix) / memory.max(1.0);
        let (by_load, by_memory) = (self.by_load, self.by_memory);
        let takes = |item: &Item| (item.load * by_load + item.weights as f64 * by_memory).max(1e-12);
        self.items.sort_by(|a, b| (b.worth / takes(b)).total_cmp(&(a.worth / takes(a))));
        self.takes = self.items.iter().map(takes).collect();
    }

    /// What the models from `from` on could add at most, if they could be cut into pieces and the two limits were one.
    fn more(&self, from: usize, load: f64, memory: f64) -> f64 {
        let mut room = load * self.by_load + memory * self.by_memory;
        let mut more = 0.0;
        for (item, &takes) in self.items[from..].iter().zip(&self.takes[from..]) {
            if item.worth <= 0.0 {
                break;
            }
            if takes >= room {
                return more + item.worth * (room / takes).max(0.0);
            }
            room -= takes;
            more += item.worth;
        }
        more
    }

    fn go(&mut self, from: usize, worth: f64, load: f64, memory: f64) -> bool {
        if !(self.found)(worth, &self.chosen) {
            return false;
        }
        for index in from..self.items.len() {
            let more = self.more(index, load, memory);
            if !(self.wanted)(worth + more + 1e-12) {
                return true;
            }
            let item = self.items[index];
            // Loads are sums of shares, with their roundings.
            if item.load > load + 1e-12 || item.weights as f64 > memory {
                continue;
            }
            self.chosen.push(item.model);
            let whole =
                self.go(index + 1, worth + item.worth, load - item.load, memory - item.weights as f64);
            self.chosen.pop();
            if !whole {
                return false;
            }
        }
        true
    }
}
