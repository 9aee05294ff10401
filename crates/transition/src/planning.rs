//! From two layouts to the steps between them.

#[cfg(test)]
mod tests;

use downbeat_mig::{Catalogue, Placed};

use crate::bound::Bound;
use crate::case::{Case, CaseError, Comparison, GpuIndex, Pod};
use crate::layout::{Instance, Layout, Slice};
use crate::order::{self, Ordered};
use crate::replay::{self, Violations};
use crate::sequence::{self, Effort, Op, Reason, Searched, Sequence, Taste};
use crate::step::{Driver, Phase, Source, SpareGpu, Step, StepKind, Transition};
use crate::times::{self, StepTimes};

/// How a transition is to be made.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What changes the GPUs' slices.
    pub driver: Driver,
    /// The most GPUs that may be used on the way beyond those of the layouts; as few as can be are used.
    pub spare_max: Option<usize>,
    /// How the layouts are compared.
    pub comparison: Comparison,
    /// How long steps take.
    pub times: StepTimes,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            driver: Driver::Nvml,
            spare_max: None,
            comparison: Comparison::default(),
            times: StepTimes::PAPER_2021,
        }
    }
}

/// Why there is no transition.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The layouts are at fault.
    #[error(transparent)]
    Case(#[from] CaseError),
    /// More spare GPUs are needed than there may be.
    #[error("{allowed} spare GPUs are too few; {needed} would do (--spare {needed})")]
    TooFewSpares {
        /// As many as there may be.
        allowed: usize,
        /// As many as were found to be enough.
        needed: usize,
    },
    /// No transition was found, with however many spare GPUs.
    #[error("no transition was found, with however many spare GPUs")]
    NotFound,
    /// The replayer found a fault: a mistake in the planner.
    #[error("the planned steps do not keep the promise (a mistake in Downbeat): {0}")]
    Unsafe(Violations),
}

/// How many ways to make room are played through before one is taken, in turn.
const LOOKAHEADS: [usize; 4] = [1, 8, 3, 16];

/// Ways of choosing, the quickest first. All are tried; the fewest spares win, then the fewest steps, then the least
/// time. With mig-parted, where whole GPUs must be emptied, more depends on the order, and more orders are tried.
fn tastes(driver: Driver) -> impl Iterator<Item = Taste> {
    let (empties, salts): (&[bool], u64) = match driver {
        Driver::Nvml => (&[false], 2),
        Driver::MigParted => (&[false, true], 4),
    };
    let of_salt = move |salt: u64| {
        let with = move |&empties: &bool| LOOKAHEADS.map(|lookahead| Taste { lookahead, salt, empties });
        empties.iter().flat_map(with)
    };
    (0..salts).flat_map(of_salt)
}

/// Further ways that are tried as long as more than one spare is needed.
const SALTS_MORE: usize = 24;

/// Plans a transition: no service ever falls below the lower of what it has and what it is to have. Every transition
/// has passed the replayer ([`replay::check`]).
pub fn plan(
    from: &Layout,
    to: &Layout,
    catalogue: &Catalogue,
    options: &Options,
) -> Result<Transition, PlanError> {
    let case = Case::new(from, to, catalogue, options.comparison)?;
    let found = best(&case, options).ok_or(PlanError::NotFound)?;
    let needed = found.spares.len();
    if let Some(allowed) = options.spare_max.filter(|&allowed| needed > allowed) {
        return Err(PlanError::TooFewSpares { allowed, needed });
    }
    let target = renumbered(to, &found.renumbered);
    replay::check(from, &target, &found, catalogue).map_err(PlanError::Unsafe)?;
    Ok(found)
}

/// A layout whose GPUs have traded places.
pub fn renumbered(layout: &Layout, numbers: &[(u32, u32)]) -> Layout {
    let mut changed = layout.clone();
    for &(before, after) in numbers {
        let content = layout.gpus.iter().find(|gpu| gpu.gpu == before);
        let seat = changed.gpus.iter_mut().find(|gpu| gpu.gpu == after);
        if let (Some(content), Some(seat)) = (content, seat) {
            seat.instances.clone_from(&content.instances);
        }
    }
    changed
}

fn best(case: &Case, options: &Options) -> Option<Transition> {
    // More spares than that were never of use: whatever is in the way on one GPU fits onto an empty one.
    let spare_max = case.gpus.len() + 8;
    let bound = Bound::of(case, options.driver);
    let mut best: Option<Transition> = None;
    for taste in tastes(options.driver) {
        let few = best.as_ref().map_or(spare_max, |best| best.spares.len());
        let Some(found) = sequence::sequence(case, options.driver, few, taste) else { continue };
        let found = written(&found, options, bound);
        if best.as_ref().is_none_or(|best| is_better(&found, best)) {
            best = Some(found);
        }
        if best.as_ref().is_some_and(|best| best.spares.is_empty() && best.steps.len() <= best.lower_bound) {
            break;
        }
    }
    let mut best = best?;
    // Other orders of equal choices sometimes do with fewer.
    for salt in (5..).take(SALTS_MORE) {
        let Some(fewer) = best.spares.len().checked_sub(1).filter(|&fewer| fewer > 0) else { break };
        let taste = Taste { lookahead: 1 + 5 * (salt as usize % 2), salt, empties: salt % 4 < 2 };
        if let Some(found) = sequence::sequence(case, options.driver, fewer, taste) {
            best = written(&found, options, bound);
        }
    }
    if best.spares.len() > 1 {
        for taste in tastes(options.driver) {
            let few = best.spares.len();
            let found = sequence::sequence_by_detour(case, options.driver, few, taste);
            let found = found.map(|found| written(&found, options, bound));
            best = found.filter(|found| is_better(found, &best)).unwrap_or(best);
        }
    }
    while let Some(fewer) = best.spares.len().checked_sub(1) {
        // Under mig-parted the last spare is dear: doing without one costs many steps where it can be done at all.
        if options.driver == Driver::MigParted && fewer == 0 && case.gpus.len() > SEARCHED_TO_THE_END {
            break;
        }
        let found = sequence::search(case, options.driver, fewer, effort(case));
        match found {
            Searched::Way(found) => best = written(&found, options, bound),
            Searched::Proof => {
                best.spares_are_fewest = true;
                break;
            }
            Searched::Unknown => break,
        }
    }
    Some(best)
}

