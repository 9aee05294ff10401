//! Why there is no division, and what would help.

use downbeat_milp::MilpError;

use crate::heuristic::{self, Search};
use crate::need::Needs;
use crate::previous::Homes;
use crate::problem::Problem;
use crate::solve::{Epoch, Solution};

/// Why there are no sub-clusters.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unsolved {
    /// A model fits into no device's memory.
    #[error(
        "model {model:?} takes {takes_mib:.0} MiB (weights and activation), and the largest device has {room_mib:.0}"
    )]
    TooLarge {
        /// The model.
        model: String,
        /// What it takes.
        takes_mib: f64,
        /// What there is.
        room_mib: f64,
    },
    /// A model misses its SLO even alone.
    #[error(
        "model {model:?} cannot meet its SLO of {slo_ms} ms on any device that it fits: a request alone takes {alone_ms:.3} ms"
    )]
    TooSlow {
        /// The model.
        model: String,
        /// Its SLO.
        slo_ms: f64,
        /// What a batch of one takes, at the fastest.
        alone_ms: f64,
    },
    /// More models must move than may.
    #[error("at least one sub-cluster can no longer be run as it is, and {max_moves} moves are not enough to mend that; {} would do", would_do.map_or_else(|| "no number of moves".to_owned(), |n| format!("--max-moves {n}")))]
    TooFewMoves {
        /// How many may move.
        max_moves: usize,
        /// With how many it was done.
        would_do: Option<usize>,
    },
    /// There are not enough GPUs.
    #[error("{needed} GPUs are needed, and there are {available}{}", remedy(*with_moves, *bound))]
    TooFewGpus {
        /// How many the best division found needs.
        needed: u64,
        /// How many there are.
        available: u32,
        /// No division needs fewer.
        bound: u64,
        /// With how many moves the GPUs that there are would do, where the limit of moves is the reason.
        with_moves: Option<usize>,
    },
    /// A program could not be solved.
    #[error(transparent)]
    Backend(MilpError),
    /// The checker refused what was found: a mistake in Downbeat.
    #[error("what was found does not pass the check, which is a mistake in Downbeat: {0}")]
    Broken(String),
}

fn remedy(with_moves: Option<usize>, bound: u64) -> String {
    match with_moves {
        Some(moves) => format!("; with --max-moves {moves} they would do"),
        None => format!(" (no division needs fewer than {bound})"),
    }
}

/// Every model must be able to run alone.
pub(crate) fn check_each(problem: &Problem, needs: &Needs) -> Result<(), Unsolved> {
    for (index, model) in problem.models.iter().enumerate() {
        if needs.of_set(&[index]).is_some() {
            continue;
        }
        let measured =
            || problem.devices.iter().zip(&model.profiles).filter(|(_, profile)| profile.is_some());
        let takes_mib = model.weights_mib + model.activation_mib;
        let room_mib = measured().map(|(device, _)| device.memory_mib).fold(0.0, f64::max);
        if takes_mib > room_mib {
            return Err(Unsolved::TooLarge { model: model.name.clone(), takes_mib, room_mib });
        }
        let fits = measured().filter(|(device, _)| device.memory_mib >= takes_mib);
        let alone_ms = fits
            .filter_map(|(_, profile)| Some(profile.as_ref()?.latency(1).as_millis_f64()))
            .fold(f64::INFINITY, f64::min);
        return Err(Unsolved::TooSlow { model: model.name.clone(), slo_ms: model.slo_ms, alone_ms });
    }
    Ok(())
}

/// The first division needs more moves than may be: with how many it can be had.
pub(crate) fn too_many_moves(needs: &Needs, homes: &Homes, search: &Search<'_>) -> Unsolved {
    let free = Homes { most_moves: usize::MAX, ..homes.clone() };
    let would_do = heuristic::search(needs, &free, search).map(|division| division.moves);
    Unsolved::TooFewMoves { max_moves: homes.most_moves, would_do }
}

/// The GPUs that there are must do.
pub(crate) fn check_count(
    problem: &Problem,
    needs: &Needs,
    epoch: Epoch<'_>,
    solution: &Solution,
    search: &Search<'_>,
) -> Result<(), Unsolved> {
    let per_gpu = u64::from(problem.units_per_gpu);
    let Some(available) = problem.gpus else { return Ok(()) };
    let needed = solution.units.div_ceil(per_gpu);
    if needed <= u64::from(available) {
        return Ok(());
    }
    // Would more moves help, and how many?
    let limited = epoch.previous.zip(epoch.max_moves);
    let with_moves = limited.and_then(|(previous, max_moves)| {
        let fits = |moves: usize| {
            let homes =
                Homes { of: previous.homes(problem), count: previous.subclusters.len(), most_moves: moves };
            let found = heuristic::search(needs, &homes, search)?;
            (found.cost.div_ceil(per_gpu) <= u64::from(available)).then_some(found.moves)
        };
        let (mut short, mut enough) = (max_moves, fits(usize::MAX)?);
        while enough > short + 1 {
            let middle = short + (enough - short) / 2;
            match fits(middle) {
                Some(moves) => enough = moves.max(short + 1).min(middle),
                None => short = middle,
            }
        }
        Some(enough)
    });
    let bound = solution.bound_units.div_ceil(per_gpu);
    Err(Unsolved::TooFewGpus { needed, available, bound, with_moves })
}
