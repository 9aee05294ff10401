use std::path::Path;

use downbeat_milp::Backend;
use downbeat_subclusters::{Epoch, Method, Problem, Run, Subcluster};

use super::{SubclusterError, compare, confirm, page, plan, replay};

/// Eight models, of which four fit into a GPU.
fn problem(gpus: u32) -> Problem {
    let mut text = format!("gpu_memory_mib = 10000\ngpus = {gpus}\n");
    for index in 0..8 {
        text += &format!(
            "[[model]]\nname = \"m{index}\"\nrate_rps = {}\nslo_ms = {}\nweights_mib = 2200\nactivation_mib = 500\n\
             profile = {{ alpha_ms = 0.5, beta_ms = 2, max_batch = 32 }}\n",
            900 + 300 * index,
            40 + 20 * (index % 3),
        );
    }
    Problem::parse(&text, Path::new("eight.toml")).expect("a problem")
}

fn quietly<T>(work: impl FnOnce(&Run<'_>) -> T) -> T {
    work(&Run { stop: &|| false, backend: &Backend::microlp(), seed: 1, on_progress: &|_, _, _| {} })
}

#[test]
fn a_confirmed_plan_keeps_every_model_in_its_slo_and_two_devices_fewer_do_not() {
    let problem = problem(20);
    let planned =
        quietly(|run| plan(&problem, Epoch::default(), Method::Auto, run, true, &|| {})).expect("a plan");
    assert!(planned.plan.confirmed);
    let replays = replay(&problem, &planned.plan, 1).expect("a replay");
    assert!(replays.iter().all(|replay| replay.passed), "{replays:?}");
    let mut fewer = planned.plan.clone();
    fewer.subclusters.retain(|subcluster| subcluster.count > 2);
    assert!(!fewer.subclusters.is_empty());
    fewer.subclusters.iter_mut().for_each(|subcluster| subcluster.count -= 2);
    let replays = replay(&problem, &fewer, 1).expect("a replay");
    assert!(replays.iter().all(|replay| !replay.passed), "{replays:?}");
}

/// The estimate is put aside: from one device too few by far and from too many, the simulator finds the same size.
#[test]
fn the_size_is_the_simulators_whatever_the_estimate_was() {
    let problem = problem(20);
    let models: Vec<usize> = (0..4).collect();
    let sized = |count: u32| {
        let subcluster = Subcluster { name: "s".to_owned(), device: 0, count, models: models.clone() };
        confirm(&problem, &[subcluster], 1, &|| {}).expect("a size")[0]
    };
    let size = sized(1);
    assert!(size > 1);
    assert_eq!((sized(size), sized(size + 2)), (size, size));
}

#[test]
fn too_few_gpus_in_simulation_are_an_error_and_not_a_plan() {
    let enough =
        quietly(|run| plan(&problem(20), Epoch::default(), Method::Auto, run, true, &|| {})).expect("a plan");
    let short = problem(enough.plan.gpus - 1);
    let error =
        quietly(|run| plan(&short, Epoch::default(), Method::Auto, run, true, &|| {})).expect_err("too few");
    let said = error.to_string();
    assert!(matches!(error, SubclusterError::TooFewGpus { .. } | SubclusterError::Unsolved(_)), "{said}");
    assert!(said.contains("GPUs are needed, and there are"), "{said}");
}

#[test]
fn nobody_needs_fewer_gpus_than_a_plan_on_a_plain_case() {
    let problem = problem(40);
    let planned =
        quietly(|run| plan(&problem, Epoch::default(), Method::Auto, run, true, &|| {})).expect("a plan");
    let compared =
        compare(&problem, &planned.solution, 1, &Backend::microlp(), &|| {}).expect("a comparison");
    let names: Vec<&str> = compared.contenders.iter().map(|contender| contender.name).collect();
    assert_eq!(names, ["downbeat", "one cluster per model", "random", "balanced by rate"]);
    assert!(
        compared.contenders.iter().all(|contender| contender.gpus >= compared.contenders[0].gpus),
        "{compared:?}"
    );
    assert!(compared.contenders[1].gpus > compared.contenders[0].gpus);
}

#[test]
fn the_page_shows_every_model_and_escapes_names() {
    let mut problem = problem(20);
    problem.models[0].name = "<b>m0".to_owned();
    let planned =
        quietly(|run| plan(&problem, Epoch::default(), Method::Auto, run, false, &|| {})).expect("a plan");
    let replays = replay(&problem, &planned.plan, 1).expect("a replay");
    let drawn = page(&planned.plan, Some(&replays));
    assert!(drawn.contains("&lt;b&gt;m0") && !drawn.contains("<b>m0"));
    assert!((1..8).all(|index| drawn.contains(&format!("m{index}"))) && drawn.contains("In SLO"));
}
