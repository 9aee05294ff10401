//! Rounding the linear relaxation, for a constant number of configurations.
//!
//! An extreme point of the relaxation has at most as many fractional x_ij as rows they lie in, in every connected part:
//! seen as edges between jobs and types they form a pseudoforest. So each fractional edge can be charged to one of its
//! ends such that no job and no type is charged twice. Values are first capped at the job's demand, which changes no
//! whole solution.
//!
//! A job that is charged no edge keeps its blocks, rounded up. One that is charged an edge doubles: twice its blocks,
//! rounded up but for the charged edge, rounded down. That serves it: if the charged edge has x >= 1/2, then
//! floor(2x) >= x; if less, it serves less than half of the demand, since values are capped, and the doubled rest serves
//! the whole. Each type is rounded up on at most one edge, so that it needs at most 2 b_i + 1 blocks where the relaxation
//! has b_i: ceil(2y) + 1 of each configuration used has them, and costs at most 2 LP + 2c.
//!
//! Where the optimum is small, the y themselves are tried, from the fewest machines on, until the relaxation of the
//! rest is feasible: b_i is then whole, 2 b_i + 1 <= 3 b_i, and three times as many machines do. Together that is the
//! (3 + eps).

use downbeat_milp::{Program, Variable};

use super::applies;
use crate::prices::round::supply;
use crate::problem::{Problem, ROUNDING};
use crate::solver::{Allocation, Bound, Run, Solved, Solver, Unsolved};
use crate::solvers::{raised, tidy};

/// The approximation by rounding.
///
/// Guarantee: at most 2 LP + 2c machines with c configurations in use, where LP is the linear relaxation; and at most 3
/// OPT where the few machines of a small optimum could be tried (`MOST_TRIES`).
pub struct CmsLpRound;

/// Combinations of configurations that are tried where the optimum is small.
pub(super) const MOST_TRIES: usize = 400;

impl Solver for CmsLpRound {
    fn name(&self) -> &'static str {
        "cms-lp-round"
    }

    fn about(&self) -> &'static str {
        "CMS: round an extreme point of the linear relaxation; at most 2 LP + 2c machines, 3 OPT where OPT is small"
    }

    fn solve(&self, problem: &Problem, run: &Run<'_>) -> Result<Solved, Unsolved> {
        applies(problem, self.name())?;
        let relaxation = Relaxation::new(problem, None);
        let (instances, gpus, cost) = relaxation.solve(run)?.ok_or_else(|| Unsolved::NotApplicable {
            solver: self.name(),
            why: "the relaxation has no solution".to_owned(),
        })?;
        let bound = Bound { cost: raised(problem, cost * (1.0 - 1e-9)), name: "linear relaxation" };
        let instances = round(problem, &instances);
        let gpus = gpus
            .iter()
            .map(|&gpus| if gpus > 1e-9 { (2.0 * gpus - 1e-9).ceil() as u32 + 1 } else { 0 })
            .collect();
        let mut best = trimmed(problem, Allocation { instances, gpus });
        if let Some(tried) = few_machines(problem, run, bound.cost, best.gpu_count())?
            && tried.gpu_count() < best.gpu_count()
        {
            best = tried;
        }
        Ok(Solved { allocation: best, bound, notes: Vec::new() })
    }
}

/// Tries the machines themselves, fewest first: the first for which the rest is feasible in parts, rounded, on three
/// times as many.
fn few_machines(
    problem: &Problem,
    run: &Run<'_>,
    least: f64,
    enough: u32,
) -> Result<Option<Allocation>, Unsolved> {
    let mut tries = 0;
    let first = least.ceil().max(1.0) as u32;
    // Three times as many as are already enough need not be tried.
    for machines in first..=enough / 2 {
        let mut sets = Vec::new();
        multisets(
            problem.configurations.len(),
            machines,
            &mut vec![0; problem.configurations.len()],
            0,
            MOST_TRIES - tries,
            &mut sets,
        );
        for gpus in sets {
            tries += 1;
            if tries >= MOST_TRIES || (run.stop)() {
                return Ok(None);
            }
            if let Some((instances, _, _)) = Relaxation::new(problem, Some(&gpus)).solve(run)? {
                let instances = round(problem, &instances);
                let gpus = gpus.iter().map(|gpus| gpus * 3).collect();
                return Ok(Some(trimmed(problem, Allocation { instances, gpus })));
            }
        }
    }
    Ok(None)
}

/// All ways to choose `machines` of the configurations, up to a number of ways.
fn multisets(
    kinds: usize,
    machines: u32,
    counts: &mut Vec<u32>,
    from: usize,
    most: usize,
    found: &mut Vec<Vec<u32>>,
) {
    if found.len() > most {
        return;
    }
    if machines == 0 {
        found.push(counts.clone());
        return;
    }
    for index in from..kinds {
        counts[index] += 1;
        multisets(kinds, machines - 1, counts, index, most, found);
        counts[index] -= 1;
    }
}

/// What a block is worth to a job, capped at its demand and as a share of it.
fn worth(problem: &Problem, job: usize, slice: usize) -> Option<f64> {
    let curve = problem.curves[job][slice].as_ref()?;
    Some((curve.best_rate() / problem.services[job].planned_rps()).min(1.0))
}

/// The compact model in parts, with capped values; the machines free or given.
struct Relaxation<'a> {
    problem: &'a Problem,
    program: Program,
    gpus: Vec<Variable>,
    instances: Vec<Vec<Option<Variable>>>,
}