/// Fewer spares, then fewer steps, then less time.
fn is_better(a: &Transition, b: &Transition) -> bool {
    let merit = |transition: &Transition| (transition.spares.len(), transition.steps.len());
    merit(a) < merit(b) || (merit(a) == merit(b) && a.expected_s < b.expected_s)
}

/// GPUs of a cluster small enough for a search that is likely to end with a way or a proof.
const SEARCHED_TO_THE_END: usize = 4;

/// How hard a transition with fewer spares is searched for: to the end on a few GPUs, a little on many.
fn effort(case: &Case) -> Effort {
    match case.gpus.len() {
        0..=SEARCHED_TO_THE_END => Effort { visits: 400_000, states: 1_500_000, quick: 50 },
        5..=12 => Effort { visits: 100, states: 10_000, quick: 50 },
        _ => Effort { visits: 8, states: 500, quick: 8 },
    }
}

/// Puts a sequence into words.
fn written(sequence: &Sequence, options: &Options, bound: Bound) -> Transition {
    let case = &sequence.case;
    let ordered = order::order(case, options.driver, &sequence.ops, &options.times);
    let steps = (sequence.ops.iter().zip(&ordered).enumerate())
        .map(|(index, (op, ordered))| step(case, index, op, ordered, &options.times))
        .collect();
    let spare = |&gpu: &GpuIndex| SpareGpu {
        gpu: case.gpus[gpu].number,
        node: case.gpus[gpu].node,
        gpu_type: case.model(gpu).name.clone(),
    };
    let mut transition = Transition {
        driver: options.driver,
        steps,
        spares: sequence.spares.iter().map(spare).collect(),
        lower_bound: bound.steps,
        must_change: bound.must_change,
        spares_are_fewest: sequence.spares.is_empty(),
        expected_s: 0.0,
        critical_path: Vec::new(),
        rounds: sequence.rounds,
        renumbered: case.renumbered.clone(),
        notes: case.notes.clone(),
    };
    times::schedule(&mut transition);
    transition
}

fn step(case: &Case, index: usize, op: &Op, ordered: &Ordered, times: &StepTimes) -> Step {
    let (kind, gpu, pod, from, reason) = match *op {
        Op::Create { gpu, pod, reason } => (StepKind::Create, gpu, Some(pod), None, reason),
        Op::Delete { gpu, pod, reason } => (StepKind::Delete, gpu, Some(pod), None, reason),
        Op::Migrate { from, to, kind, reason } => {
            (StepKind::Migrate, to.0, Some(Pod { start: to.1, kind }), Some(from), reason)
        }
        Op::Repartition { gpu, .. } => (StepKind::Repartition, gpu, None, None, Reason::Wanted),
    };
    let source = from.map_or(gpu, |(source, _)| source);
    let slices = |gpu: GpuIndex, placed: &[Placed]| -> Vec<Slice> {
        let name = |placed: &Placed| case.model(gpu).profiles[placed.profile].name.clone();
        placed.iter().map(|placed| Slice { profile: name(placed), start: placed.start }).collect()
    };
    let removed = times.slice_delete_s * ordered.removes.len() as f64;
    Step {
        id: index as u32 + 1,
        kind,
        phase: if kind == StepKind::Migrate { Phase::Compact } else { Phase::Exchange },
        gpu: case.gpus[gpu].number,
        node: case.gpus[gpu].node,
        gpu_type: case.model(gpu).name.clone(),
        instance: pod.map(|pod| instance(case, pod)),
        from: from.map(|(source, start)| Source {
            gpu: case.gpus[source].number,
            node: case.gpus[source].node,
            start,
        }),
        removes: slices(source, &ordered.removes),
        makes: slices(gpu, &ordered.makes),
        after: ordered.after.iter().map(|&before| before as u32 + 1).collect(),
        why: why(kind, reason).to_owned(),
        expected_s: times.of(op, case, !ordered.makes.is_empty()) + removed,
        start_s: 0.0,
        end_s: 0.0,
        slack_s: 0.0,
    }
}

fn instance(case: &Case, pod: Pod) -> Instance {
    let kind = &case.kinds[pod.kind];
    Instance {
        profile: case.types[kind.gpu_type].profiles[kind.profile].name.clone(),
        start: pod.start,
        service: case.services[kind.service].clone(),
        model: kind.model.clone(),
        batch: kind.batch,
        throughput_rps: kind.rate as f64 / 1e6,
    }
}

fn why(kind: StepKind, reason: Reason) -> &'static str {
    match (kind, reason) {
        (StepKind::Create, Reason::Wanted) => "the second plan has it",
        (StepKind::Create, Reason::MakesRoom) => "stands in for instances that are in the way",
        (StepKind::Delete, Reason::Wanted) => "the second plan does not have it",
        (StepKind::Delete, Reason::MakesRoom) => "is in the way; others stand in for it",
        (StepKind::Migrate, Reason::Wanted) => "the second plan has it here",
        (StepKind::Migrate, Reason::MakesRoom) => "moves out of the way",
        (StepKind::Repartition, _) => "the slices are not as they are needed",
    }
}
