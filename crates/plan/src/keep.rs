//! Of equally good plans, the one that leaves most GPUs of an older layout as they are.
//!
//! An integer program like the pattern model, with a number of GPUs kept for each way that the older layout has filled
//! one: what they hold must still be wanted, and the rest must fit on as many new GPUs as the cost allows. Services
//! choose among patterns near the best prices and patterns near what they have.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use downbeat_milp::{Limits, Program, Variable};

use crate::place;
use crate::plan::GpuLayout;
use crate::prices::cover::{self, Pattern};
use crate::prices::round::{add_configurations, supply};
use crate::problem::Problem;
use crate::solver::{Allocation, Run};
use crate::solvers::exact;

/// Patterns per service to choose from, beside those near what it has.
const PATTERNS: usize = 12;
/// More choices than this in all are not tried: keeping is worth seconds, not minutes.
const MOST_CHOICES: usize = 40_000;

/// An allocation that costs no more, and the numbers of the old GPUs to keep in it.
pub(crate) struct Kept {
    pub(crate) allocation: Allocation,
    pub(crate) gpus: BTreeSet<u32>,
}

/// A way that GPUs of the older layout are filled: (service, kind of slice) and how many.
type Content = BTreeMap<(usize, usize), u32>;

/// Looks for an allocation as cheap as `known` that keeps more; `None` where none is found, or there are too many
/// choices.
pub(crate) fn keeping(
    problem: &Problem,
    run: &Run<'_>,
    known: &Allocation,
    from: &[GpuLayout],
) -> Option<Kept> {
    let families = families(problem, from);
    let patterns = patterns(problem, run, known, &families)?;
    if patterns.iter().map(Vec::len).sum::<usize>() > MOST_CHOICES {
        return None;
    }
    let mut program = Program::default();
    let gpus = add_configurations(problem, &mut program, |_| 0.0, false);
    let mut keep: Vec<(&Way, Variable)> = Vec::new();
    for family in &families {
        let most = family.gpus.len() as f64;
        let own: Vec<(&Way, Variable)> =
            family.ways.iter().map(|way| (way, program.integer(-1.0, 0.0, most))).collect();
        program.at_most(&own.iter().map(|(_, variable)| (*variable, 1.0)).collect::<Vec<_>>(), most);
        keep.extend(own);
    }
    let mut spent: Vec<(Variable, f64)> =
        gpus.iter().enumerate().map(|(index, &variable)| (variable, problem.cost(index))).collect();
    spent.extend(keep.iter().map(|(way, variable)| (*variable, problem.pools[way.pool].cost)));
    program.at_most(&spent, known.cost(problem) + 1e-7);
    limit_pools(problem, &mut program, &gpus, &keep);
    let chosen: Vec<Vec<Variable>> = patterns
        .iter()
        .map(|patterns| patterns.iter().map(|_| program.integer(0.0, 0.0, 1.0)).collect())
        .collect();
    let mut supplies: Vec<Vec<(Variable, f64)>> =
        (0..problem.slices.len()).map(|slice| supply(problem, &gpus, slice)).collect();
    for (service, (variables, patterns)) in chosen.iter().zip(&patterns).enumerate() {
        let one: Vec<(Variable, f64)> = variables.iter().map(|&variable| (variable, 1.0)).collect();
        program.equal(&one, 1.0);
        for (slice, supplies) in supplies.iter_mut().enumerate() {
            let used = variables.iter().zip(patterns).filter(|(_, pattern)| pattern.counts[slice] > 0);
            let used: Vec<(Variable, f64)> =
                used.map(|(&variable, pattern)| (variable, f64::from(pattern.counts[slice]))).collect();
            let held = keep.iter().filter_map(|(way, variable)| {
                Some((*variable, f64::from(*way.content.get(&(service, slice))?)))
            });
            let held: Vec<(Variable, f64)> = held.collect();
            supplies.extend(used.iter().map(|(variable, count)| (*variable, -count)));
            if !held.is_empty() {
                let mut wanted = used;
                wanted.extend(held.iter().map(|(variable, count)| (*variable, -count)));
                program.at_least(&wanted, 0.0);
                for (variable, count) in held {
                    match supplies.iter_mut().find(|(known, _)| *known == variable) {
                        Some((_, sum)) => *sum += count,
                        None => supplies.push((variable, count)),
                    }
                }
            }
        }
    }
    for terms in &supplies {
        program.at_least(terms, 0.0);
    }
    let answer =
        run.backend.solve(&program, &Limits { stop: run.stop, start: None, absolute_gap: 0.999 }).ok()?;
    let values = answer.values?;
    let whole = |variable: &Variable| values[variable.0].round() as u32;
    let taken = |(variables, patterns): (&Vec<Variable>, &Vec<Pattern>)| {
        let index = variables.iter().position(|variable| whole(variable) == 1).unwrap_or(0);
        patterns[index].counts.clone()
    };
    let mut kept = Kept {
        allocation: Allocation {
            instances: chosen.iter().zip(&patterns).map(taken).collect(),
            gpus: gpus.iter().map(whole).collect(),
        },
        gpus: BTreeSet::new(),
    };
    let mut counts = keep.iter().map(|(_, variable)| whole(variable));
    for family in &families {
        let mut gpus = family.gpus.iter();
        for (way, count) in family.ways.iter().zip(&mut counts) {
            kept.allocation.gpus[way.configuration] += count;
            kept.gpus.extend(gpus.by_ref().take(count as usize));
        }
    }
    Some(kept)
}