impl<'a> Relaxation<'a> {
    fn new(problem: &'a Problem, given: Option<&[u32]>) -> Relaxation<'a> {
        let mut program = Program::default();
        let gpus: Vec<Variable> = (0..problem.configurations.len())
            .map(|index| match given {
                None => program.continuous(1.0, 0.0, f64::INFINITY),
                Some(given) => program.continuous(1.0, given[index].into(), given[index].into()),
            })
            .collect();
        let mut instances = Vec::new();
        for job in 0..problem.services.len() {
            let variables: Vec<Option<Variable>> = (0..problem.slices.len())
                .map(|slice| worth(problem, job, slice).map(|_| program.continuous(0.0, 0.0, f64::INFINITY)))
                .collect();
            let served: Vec<(Variable, f64)> = (variables.iter().enumerate())
                .filter_map(|(slice, variable)| Some(((*variable)?, worth(problem, job, slice)?)))
                .collect();
            program.at_least(&served, 1.0);
            instances.push(variables);
        }
        for slice in 0..problem.slices.len() {
            let mut terms = supply(problem, &gpus, slice);
            terms.extend(instances.iter().filter_map(|variables| Some((variables[slice]?, -1.0))));
            program.at_least(&terms, 0.0);
        }
        Relaxation { problem, program, gpus, instances }
    }

    /// x, y and the cost; `None` where there is no solution.
    #[allow(clippy::type_complexity, reason = "the three parts of a solution, used at once")]
    fn solve(&self, run: &Run<'_>) -> Result<Option<(Vec<Vec<f64>>, Vec<f64>, f64)>, Unsolved> {
        let answer = run.backend.solve(&self.program, &downbeat_milp::Limits::none())?;
        let Some(values) = answer.values else { return Ok(None) };
        let value =
            |variable: &Option<Variable>| variable.map_or(0.0, |variable| values[variable.0].max(0.0));
        let instances =
            self.instances.iter().map(|variables| variables.iter().map(value).collect()).collect();
        debug_assert_eq!(self.instances.len(), self.problem.services.len());
        Ok(Some((
            instances,
            self.gpus.iter().map(|variable| values[variable.0].max(0.0)).collect(),
            answer.bound,
        )))
    }
}

/// Whole blocks for each job: kept or doubled.
fn round(problem: &Problem, parts: &[Vec<f64>]) -> Vec<Vec<u32>> {
    let is_whole = |part: f64| (part - part.round()).abs() < 1e-7;
    let mut edges = Vec::new();
    for (job, parts) in parts.iter().enumerate() {
        edges.extend((0..parts.len()).filter(|&slice| !is_whole(parts[slice])).map(|slice| (job, slice)));
    }
    let charged = charge(&edges, problem.services.len(), problem.slices.len());
    (parts.iter().enumerate())
        .map(|(job, parts)| {
            let lost = edges
                .iter()
                .zip(&charged)
                .find(|(edge, to_job)| edge.0 == job && **to_job)
                .map(|(edge, _)| edge.1);
            let up = |part: f64| (part - 1e-7).ceil().max(0.0) as u32;
            let down = |part: f64| (part + 1e-7).floor().max(0.0) as u32;
            let counts = |factor: f64| -> Vec<u32> {
                (0..parts.len())
                    .map(|slice| {
                        if lost == Some(slice) {
                            down(factor * parts[slice])
                        } else {
                            up(factor * parts[slice])
                        }
                    })
                    .collect()
            };
            let served = |counts: &[u32]| {
                let sum: f64 = (0..counts.len())
                    .map(|slice| worth(problem, job, slice).unwrap_or(0.0) * f64::from(counts[slice]))
                    .sum();
                sum >= 1.0 - ROUNDING
            };
            let kept = counts(1.0);
            if served(&kept) {
                return kept;
            }
            let doubled = counts(2.0);
            if served(&doubled) {
                return doubled;
            }
            // Only where the solver's point is not extreme, or off by its tolerance.
            parts.iter().map(|&part| up(part + 1e-6)).collect()
        })
        .collect()
}

/// For each edge between a job and a type, whether it is charged to the job and not the type; none is charged twice
/// where the edges form a pseudoforest. By augmenting paths.
fn charge(edges: &[(usize, usize)], jobs: usize, types: usize) -> Vec<bool> {
    fn place(
        edge: usize,
        edges: &[(usize, usize)],
        jobs: usize,
        holder: &mut [Option<usize>],
        seen: &mut [bool],
    ) -> bool {
        // Types first: an edge charged to a type costs a block at most.
        for node in [jobs + edges[edge].1, edges[edge].0] {
            if std::mem::replace(&mut seen[node], true) {
                continue;
            }
            if holder[node].is_none_or(|other| place(other, edges, jobs, holder, seen)) {
                holder[node] = Some(edge);
                return true;
            }
        }
        false
    }
    let mut holder = vec![None; jobs + types];
    for edge in 0..edges.len() {
        place(edge, edges, jobs, &mut holder, &mut vec![false; jobs + types]);
    }
    (0..edges.len()).map(|edge| holder[..jobs].contains(&Some(edge))).collect()
}

/// Without blocks and machines that are not needed.
fn trimmed(problem: &Problem, mut allocation: Allocation) -> Allocation {
    tidy(problem, &mut allocation);
    let used = allocation.used(problem.slices.len());
    let there = |gpus: &[u32], slice: usize| -> u32 {
        problem
            .configurations
            .iter()
            .zip(gpus)
            .map(|(configuration, gpus)| configuration.slices[slice] * gpus)
            .sum()
    };
    for index in 0..allocation.gpus.len() {
        while allocation.gpus[index] > 0 {
            allocation.gpus[index] -= 1;
            if (0..used.len()).any(|slice| there(&allocation.gpus, slice) < used[slice]) {
                allocation.gpus[index] += 1;
                break;
            }
        }
    }
    allocation
}
