//! A division of the models into sub-clusters while it is searched: models come and go, sums are kept.

use std::cmp::{Ordering, Reverse};

use crate::need::{Choice, Needs};
use crate::previous::Homes;

/// No sub-cluster: the model is in hand.
pub(crate) const NOWHERE: usize = usize::MAX;

/// A division that may be incomplete. Sub-clusters are numbered: first those of the last epoch, then new ones.
#[derive(Clone, Debug)]
pub(crate) struct Division<'a> {
    needs: &'a Needs,
    homes: &'a Homes,
    pub(crate) groups: Vec<Group>,
    pub(crate) group_of: Vec<usize>,
    /// What all sub-clusters cost, in units.
    pub(crate) cost: u64,
    /// How many models are not at home.
    pub(crate) moves: usize,
}

/// A sub-cluster while it is searched.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) members: Vec<usize>,
    /// By kind.
    loads: Vec<u64>,
    weights: u64,
    activation: u64,
    /// The fewest of each device that will do, or a lower number: adding a model never needs fewer.
    least: Vec<u32>,
    /// `None` where it is empty, or no devices will do.
    pub(crate) choice: Option<Choice>,
}

impl Group {
    fn empty(needs: &Needs) -> Group {
        Group {
            members: Vec::new(),
            loads: vec![0; needs.kinds.len()],
            weights: 0,
            activation: 0,
            least: vec![1; needs.units.len()],
            choice: None,
        }
    }

    /// Whether no devices will do for it.
    pub(crate) fn is_impossible(&self) -> bool {
        self.choice.is_none() && !self.members.is_empty()
    }

    fn cost(&self) -> u64 {
        self.choice.map_or(0, |choice| choice.cost)
    }
}

impl<'a> Division<'a> {
    /// All models in hand.
    pub(crate) fn new(needs: &'a Needs, homes: &'a Homes) -> Division<'a> {
        Division {
            needs,
            homes,
            groups: vec![Group::empty(needs); homes.count],
            group_of: vec![NOWHERE; needs.models()],
            cost: 0,
            moves: 0,
        }
    }

    /// What the sub-cluster would be run on with this model in addition; `None` where nothing will do.
    pub(crate) fn with(&self, model: usize, group: usize) -> Option<Choice> {
        let loads = self.needs.loads(model);
        let memory = self.needs.memory[model];
        match self.groups.get(group) {
            Some(group) => self.needs.choose(
                |kind| group.loads[kind] + loads[kind],
                group.weights + memory.weights,
                group.activation.max(memory.activation),
                &mut group.least.clone(),
            ),
            None => self.needs.of_set(&[model]),
        }
    }

    /// Whether the model may be there, as far as moves go.
    pub(crate) fn may_be(&self, model: usize, group: usize) -> bool {
        !self.homes.is_move(model, group) || self.moves < self.homes.most_moves
    }

    /// The number of a sub-cluster that is empty and was not there before: the first such, or the next one.
    pub(crate) fn fresh(&self) -> usize {
        (self.homes.count..self.groups.len())
            .find(|&group| self.groups[group].members.is_empty())
            .unwrap_or(self.groups.len())
    }

    /// Puts a model that is in hand into a sub-cluster.
    pub(crate) fn insert(&mut self, model: usize, group: usize) {
        if self.groups.len() <= group {
            self.groups.resize_with(group + 1, || Group::empty(self.needs));
        }
        let memory = self.needs.memory[model];
        let own = &mut self.groups[group];
        self.cost -= own.cost();
        own.members.push(model);
        own.loads.iter_mut().zip(self.needs.loads(model)).for_each(|(sum, load)| *sum += load);
        own.weights += memory.weights;
        own.activation = own.activation.max(memory.activation);
        own.choice = self.needs.choose(|kind| own.loads[kind], own.weights, own.activation, &mut own.least);
        self.cost += own.cost();
        self.group_of[model] = group;
        self.moves += usize::from(self.homes.is_move(model, group));
    }

    /// Takes a model into hand.
    pub(crate) fn remove(&mut self, model: usize) {
        let group = std::mem::replace(&mut self.group_of[model], NOWHERE);
        let Some(own) = self.groups.get_mut(group) else { return };
        self.cost -= own.cost();
        own.members.retain(|&member| member != model);
        own.loads.iter_mut().zip(self.needs.loads(model)).for_each(|(sum, load)| *sum -= load);
        own.weights -= self.needs.memory[model].weights;
        own.activation =
            own.members.iter().map(|&member| self.needs.memory[member].activation).max().unwrap_or(0);
        own.least.fill(1);
        own.choice = if own.members.is_empty() {
            None
        } else {
            self.needs.choose(|kind| own.loads[kind], own.weights, own.activation, &mut own.least)
        };
        self.cost += own.cost();
        self.moves -= usize::from(self.homes.is_move(model, group));
    }

    /// The best place for a model: least added cost, then at home, then the tightest; `None` where it fits nowhere.
    pub(crate) fn best_place(&self, model: usize, mut skip: impl FnMut() -> bool) -> Option<usize> {
        let home = self.homes.of[model];
        let fresh = self.fresh();
        let open = (0..self.groups.len()).filter(|&group| !self.groups[group].members.is_empty());
        let empty_home = home.filter(|&home| self.groups[home].members.is_empty());
        let mut best: Option<((u64, bool, u64), usize)> = None;
        for group in open.chain(empty_home).chain([fresh]) {
            if !self.may_be(model, group) || (group != fresh && skip()) {
                continue;
            }
            let Some(choice) = self.with(model, group) else { continue };
            let added = choice.cost.saturating_sub(self.groups.get(group).map_or(0, Group::cost));
            let rank = (added, home != Some(group), choice.slack * self.needs.units[choice.device]);
            if best.is_none_or(|(known, _)| rank < known) {
                best = Some((rank, group));
            }
        }
        best.map(|(_, group)| group)
    }

    /// Whether every model is somewhere, every sub-cluster can be run, and no more models have moved than may.
    pub(crate) fn is_complete(&self) -> bool {
        !self.group_of.contains(&NOWHERE)
            && !self.groups.iter().any(Group::is_impossible)
            && self.moves <= self.homes.most_moves
    }

    /// How good it is.
    pub(crate) fn rank(&self) -> Rank {
        let spare = |group: &Group| {
            let choice = group.choice?;
            let share = choice.slack as f64 / 1e6 * self.needs.units[choice.device] as f64;
            Some(share * share)
        };
        let gathered: f64 = self.groups.iter().filter_map(spare).sum();
        Rank { cost: self.cost, moves: self.moves, gathered: (gathered * 1e6) as u64 }
    }
}

/// What is made small: units first; of equal ones fewer moves, then what is to spare gathered in few places, where it
/// may add up to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rank {
    pub(crate) cost: u64,
    pub(crate) moves: usize,
    /// Squares of what the sub-clusters have to spare, in millionths.
    pub(crate) gathered: u64,
}

impl Ord for Rank {
    fn cmp(&self, other: &Rank) -> Ordering {
        (self.cost, self.moves, Reverse(self.gathered)).cmp(&(
            other.cost,
            other.moves,
            Reverse(other.gathered),
        ))
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Rank) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
