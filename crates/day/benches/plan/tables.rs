//! What is printed.

use downbeat_day::{Goodput, verify};
use downbeat_milp::Backend;

use crate::demand::{Draw, Instance, plain, problem};
use crate::measure::{Measured, peak_mb, solve, solve_with};

/// Seconds that the searches which do not prove anything may take.
const SEARCH_S: f64 = 60.0;

fn saved(plan: &Measured, whole: &Measured) -> f64 {
    (1.0 - f64::from(plan.plan.gpus) / f64::from(whole.plan.gpus)) * 100.0
}

fn proof(measured: &Measured) -> String {
    if measured.plan.proved_optimal {
        "proved".to_owned()
    } else {
        format!("{:.2} %", measured.plan.gap * 100.0)
    }
}

fn comparison(instances: &[(String, Instance<'_>)]) {
    println!(
        "| demands | whole | seven | mix421 | greedy | mcts | ga | auto | bound | gap | saved | greedy s | mcts s | ga s | auto s |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for (name, instance) in instances {
        let problem = plain(instance);
        let by = |solver: &str| solve(&problem, solver, SEARCH_S);
        let gpus = |measured: &Option<Measured>| {
            measured.as_ref().map_or("-".to_owned(), |measured| measured.plan.gpus.to_string())
        };
        let (whole, seven, mix) = (by("whole"), by("seven"), by("mix421"));
        let (greedy, mcts, ga, auto) =
            (by("greedy").unwrap(), by("mcts").unwrap(), by("ga").unwrap(), by("auto").unwrap());
        println!(
            "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {:.1} % | {:.2} | {:.1} | {:.1} | {:.2} |",
            gpus(&whole),
            gpus(&seven),
            gpus(&mix),
            greedy.plan.gpus,
            mcts.plan.gpus,
            ga.plan.gpus,
            auto.plan.gpus,
            auto.plan.lower_bound,
            proof(&auto),
            saved(&auto, &whole.unwrap()),
            greedy.seconds,
            mcts.seconds,
            ga.seconds,
            auto.seconds,
        );
    }
}

fn draws() -> [(&'static str, Draw, u64); 4] {
    [
        ("normal-1", Draw::NORMAL, 1),
        ("normal-2", Draw::NORMAL, 2),
        ("lognormal-1", Draw::LOGNORMAL, 3),
        ("lognormal-2", Draw::LOGNORMAL, 4),
    ]
}

/// The MIG-serving evaluation on the H200 profiles.
pub(crate) fn published() {
    println!(
        "MIG-serving's evaluation on H200 profiles: 24 services, rule paper; GPUs ({})\n",
        Backend::best(None).unwrap().name()
    );
    let mut instances = Vec::new();
    for slo_ms in [100.0, 20.0] {
        for (name, draw, seed) in draws() {
            instances.push((format!("{name}, {slo_ms} ms"), Instance::h200(24, slo_ms, draw, seed)));
        }
    }
    comparison(&instances);
    println!(
        "\nPublished, on A100 with other models (100 ms): whole 208/272/367/402, greedy 143/187/271/221, MIG-serving 139/184/268/218 in 3 to"
    );
    println!("6.5 hours on 104 cores, rule-free bound 137/179/260/217; saved 27 to 46 %.");
}

/// The same on the tables of the paper itself.
pub(crate) fn a100() {
    println!("The paper's own A100 tables: 24 services of its 8 PyTorch models, 100 ms, rule paper; GPUs\n");
    let instances: Vec<(String, Instance<'_>)> = draws()
        .into_iter()
        .map(|(name, draw, seed)| (name.to_owned(), Instance::a100(24, 100.0, draw, seed)))
        .collect();
    comparison(&instances);
}

/// MIG-serving's searches on demands that are in no suite: whether they find better plans than greedy wherever there
/// are any.
pub(crate) fn searches() {
    println!("Greedy, mcts and ga on demands not in the suite, rule paper; GPUs\n");
    println!("| demands | greedy | mcts | ga | auto | gap | mcts s | ga s | |");
    println!("|---|---|---|---|---|---|---|---|---|");
    let (mut beaten, mut beatable) = ([0, 0], 0);
    let instances = unseen_draws();
    for (name, instance) in &instances {
        let problem = plain(instance);
        let by = |solver: &str| solve(&problem, solver, SEARCH_S).unwrap();
        let (greedy, mcts, ga, auto) = (by("greedy"), by("mcts"), by("ga"), by("auto"));
        let better = [&mcts, &ga].map(|found| found.plan.gpus < greedy.plan.gpus);
        let optimal = greedy.plan.gpus == auto.plan.gpus;
        let remark = match better {
            _ if optimal => "greedy is optimal",
            [true, true] => "",
            _ => "not better than greedy",
        };
        if !optimal {
            beatable += 1;
            beaten = [beaten[0] + u32::from(better[0]), beaten[1] + u32::from(better[1])];
        }
        println!(
            "| {name} | {} | {} | {} | {} | {} | {:.1} | {:.1} | {remark} |",
            greedy.plan.gpus,
            mcts.plan.gpus,
            ga.plan.gpus,
            auto.plan.gpus,
            proof(&auto),
            mcts.seconds,
            ga.seconds
        );
    }
    println!(
        "\n{} problems, {beatable} of them with a better plan than greedy's: mcts found one {} times, ga {}.",
        instances.len(),
        beaten[0],
        beaten[1]
    );
}

/// Other seeds, sizes, objectives and GPUs than those of the published evaluation.
fn unseen_draws() -> Vec<(String, Instance<'static>)> {
    let kinds = [("normal", Draw::NORMAL), ("lognormal", Draw::LOGNORMAL), ("scarce", Draw::SCARCE)];
    let mut draws = Vec::new();
    for (name, draw) in kinds {
        for (services, slo_ms, seed) in [(24, 100.0, 101), (24, 35.0, 102), (24, 20.0, 103), (10, 50.0, 104)]
        {
            let instance = Instance::h200(services, slo_ms, draw, seed);
            draws.push((format!("H200, {services} {name}-{seed}, {slo_ms} ms"), instance));
        }
        for (services, slo_ms, seed) in
            [(24, 100.0, 105), (24, 250.0, 106), (8, 100.0, 107), (40, 150.0, 108)]
        {
            let instance = Instance::a100(services, slo_ms, draw, seed);
            draws.push((format!("A100, {services} {name}-{seed}, {slo_ms} ms"), instance));
        }
    }
    draws
}

/// Demands that are in no suite: many seeds, sizes and objectives.
pub(crate) fn unseen() {
    println!("Demands not in the suite: auto on 12 seeds of each, by both backends\n");
    println!("| services | demands | SLO ms | backend | proved | worst gap | mean s | worst s |");
    println!("|---|---|---|---|---|---|---|---|");
    for (services, seeds) in [(24, 12), (54, 12), (200, 12)] {
        for (name, draw) in
            [("normal", Draw::NORMAL), ("lognormal", Draw::LOGNORMAL), ("scarce", Draw::SCARCE)]
        {
            for slo_ms in [100.0, 20.0, 8.0] {
                for backend in [Backend::best(None).unwrap(), Backend::microlp()] {
                    let solved: Vec<Measured> = (0..seeds)
                        .filter_map(|seed| {
                            let problem = plain(&Instance::h200(services, slo_ms, draw, 1000 + seed));
                            solve_with(&problem, "auto", 10.0, &backend)
                        })
                        .collect();
                    let proved = solved.iter().filter(|measured| measured.plan.proved_optimal).count();
                    let gap = solved.iter().map(|measured| measured.plan.gap).fold(0.0, f64::max);
                    let mean =
                        solved.iter().map(|measured| measured.seconds).sum::<f64>() / solved.len() as f64;
                    let worst = solved.iter().map(|measured| measured.seconds).fold(0.0, f64::max);
                    println!(
                        "| {services} | {name} | {slo_ms} | {} | {proved}/{} | {:.2} % | {mean:.2} | {worst:.2} |",
                        backend.name(),
                        solved.len(),
                        gap * 100.0
                    );
                }
            }
        }
    }
}

/// Two thousand services.
pub(crate) fn scale() {
    println!("Many services: auto, lognormal demands of a median GPU and a half, rule paper and staggered\n");
    println!("| services | SLO ms | rule | GPUs | bound | gap | seconds | peak MB |");
    println!("|---|---|---|---|---|---|---|---|");
    let draw = Draw::Lognormal { mean_log: 0.4, deviation_log: 1.0 };
    for services in [200, 2000] {
        for slo_ms in [100.0, 20.0] {
            for rule in ["paper", "staggered"] {
                let problem = plain(&Instance { rule, ..Instance::h200(services, slo_ms, draw, 5) });
                let auto = solve(&problem, "auto", 60.0).unwrap();
                println!(
                    "| {services} | {slo_ms} | {rule} | {} | {} | {} | {:.2} | {:.0} |",
                    auto.plan.gpus,
                    auto.plan.lower_bound,
                    proof(&auto),
                    auto.seconds,
                    peak_mb()
                );
            }
        }
    }
}

/// Rules under which throughput is not linear, against their own bounds, and what their plans keep.
pub(crate) fn rules() {
    println!(
        "Throughput rules: 24 and 2,000 services of 8 models, 20 ms; replayed at the planned rates (24 services)\n"
    );
    println!(
        "| services | rule | GPUs | own bound | gap | seconds | services in SLO at 99 % | worst in SLO |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let goodput = Goodput::forgetful();
    let draw = Draw::Lognormal { mean_log: 0.4, deviation_log: 1.0 };
    for services in [24, 2000] {
        for rule in ["paper", "half", "staggered", "measured"] {
            let problem =
                problem(&Instance { rule, models: 8, ..Instance::h200(services, 20.0, draw, 6) }, &goodput);
            let Some(auto) = solve(&problem, "auto", 60.0) else {
                println!("| {services} | {rule} | no plan: a model cannot be served in time |");
                continue;
            };
            let replayed = (services <= 24).then(|| verify(&problem, &auto.plan, 1, &|| false).unwrap());
            let (passed, worst) = replayed.map_or(("-".to_owned(), "-".to_owned()), |replay| {
                let passed = replay.services.iter().filter(|service| service.passed).count();
                let worst = replay.services.iter().map(|service| service.in_slo).fold(1.0, f64::min);
                (format!("{passed}/{services}"), format!("{:.2} %", worst * 100.0))
            });
            println!(
                "| {services} | {rule} | {} | {} | {} | {:.2} | {passed} | {worst} |",
                auto.plan.gpus,
                auto.plan.lower_bound,
                proof(&auto),
                auto.seconds
            );
        }
    }
}

/// When the first plan is there.
pub(crate) fn anytime() {
    println!("Anytime: 100 services; when the first plan is there, and the best\n");
    println!("| demands | first plan s | best plan s | gap |");
    println!("|---|---|---|---|");
    for (name, draw, seed) in draws() {
        let auto = solve(&plain(&Instance::h200(100, 20.0, draw, seed)), "auto", 60.0).unwrap();
        println!("| {name} | {:.2} | {:.2} | {} |", auto.first_seconds, auto.seconds, proof(&auto));
    }
}
