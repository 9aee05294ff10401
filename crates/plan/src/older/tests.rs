use downbeat_milp::Backend;

use crate::solvers::Auto;
use crate::testing::{problem_of, run_by};

#[test]
fn gpus_that_cannot_be_as_an_older_plan_says_are_cut_anew_and_told() {
    // As many small slices as five GPUs have.
    let slices = vec![Some([1.0, 2.0, 3.0]), None, None, None, None];
    let problem = problem_of(&[(35.0, slices)]);
    let backend = Backend::best(None).unwrap();
    let planned =
        |from: Option<&[crate::GpuLayout]>| crate::plan(&problem, &Auto, &run_by(&backend), from).unwrap();
    let before = planned(None);
    assert!(planned(Some(&before.layout)).notes.iter().all(|note| !note.contains("older plan")));
    let mut edited = before.layout.clone();
    edited[1].instances[0].start = 7;
    edited[2].instances[1].start = edited[2].instances[0].start;
    edited[3].gpu = edited[0].gpu;
    let after = planned(Some(&edited));
    let told: Vec<&String> = after.notes.iter().filter(|note| note.contains("older plan")).collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told.iter().any(|note| note.contains("GPU 1 that cannot lie so")), "{told:?}");
    assert!(told.iter().any(|note| note.contains("has GPU 0 twice")), "{told:?}");
    assert_eq!(after.layout.len(), 5);
    for kept in [0, 4] {
        assert!(after.layout.contains(&before.layout[kept]), "what can be believed stays: GPU {kept}");
    }
}
