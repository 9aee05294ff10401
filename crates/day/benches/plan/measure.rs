//! Solving and timing.

use std::fs;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use downbeat_milp::Backend;
use downbeat_plan::{Plan, Problem, Progress, Run, plan, solvers};

/// A plan, how long it took, and when the first plan was there.
pub(crate) struct Measured {
    pub(crate) plan: Plan,
    pub(crate) seconds: f64,
    pub(crate) first_seconds: f64,
}

pub(crate) fn solve(problem: &Problem, solver: &str, limit_s: f64) -> Option<Measured> {
    let backend = Backend::best(None).unwrap();
    solve_with(problem, solver, limit_s, &backend)
}

/// The plan has been laid out and checked: its time counts.
pub(crate) fn solve_with(
    problem: &Problem,
    solver: &str,
    limit_s: f64,
    backend: &Backend,
) -> Option<Measured> {
    let begin = Instant::now();
    let first = Mutex::new(None);
    let stop = || begin.elapsed() >= Duration::from_secs_f64(limit_s);
    let on_progress = |progress: &Progress| {
        if progress.cost.is_finite() {
            first.lock().unwrap().get_or_insert(begin.elapsed().as_secs_f64());
        }
    };
    let run = Run { stop: &stop, on_progress: &on_progress, backend, seed: 1 };
    let plan = plan(problem, solvers::by_name(solver).unwrap(), &run, None).ok()?;
    let seconds = begin.elapsed().as_secs_f64();
    let first_seconds = first.lock().unwrap().unwrap_or(seconds);
    Some(Measured { plan, seconds, first_seconds })
}

/// The most memory this process has had, in MB.
pub(crate) fn peak_mb() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    let kilobytes: f64 =
        line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(f64::NAN);
    kilobytes / 1e3
}
