//! All solvers on random problems: plans that serve everything, bounds that hold, and the optimum of brute force.

use downbeat_milp::Backend;
use proptest::prelude::*;

use super::*;
use crate::problem::Problem;
use crate::solver::Allocation;
use crate::testing::{Table, add_pool, problem_of, random_tables, run_by};
use crate::{Infeasible, Unsolved};

fn servable(tables: &[Table]) -> bool {
    tables.iter().all(|(_, slices)| slices.iter().any(Option::is_some))
}

/// What a plan without places must keep.
fn assert_sound(problem: &Problem, allocation: &Allocation, solver: &str) {
    for (service, counts) in allocation.instances.iter().enumerate() {
        assert!(problem.is_served(service, counts), "{solver}: service {service} has {counts:?}");
    }
    let used = allocation.used(problem.slices.len());
    for (slice, used) in used.iter().enumerate() {
        let there: u32 =
            problem.configurations.iter().zip(&allocation.gpus).map(|(c, n)| c.slices[slice] * n).sum();
        assert!(*used <= there, "{solver}: {used} of slice {slice}, {there} are there");
    }
}

/// The fewest GPUs, by trying every multiset of configurations and every way to share out its slices.
fn brute_force(problem: &Problem, most: u32) -> Option<u32> {
    fn serve(problem: &Problem, service: usize, left: &[u32]) -> bool {
        if service == problem.services.len() {
            return true;
        }
        let mut counts = vec![0; left.len()];
        loop {
            if problem.is_served(service, &counts) {
                let rest: Vec<u32> = left.iter().zip(&counts).map(|(a, b)| a - b).collect();
                if serve(problem, service + 1, &rest) {
                    return true;
                }
            }
            let mut at = 0;
            while at < counts.len() && counts[at] == left[at] {
                counts[at] = 0;
                at += 1;
            }
            if at == counts.len() {
                return false;
            }
            counts[at] += 1;
        }
    }
    fn choose(problem: &Problem, from: usize, gpus: u32, left: &[u32]) -> bool {
        if gpus == 0 {
            return serve(problem, 0, left);
        }
        (from..problem.configurations.len()).any(|index| {
            let more: Vec<u32> =
                left.iter().zip(&problem.configurations[index].slices).map(|(a, b)| a + b).collect();
            choose(problem, index, gpus - 1, &more)
        })
    }
    (1..=most).find(|&gpus| choose(problem, 0, gpus, &vec![0; problem.slices.len()]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn exact_finds_the_optimum_of_brute_force(tables in random_tables(2, 9.0), replicas in 1u32..6) {
        prop_assume!(servable(&tables));
        let mut problem = problem_of(&tables);
        problem.services[0].min_replicas = replicas;
        let Some(expected) = brute_force(&problem, 2) else { return Ok(()) };
        for backend in [Backend::best(None).unwrap(), Backend::microlp()] {
            let solved = Exact.solve(&problem, &run_by(&backend)).unwrap();
            prop_assert_eq!(solved.allocation.gpu_count(), expected, "{}", backend.name());
            prop_assert!((solved.bound.cost - f64::from(expected)).abs() < 1e-9, "{}: {:?}", backend.name(), solved.bound);
        }
    }

    #[test]
    fn every_solver_serves_everything_and_no_bound_passes_a_plan(tables in random_tables(6, 25.0)) {
        prop_assume!(servable(&tables));
        let problem = problem_of(&tables);
        let backend = Backend::best(None).unwrap();
        let mut best = f64::INFINITY;
        let mut bounds = Vec::new();
        for solver in ALL {
            let solved = match solver.solve(&problem, &run_by(&backend)) {
                Ok(solved) => solved,
                Err(Unsolved::NotApplicable { .. }) => continue,
                Err(error) => return Err(TestCaseError::fail(format!("{}: {error}", solver.name()))),
            };
            assert_sound(&problem, &solved.allocation, solver.name());
            best = best.min(solved.allocation.cost(&problem));
            bounds.push((solver.name(), solved.bound));
        }
        let relaxed = crate::bound::relaxation(&problem, &run_by(&backend)).unwrap();
        bounds.push(("relaxation", relaxed));
        for (name, bound) in &bounds {
            prop_assert!(bound.cost <= best + 1e-9, "{name} bounds by {} what costs {best}", bound.cost);
        }
        let auto = Auto.solve(&problem, &run_by(&backend)).unwrap();
        prop_assert!((auto.allocation.cost(&problem) - best).abs() < 1e-9, "auto is never worse than another");
        prop_assert!((auto.bound.cost - best).abs() < 1e-9, "and proves it: {:?} of {best}", auto.bound);
    }
}

#[test]
fn a_search_that_is_stopped_at_once_still_has_a_plan() {
    let tables: Vec<Table> = (0..40).map(|i| (5.0 + f64::from(i), vec![Some([1.0, 2.0, 3.0]); 5])).collect();
    let problem = problem_of(&tables);
    for backend in [Backend::best(None).unwrap(), Backend::microlp()] {
        let run = crate::Run { stop: &|| true, ..run_by(&backend) };
        for solver in ALL {
            match solver.solve(&problem, &run) {
                Ok(solved) => assert_sound(&problem, &solved.allocation, solver.name()),
                Err(Unsolved::NotApplicable { .. }) => {}
                Err(error) => panic!("{}: {error}", solver.name()),
            }
        }
    }
}

#[test]
fn pools_that_are_too_small_are_told_with_the_count_that_would_do() {
    let mut problem = problem_of(&[(70.0, vec![Some([1.0, 2.0, 3.0]), None, None, None, None])]);
    let backend = Backend::best(None).unwrap();
    problem.pools[0].count = Some(10);
    let solved = Auto.solve(&problem, &run_by(&backend)).unwrap();
    assert_eq!(solved.allocation.gpu_count(), 10, "seventy slices are ten GPUs");
    problem.pools[0].count = Some(9);
    match Auto.solve(&problem, &run_by(&backend)) {
        Err(Unsolved::Infeasible(Infeasible::Pools { short, proved })) => {
            assert!(proved);
            assert_eq!((short[0].count, short[0].needed), (9, 10));
        }
        other => panic!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn the_cheapest_numbers_of_gpus_are_proved_however_close_their_costs_are(
        tables in random_tables(2, 12.0),
        dearer in 1e-7f64..1e-4,
        count in 1u32..3,
    ) {
        prop_assume!(servable(&tables));
        // Instances in two pools count apart: only where values add up is it all the same which pool a GPU is of.
        let mut tables = tables;
        for capacities in tables.iter_mut().flat_map(|(_, slices)| slices.iter_mut().flatten()) {
            *capacities = [1.0, 2.0, 3.0].map(|n| n * capacities[2] / 3.0);
        }
        let mut problem = problem_of(&tables);
        let Some(gpus) = brute_force(&problem, 2) else { return Ok(()) };
        problem.pools[0].cost = 1.0 + dearer;
        add_pool(&mut problem, 1.0 + dearer / 3.0, Some(count));
        // The cheaper GPUs as far as they go: they do the same as the others.
        let cheap = gpus.min(count);
        let least = f64::from(cheap) * (1.0 + dearer / 3.0) + f64::from(gpus - cheap) * (1.0 + dearer);
        let backend = Backend::best(None).unwrap();
        // From a plan that is hardly dearer, as greedy may find one.
        let all_dear = {
            let mut only = problem.clone();
            only.pools[1].count = Some(0);
            Exact.solve(&only, &run_by(&backend)).unwrap().allocation
        };
        for known in [None, Some(all_dear)] {
            let solved = exact::improve(&problem, &run_by(&backend), known).unwrap();
            let cost = solved.allocation.cost(&problem);
            prop_assert!((cost - least).abs() <= 1e-9 * least, "{cost} of {least}");
            prop_assert!((solved.bound.cost - least).abs() <= 1e-9 * least, "{:?} of {least}", solved.bound);
        }
    }
}

#[test]
fn a_cheaper_type_is_used_until_it_runs_out() {
    let mut problem = problem_of(&[(21.0, vec![Some([1.0, 2.0, 3.0]), None, None, None, None])]);
    add_pool(&mut problem, 0.4, Some(2));
    let backend = Backend::best(None).unwrap();
    for solver in [&Auto as &dyn Solver, &Greedy, &Exact] {
        let solved = solver.solve(&problem, &run_by(&backend)).unwrap();
        assert_sound(&problem, &solved.allocation, solver.name());
        assert_eq!(solved.allocation.by_pool(&problem), [1, 2], "{}", solver.name());
        assert!((solved.allocation.cost(&problem) - 1.8).abs() < 1e-9);
    }
}

#[test]
fn as_many_replicas_as_are_wanted_are_planned() {
    let mut problem = problem_of(&[(1.0, vec![Some([1.0, 2.0, 3.0]); 5])]);
    problem.services[0].min_replicas = 9;
    let backend = Backend::best(None).unwrap();
    for solver in [&Auto as &dyn Solver, &Greedy, &Mcts, &Ga, &Exact] {
        let solved = solver.solve(&problem, &run_by(&backend)).unwrap();
        assert_sound(&problem, &solved.allocation, solver.name());
        assert_eq!(solved.allocation.gpu_count(), 2, "{}", solver.name());
    }
}

#[test]
fn an_instance_that_serves_nothing_is_no_replica() {
    // One instance alone is too late, two are not: three replicas of a service that one GPU would serve.
    let mut problem = problem_of(&[(1.0, vec![Some([0.0, 2.0, 3.0]); 5])]);
    problem.services[0].min_replicas = 3;
    let counts = [1, 2, 0, 0, 0];
    assert_eq!(problem.replicas(0, &counts), 2);
    assert!(!problem.is_served(0, &counts));
    let backend = Backend::best(None).unwrap();
    for solver in [&Auto as &dyn Solver, &Greedy, &Mcts, &Ga, &Exact] {
        let solved = solver.solve(&problem, &run_by(&backend)).unwrap();
        assert_sound(&problem, &solved.allocation, solver.name());
        if ["auto", "exact"].contains(&solver.name()) {
            assert_eq!(solved.allocation.gpu_count(), 1, "{}", solver.name());
        }
    }
}

#[test]
fn replicas_may_lie_on_different_kinds_of_slices() {
    // Where a GPU has one slice of each of three kinds, three replicas fit on it only if each takes another kind.
    let mut problem = problem_of(&[(1.0, vec![Some([1.0, 2.0, 3.0]); 5])]);
    problem.services[0].min_replicas = 3;
    problem.configurations.truncate(1);
    problem.configurations[0].slices = vec![1, 1, 1, 0, 0];
    let backend = Backend::best(None).unwrap();
    for solver in [&Auto as &dyn Solver, &Exact] {
        let solved = solver.solve(&problem, &run_by(&backend)).unwrap();
        assert_eq!(solved.allocation.gpu_count(), 1, "{}", solver.name());
    }
}

#[test]
fn a_batch_that_only_many_instances_run_in_time_counts_in_plan_and_bound() {
    // By the rule 100 small slices serve ten times as much each as 99 do: 15 GPUs, where 140 would be needed without.
    let mut problem = problem_of(&[(9_800.0, vec![None; 5])]);
    let points = [(1, 100.0), (100, 1000.0)];
    problem.curves[0][0] = crate::Curve::by_rule(crate::Rule::Staggered, &points, 1010.1);
    let backend = Backend::best(None).unwrap();
    let solved = Exact.solve(&problem, &run_by(&backend)).unwrap();
    assert_sound(&problem, &solved.allocation, "exact");
    assert_eq!(solved.allocation.gpu_count(), 15, "100 slices are 15 GPUs");
    assert_eq!(solved.bound.cost, 15.0);
}

#[test]
fn a_baseline_that_needs_more_than_the_pool_does_not_say_that_no_plan_exists() {
    // Whole GPUs serve 5, seven of the smallest slices 7: only the latter fit.
    let table: Table = (7.0, vec![Some([1.0, 2.0, 3.0]), None, None, None, Some([5.0, 10.0, 15.0])]);
    let mut problem = problem_of(&[table]);
    problem.pools[0].count = Some(1);
    let backend = Backend::microlp();
    assert_eq!(Exact.solve(&problem, &run_by(&backend)).unwrap().allocation.gpu_count(), 1);
    let said = Baseline::Whole.solve(&problem, &run_by(&backend)).unwrap_err().to_string();
    assert!(said.starts_with("whole does not apply: GPUs cut that way are too few"), "{said}");
    assert!(said.contains("A100-40GB has 1 GPUs, and 2 would do"), "{said}");
}
