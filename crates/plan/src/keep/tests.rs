use downbeat_milp::Backend;

use super::*;
use crate::place;
use crate::plan::Plan;
use crate::solver::Solver;
use crate::solvers::Auto;
use crate::testing::{Table, add_pool, problem_of, run_by};

/// Serves by size on every slice.
fn even(demand: f64) -> Table {
    (demand, [1.0, 2.0, 3.0, 4.0, 7.0].map(|rate| Some([rate, 2.0 * rate, 3.0 * rate])).to_vec())
}

fn planned(problem: &Problem, from: Option<&Plan>) -> Plan {
    let backend = Backend::best(None).unwrap();
    let run = run_by(&backend);
    let solved = Auto.solve(problem, &run).unwrap();
    let from = from.map(|from| &from.layout[..]);
    let kept = from.and_then(|from| keeping(problem, &run, &solved.allocation, from));
    let (allocation, wanted) = match kept {
        Some(kept) => (kept.allocation, kept.gpus),
        None => (solved.allocation, BTreeSet::new()),
    };
    let layout = place::layout_keeping(problem, &allocation, from, &wanted);
    Plan::new(problem, &allocation, solved.bound, "auto", layout, Vec::new())
}

#[test]
fn when_one_demand_grows_only_what_must_change_does() {
    let tables = |first: f64| vec![even(first), even(23.0), even(11.0), even(31.5), even(9.0)];
    let before = planned(&problem_of(&tables(20.0)), None);
    let after = planned(&problem_of(&tables(27.0)), Some(&before));
    assert_eq!(
        after.gpus,
        planned(&problem_of(&tables(27.0)), None).gpus,
        "no GPU more than needed is taken"
    );
    let untouched = after.layout.iter().filter(|gpu| before.layout.contains(gpu)).count();
    assert!(untouched + 2 >= before.layout.len(), "{untouched} of {} stay", before.layout.len());
}

#[test]
fn gpus_of_two_pools_of_a_type_stay_whichever_they_are_of() {
    let problem = |first: f64| {
        let mut problem = problem_of(&[even(first), even(23.0), even(11.0), even(31.5)]);
        // Few are cheap; the others are of the second pool.
        problem.pools[0].count = Some(3);
        add_pool(&mut problem, 2.0, None);
        problem
    };
    let before = planned(&problem(20.0), None);
    assert!(before.gpus > 8, "most are of the second pool");
    let same = planned(&problem(20.0), Some(&before));
    assert_eq!(same.layout, before.layout, "nothing has changed, and all stay");
    let after = planned(&problem(27.0), Some(&before));
    let untouched = after.layout.iter().filter(|gpu| before.layout.contains(gpu)).count();
    assert!(untouched + 2 >= before.layout.len(), "{untouched} of {} stay", before.layout.len());
}
