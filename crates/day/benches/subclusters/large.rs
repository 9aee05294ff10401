//! 2,000 models on 400 GPUs, a second epoch of them, and what others would do.

use std::time::Instant;

use downbeat_day::subclusters::{Planned, compare, plan, replay};
use downbeat_subclusters::{Epoch, Method, Plan, Previous, Problem};

use crate::Bench;
use crate::workload::{Mix, another_day, problem, run as a_run};

const LARGE: Mix =
    Mix { models: 2_000, busy_gpus: 320.0, spread: 4.0, weights_mib: (200.0, 12_000.0), gpus: Some(400) };

pub(crate) fn run(bench: &Bench) {
    println!("## 2,000 models on 400 GPUs\n");
    println!(
        "| epoch | moves allowed | moved | sub-clusters | GPUs | by the estimate | at least | dividing s | with simulation s | models in SLO |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let first = problem(bench, LARGE, 1);
    let planned = timed(bench, "first", &first, Epoch::default());
    let text = serde_json::to_string(&planned.plan).expect("JSON");
    let previous = Previous::parse(&text).expect("the plan is read back");
    // As many GPUs as it takes: few moves may need more than there are.
    let second = Problem { gpus: None, ..another_day(&first, 1.3, 2) };
    for max_moves in [Some(0), Some(20), Some(100), None] {
        timed(bench, "second", &second, Epoch { previous: Some(&previous), max_moves });
    }
    println!();
}

fn timed(bench: &Bench, label: &str, problem: &Problem, epoch: Epoch<'_>) -> Planned {
    let stop = || false;
    let run = a_run(&bench.backend, &stop);
    let begin = Instant::now();
    downbeat_subclusters::solve(problem, epoch, Method::Auto, &run).expect("a solution");
    let dividing_s = begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    let planned = plan(problem, epoch, Method::Auto, &run, true, &|| {}).expect("a plan");
    let all_s = begin.elapsed().as_secs_f64();
    let Plan { gpus, estimated_gpus, lower_bound, moved, subclusters, .. } = &planned.plan;
    let replays = replay(problem, &planned.plan, 1).expect("a replay");
    let models = || replays.iter().flat_map(|replay| &replay.models);
    let passed = models().filter(|model| model.passed).count();
    let allowed = epoch.max_moves.map_or_else(|| "any".to_owned(), |moves| moves.to_string());
    println!(
        "| {label} | {} | {} | {} | {gpus} | {estimated_gpus} | {lower_bound} | {dividing_s:.1} | {all_s:.1} | {passed} of {} |",
        if epoch.previous.is_some() { allowed } else { "-".to_owned() },
        moved.len(),
        subclusters.len(),
        models().count(),
    );
    planned
}

pub(crate) fn rivals(bench: &Bench) {
    println!("## What others would do\n");
    println!("Sizes of all by simulation; models in SLO in a replay with other arrivals.\n");
    println!("| problem | division | sub-clusters | GPUs | more than Downbeat | models in SLO |");
    println!("|---|---|---|---|---|---|");
    let small =
        Mix { models: 40, busy_gpus: 12.0, spread: 3.0, weights_mib: (2_000.0, 40_000.0), gpus: None };
    let middle =
        Mix { models: 300, busy_gpus: 50.0, spread: 4.0, weights_mib: (500.0, 20_000.0), gpus: None };
    for (label, mix) in
        [("40 models", small), ("300 models", middle), ("2,000 models", Mix { gpus: None, ..LARGE })]
    {
        let problem = problem(bench, mix, 1);
        let stop = || false;
        let solution = downbeat_subclusters::solve(
            &problem,
            Epoch::default(),
            Method::Heuristic,
            &a_run(&bench.backend, &stop),
        )
        .expect("a solution");
        let compared = compare(&problem, &solution, 1, &bench.backend, &|| {}).expect("a comparison");
        for contender in &compared.contenders {
            println!(
                "| {label} | {} | {} | {} | {:+.0} % | {} of {} |",
                contender.name,
                contender.subclusters,
                contender.gpus,
                contender.more * 100.0,
                contender.models_in_slo,
                contender.models
            );
        }
    }
    println!();
}
