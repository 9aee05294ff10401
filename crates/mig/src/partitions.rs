//! All legal states of a GPU, enumerated from the rule of placement.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use crate::{GpuModel, Placed};

/// How often each profile occurs, by its index in [`GpuModel::profiles`].
pub type Multiset = Vec<u8>;

/// The ways to cut a GPU into slices of some of its profiles.
#[derive(Clone, Debug)]
pub struct Partitions<'a> {
    gpu: &'a GpuModel,
    /// Every way to place one slice of the profiles allowed, by start.
    places: Vec<Placed>,
    states: Vec<Vec<Placed>>,
}

impl<'a> Partitions<'a> {
    /// All legal states of `gpu` with slices of these profiles only.
    pub fn of(gpu: &'a GpuModel, profiles: &[usize]) -> Partitions<'a> {
        let mut places: Vec<Placed> = profiles
            .iter()
            .filter_map(|&profile| gpu.profiles.get(profile).map(|found| (profile, found)))
            .flat_map(|(profile, found)| found.starts.iter().map(move |&start| Placed { start, profile }))
            .collect();
        places.sort();
        places.dedup();
        let mut states = Vec::new();
        extend(gpu, &places, &mut Vec::new(), &mut states);
        Partitions { gpu, places, states }
    }

    /// Every legal set of placed slices, the empty one included.
    pub fn states(&self) -> &[Vec<Placed>] {
        &self.states
    }

    /// The legal sets that no further slice fits into.
    pub fn maximal_states(&self) -> Vec<&[Placed]> {
        let grows = |state: &[Placed]| {
            self.places.iter().any(|&place| {
                let mut larger = state.to_vec();
                larger.push(place);
                self.gpu.allows(&larger)
            })
        };
        self.states.iter().map(Vec::as_slice).filter(|state| !grows(state)).collect()
    }

    /// Every legal multiset of slices, the empty one included; in order.
    pub fn multisets(&self) -> Vec<Multiset> {
        let all: BTreeSet<Multiset> = self.states.iter().map(|state| self.count(state)).collect();
        all.into_iter().collect()
    }

    /// The legal multisets that are part of no other, in order. Whatever slices a GPU is wanted to have, one of these
    /// has them.
    pub fn maximal_multisets(&self) -> Vec<Multiset> {
        let all = self.multisets();
        let within = |a: &Multiset, b: &Multiset| a != b && a.iter().zip(b).all(|(a, b)| a <= b);
        all.iter().filter(|a| !all.iter().any(|b| within(a, b))).cloned().collect()
    }

    /// A legal state with exactly these slices; of several the one whose free units lie furthest to the end, so that
    /// room stays together.
    pub fn place(&self, multiset: &[u8]) -> Option<&[Placed]> {
        let fitting = self.states.iter().filter(|state| self.count(state) == multiset);
        let key = |state: &Vec<Placed>| state.iter().map(|slice| slice.start).collect::<Vec<_>>();
        fitting.min_by_key(|state| key(state)).map(Vec::as_slice)
    }

    fn count(&self, state: &[Placed]) -> Multiset {
        let mut counts = vec![0; self.gpu.profiles.len()];
        for slice in state {
            counts[slice.profile] += 1;
        }
        counts
    }
}

/// Adds `state` and every legal extension of it by the remaining `places`, each once: places are taken in order.
fn extend(gpu: &GpuModel, places: &[Placed], state: &mut Vec<Placed>, states: &mut Vec<Vec<Placed>>) {
    states.push(state.clone());
    for (index, &place) in places.iter().enumerate() {
        state.push(place);
        if gpu.allows(state) {
            extend(gpu, &places[index + 1..], state, states);
        }
        state.pop();
    }
}
