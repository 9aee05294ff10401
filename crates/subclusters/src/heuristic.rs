//! The heuristic: best fit, then ruin and recreate.
//!
//! Models are put where they add least, the largest first. Then, again and again, some sub-clusters are taken apart,
//! with their models put back in another order. Of equal divisions the one whose spare capacity lies in fewer places
//! counts as better, because there it may add up to a device that is not needed. What is worse is gone on from now and
//! then, whatever it is. When that finds nothing better any more among tens or hundreds of models, the search goes on
//! in cycles: what is a little worse is often gone on from at first, and ever more seldom as a cycle cools down
//! (simulated annealing).

#[cfg(test)]
mod tests;

use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::division::{Division, NOWHERE, Rank};
use crate::need::Needs;
use crate::previous::Homes;

/// Rounds without gain after which the search anneals or ends: so many for each model...
const ROUNDS_PER_MODEL: usize = 1_000;

/// ...but no more than so many divided by the number of models, because rounds of many models take longer; and no fewer
/// than these.
const ROUNDS: usize = 2_000_000;
const LEAST_ROUNDS: usize = 3_000;

/// Rounds of annealing without gain after which the search ends: so many for each pair of models, and no more than so
/// many.
const ROUNDS_PER_PAIR: usize = 200;
const MOST_ROUNDS: usize = 200_000;

/// More models than these are not annealed: there it takes minutes.
const MOST_ANNEALED: usize = 100;

/// The most sub-clusters that are taken apart at once.
const MOST_GROUPS: usize = 4;

/// The most models that are taken into hand at once.
const MOST_IN_HAND: usize = 150;

/// How often a place is passed over at random when models are put back; one of these each time.
const BLINKS: [f64; 4] = [0.0, 0.04, 0.15, 0.4];

/// How often all that was taken into hand is put into one sub-cluster. Together models may need fewer devices than
/// apart although each alone is better off elsewhere, which best fit does not see.
const GATHERING: f64 = 0.15;

/// How often a division that gathers less of what is to spare is gone on from...
const DRIFT: f64 = 0.1;

/// ...how often one that costs a device more...
const LEAP: f64 = 0.01;

/// ...and after how many rounds without gain the search goes back to the best one.
const RETURN: usize = 300;

/// Rounds of annealing from hot to cold.
const CYCLE: usize = 1_000;

/// How many devices worse a division may well be at the beginning of a cycle: one of these in turn...
const HEATS: [f64; 3] = [0.1, 0.05, 0.03];

/// ...and which part of that remains at its end.
const COOLED: f64 = 0.02;

/// What a move counts, in devices, when divisions are compared on the way.
const MOVE: f64 = 0.05;

/// When a search is over.
pub(crate) struct Search<'a> {
    /// Told to stop.
    pub(crate) stop: &'a dyn Fn() -> bool,
    /// No division costs less: one that costs this is as good as any.
    pub(crate) enough: u64,
    pub(crate) seed: u64,
    /// Told of better divisions: their cost.
    pub(crate) on_better: &'a dyn Fn(u64),
}

/// The best division found. `None` where even the first one cannot be completed within the moves that are allowed.
pub(crate) fn search<'a>(needs: &'a Needs, homes: &'a Homes, search: &Search<'_>) -> Option<Division<'a>> {
    let mut current = first(needs, homes)?;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(search.seed);
    let mut best = current.clone();
    (search.on_better)(best.cost);
    let models = needs.models().max(1);
    let patience = (ROUNDS_PER_MODEL * models).min(ROUNDS / models).max(LEAST_ROUNDS);
    let annealing = (ROUNDS_PER_PAIR * models * models).min(MOST_ROUNDS);
    let annealing = if models <= MOST_ANNEALED { annealing } else { 0 };
    let device = needs.units.iter().copied().max().unwrap_or(1);
    let mut idle = 0;
    // A division with as few units and no moves cannot be bettered.
    while idle < patience + annealing && !(search.stop)() && (best.cost > search.enough || best.moves > 0) {
        idle += 1;
        let before = current.rank();
        let taken = ruin(&mut current, &mut random);
        let put_back = if random.random_bool(GATHERING) {
            gather(&mut current, &taken, &mut random)
        } else {
            recreate(&mut current, needs, &taken, &mut random)
        };
        let after = current.rank();
        let goes_on = match idle.checked_sub(patience) {
            None => {
                after <= before
                    || (after.cost <= best.cost && random.random_bool(DRIFT))
                    || (after.cost <= best.cost + device && random.random_bool(LEAP))
            }
            Some(round) => {
                let worse = (height(device, after) - height(device, before)) / heat(round);
                worse <= 0.0 || random.random_bool((-worse).exp())
            }
        };
        if !put_back || !goes_on {
            restore(&mut current, &taken);
        } else if after < best.rank() {
            if after.cost < best.cost {
                (search.on_better)(after.cost);
                idle = 0;
            }
            best.clone_from(&current);
        }
        if idle < patience && idle % RETURN == RETURN - 1 {
            current.clone_from(&best);
        }
    }
    Some(best)
}

/// By how many devices a division may well be worse in this round.
fn heat(round: usize) -> f64 {
    let (cycle, within) = (round / CYCLE, round % CYCLE);
    HEATS[cycle % HEATS.len()] * COOLED.powf(within as f64 / CYCLE as f64)
}