/// Old GPUs that hold the same.
struct Family {
    gpus: Vec<u32>,
    /// As what they can be kept: one for each pool of their type where they may be cut so. An older layout does not say
    /// which they are of.
    ways: Vec<Way>,
}

/// An old GPU as one of a pool.
#[derive(PartialEq)]
struct Way {
    pool: usize,
    /// A configuration that has room for it.
    configuration: usize,
    content: Content,
}

fn families(problem: &Problem, from: &[GpuLayout]) -> Vec<Family> {
    let mut families: Vec<Family> = Vec::new();
    for gpu in from {
        let ways: Vec<Way> = (0..problem.pools.len()).filter_map(|pool| way(problem, gpu, pool)).collect();
        if ways.is_empty() {
            continue;
        }
        match families.iter_mut().find(|family| family.ways == ways) {
            Some(family) => family.gpus.push(gpu.gpu),
            None => families.push(Family { gpus: vec![gpu.gpu], ways }),
        }
    }
    families
}

/// What a GPU holds as one of this pool, in the problem's terms; `None` where it is none, or holds what the problem
/// does not know.
fn way(problem: &Problem, gpu: &GpuLayout, pool: usize) -> Option<Way> {
    let mut content = Content::new();
    let mut slices = vec![0; problem.slices.len()];
    for (slice, _, service) in place::content(problem, gpu, pool)? {
        *content.entry((service, slice)).or_default() += 1;
        slices[slice] += 1;
    }
    let holds = |index: &usize| {
        let configuration = &problem.configurations[*index];
        configuration.pool == pool
            && configuration.slices.iter().zip(&slices).all(|(has, needs)| has >= needs)
    };
    let configuration = (0..problem.configurations.len()).find(holds)?;
    Some(Way { pool, configuration, content })
}

fn limit_pools(problem: &Problem, program: &mut Program, gpus: &[Variable], keep: &[(&Way, Variable)]) {
    for (pool, found) in problem.pools.iter().enumerate() {
        let Some(count) = found.count else { continue };
        let new =
            gpus.iter().zip(&problem.configurations).filter(|(_, configuration)| configuration.pool == pool);
        let mut terms: Vec<(Variable, f64)> = new.map(|(&variable, _)| (variable, 1.0)).collect();
        terms.extend(keep.iter().filter(|(way, _)| way.pool == pool).map(|(_, variable)| (*variable, 1.0)));
        program.at_most(&terms, f64::from(count));
    }
}

/// What each service may have: what it has in the plan known, patterns near the best prices, and patterns near what it
/// had.
fn patterns(
    problem: &Problem,
    run: &Run<'_>,
    known: &Allocation,
    families: &[Family],
) -> Option<Vec<Vec<Pattern>>> {
    let (prices, mut patterns) = exact::near_best_prices(problem, run, PATTERNS)?;
    for (service, patterns) in patterns.iter_mut().enumerate() {
        let had: Vec<u32> = (0..problem.slices.len())
            .map(|slice| {
                families
                    .iter()
                    .map(|family| {
                        // As in the first pool: in another it is the same on slices of the same name.
                        let held = family.ways[0].content.get(&(service, slice)).copied();
                        held.unwrap_or(0) * family.gpus.len() as u32
                    })
                    .sum()
            })
            .collect();
        let mut more = near(problem, service, &had, &prices);
        more.push(known.instances[service].clone());
        for counts in more {
            if problem.is_served(service, &counts) && patterns.iter().all(|pattern| pattern.counts != counts)
            {
                patterns.push(Pattern { counts, worth: 0.0 });
            }
        }
    }
    Some(patterns)
}

/// What a service had, with the cheapest slices added that it lacks, or without slices that it no longer needs: any one
/// kind first.
fn near(problem: &Problem, service: usize, had: &[u32], prices: &[f64]) -> Vec<Vec<u32>> {
    if !problem.is_served(service, had) {
        let mut rest = problem.clone();
        let left = problem.services[service].planned_rps() - problem.capacity(service, had);
        rest.services[service].rate_rps = left.max(1e-9);
        rest.services[service].headroom = 1.0;
        let replicas = problem.services[service].min_replicas.saturating_sub(problem.replicas(service, had));
        rest.services[service].min_replicas = replicas;
        let added = cover::all_within(&rest, service, prices, f64::INFINITY, PATTERNS).0;
        return added
            .iter()
            .map(|pattern| pattern.counts.iter().zip(had).map(|(a, b)| a + b).collect())
            .collect();
    }
    let mut found = vec![had.to_vec()];
    for first in 0..had.len() {
        let mut counts = had.to_vec();
        for slice in (0..had.len()).map(|offset| (first + offset) % had.len()) {
            while counts[slice] > 0 {
                counts[slice] -= 1;
                if !problem.is_served(service, &counts) {
                    counts[slice] += 1;
                    break;
                }
            }
            found.push(counts.clone());
        }
    }
    found
}
