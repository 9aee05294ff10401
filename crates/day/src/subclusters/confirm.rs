//! How many devices each sub-cluster needs, by simulation.

use downbeat_sim::Until;
use downbeat_subclusters::{Problem, Subcluster};
use rayon::prelude::*;

use super::trial::{self, Length};

/// A run that sizes a sub-cluster.
const SIZING: Length = Length { rarest: trial::RAREST, most: 200_000.0 };

/// The largest share of bad requests of any model; less than the 1 % that is promised, because what just passes with
/// one seed fails with the next.
const BAD_RATE_MAX: f64 = 0.007;

/// The fewest devices of each sub-cluster that keep every model in its SLO, near the estimate: upward from it, or
/// downward. `on_done` is told of each sub-cluster that is done, from any thread.
pub fn confirm(
    problem: &Problem,
    subclusters: &[Subcluster],
    seed: u64,
    on_done: &(dyn Fn() + Sync),
) -> Result<Vec<u32>, String> {
    let size = |subcluster: &Subcluster| {
        let size = size(problem, subcluster, seed);
        on_done();
        size
    };
    subclusters.par_iter().map(size).collect()
}

fn size(problem: &Problem, subcluster: &Subcluster, seed: u64) -> Result<u32, String> {
    let passes = |count: u32| -> Result<bool, String> {
        let run = trial::run(problem, subcluster, count, SIZING, seed, Until::Failure)?;
        Ok(trial::keeps(&run.models, BAD_RATE_MAX))
    };
    let mut count = subcluster.count;
    if passes(count)? {
        while count > 1 && passes(count - 1)? {
            count -= 1;
        }
        return Ok(count);
    }
    // Steps grow, so that an estimate that is far off takes few runs; then back to the smallest that passes.
    let mut failed = count;
    let mut step = 1;
    loop {
        count = failed + step;
        if passes(count)? {
            break;
        }
        failed = count;
        step *= 2;
        if count > subcluster.count * 4 + 16 {
            let name = &subcluster.name;
            return Err(format!("sub-cluster {name:?} misses its SLOs even on {count} devices"));
        }
    }
    while count > failed + 1 {
        let middle = failed + (count - failed) / 2;
        if passes(middle)? {
            count = middle;
        } else {
            failed = middle;
        }
    }
    Ok(count)
}