/// A rank in one number, in devices: a device that is wholly to spare is as good as one less.
fn height(device: u64, rank: Rank) -> f64 {
    let device = device as f64;
    rank.cost as f64 / device + MOVE * rank.moves as f64 - rank.gathered as f64 / 1e6 / (device * device)
}

/// Everything at home that can be, the rest where it adds least.
fn first<'a>(needs: &'a Needs, homes: &'a Homes) -> Option<Division<'a>> {
    let mut division = Division::new(needs, homes);
    for (model, home) in homes.of.iter().enumerate() {
        if let Some(home) = home {
            division.insert(model, *home);
        }
    }
    let mut in_hand: Vec<usize> = (0..homes.of.len()).filter(|&model| homes.of[model].is_none()).collect();
    for group in 0..division.groups.len() {
        in_hand.extend(evict(&mut division, needs, group));
    }
    by_size(needs, &mut in_hand);
    for model in in_hand {
        let place = division.best_place(model, || false)?;
        division.insert(model, place);
    }
    division.is_complete().then_some(division)
}

/// Takes models out of a sub-cluster until some devices will do for it: as few as possible.
fn evict(division: &mut Division<'_>, needs: &Needs, group: usize) -> Vec<usize> {
    let mut evicted = Vec::new();
    while division.groups[group].is_impossible() {
        let members = division.groups[group].members.clone();
        let heals = |division: &mut Division<'_>, model: usize| {
            division.remove(model);
            let healed = !division.groups[group].is_impossible();
            division.insert(model, group);
            healed
        };
        let heaviest = members.iter().copied().max_by_key(|&model| {
            let memory = needs.memory[model];
            (memory.weights, memory.activation, model)
        });
        let found = members.iter().copied().find(|&model| heals(division, model)).or(heaviest);
        let Some(model) = found else { break };
        division.remove(model);
        evicted.push(model);
    }
    evicted
}

/// The largest first: by what they take of the memory or of a device, whichever is more.
fn by_size(needs: &Needs, models: &mut [usize]) {
    let room = needs.room_kib.iter().copied().max().unwrap_or(1).max(1) as f64;
    let size = |model: usize| {
        let memory = needs.memory[model].weights as f64 / room;
        let least = needs.loads(model).iter().copied().min().unwrap_or(0) as f64 / 1e6;
        memory.max(least)
    };
    models.sort_by(|&a, &b| size(b).total_cmp(&size(a)).then(a.cmp(&b)));
}

/// Takes models into hand: whole sub-clusters, or some of several. Returns them with where they were.
fn ruin(division: &mut Division<'_>, random: &mut Xoshiro256PlusPlus) -> Vec<(usize, usize)> {
    let open: Vec<usize> =
        (0..division.groups.len()).filter(|&group| !division.groups[group].members.is_empty()).collect();
    let mut taken: Vec<(usize, usize)> = Vec::new();
    let mut take = |models: &[usize], group: usize| {
        let room = MOST_IN_HAND - taken.len().min(MOST_IN_HAND);
        taken.extend(models.iter().take(room).map(|&model| (model, group)));
    };
    let several = random.random_range(1..=MOST_GROUPS.min(open.len()));
    if random.random_bool(0.5) {
        for &group in open.sample(random, several) {
            let mut members = division.groups[group].members.clone();
            members.shuffle(random);
            take(&members, group);
        }
    } else {
        for &group in open.sample(random, (several * 2).min(open.len())) {
            let members = &division.groups[group].members;
            let some = random.random_range(1..=members.len().min(6));
            let models: Vec<usize> = members.sample(random, some).copied().collect();
            take(&models, group);
        }
    }
    for &(model, _) in &taken {
        division.remove(model);
    }
    taken
}

/// Puts models back where they add least, in an order that is random to some extent. False where one fits nowhere.
fn recreate(
    division: &mut Division<'_>,
    needs: &Needs,
    taken: &[(usize, usize)],
    random: &mut Xoshiro256PlusPlus,
) -> bool {
    let mut models: Vec<usize> = taken.iter().map(|&(model, _)| model).collect();
    if random.random_bool(0.3) {
        models.shuffle(random);
    } else {
        by_size(needs, &mut models);
        // Neighbours change places, so that the order is never quite the same.
        for index in 1..models.len() {
            if random.random_bool(0.2) {
                models.swap(index - 1, index);
            }
        }
    }
    let blink = BLINKS[random.random_range(0..BLINKS.len())];
    models.iter().all(|&model| match division.best_place(model, || random.random_bool(blink)) {
        Some(place) => {
            division.insert(model, place);
            true
        }
        None => false,
    })
}

/// Puts models into one sub-cluster, whichever. False where that cannot be.
fn gather(division: &mut Division<'_>, taken: &[(usize, usize)], random: &mut Xoshiro256PlusPlus) -> bool {
    let group = random.random_range(0..=division.groups.len());
    for &(model, _) in taken {
        if !division.may_be(model, group) || division.with(model, group).is_none() {
            return false;
        }
        division.insert(model, group);
    }
    true
}

/// Puts models back where they were.
fn restore(division: &mut Division<'_>, taken: &[(usize, usize)]) {
    for &(model, _) in taken {
        if division.group_of[model] != NOWHERE {
            division.remove(model);
        }
    }
    for &(model, group) in taken {
        division.insert(model, group);
    }
}
