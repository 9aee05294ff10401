use crate::testing::{problem_of, run_by};
use crate::{Plan, Problem};

fn planned() -> (Problem, Plan) {
    let problem = problem_of(&[(9.0, vec![Some([1.0, 2.0, 3.0]); 5]), (4.0, vec![Some([2.0, 4.0, 6.0]); 5])]);
    let mut problem = problem;
    problem.services[0].name = "<b>bold</b>".to_owned();
    let backend = downbeat_milp::Backend::microlp();
    let allocation = crate::solvers::by_name("auto").unwrap().solve(&problem, &run_by(&backend)).unwrap();
    assert!(allocation.allocation.gpu_count() > 0);
    // The made-up problem has hardly any measurements for a checker to look at: drawn without it.
    let layout = crate::place::layout(&problem, &allocation.allocation, None);
    let drawn = Plan::new(&problem, &allocation.allocation, allocation.bound, "auto", layout, Vec::new());
    (problem, drawn)
}

#[test]
fn every_instance_is_drawn_and_names_are_escaped() {
    let (problem, plan) = planned();
    let page = super::page(&problem, &plan);
    let instances: usize = plan.layout.iter().map(|gpu| gpu.instances.len()).sum();
    assert_eq!(page.matches("class=\"slice").count(), instances);
    assert!(page.contains("&lt;b&gt;bold") && !page.contains("<b>bold"));
}
