//! What `adaptive` promises: floors, overload, load that gathers on few devices, change.

use std::path::Path;

use downbeat_sched::{GpuId, Priority};
use downbeat_sim::{
    Arrival, Fault, RunReport, Scenario, Span, Until, fluid_first_shortage_rps, fluid_need_gpus,
};

use crate::{counted, goodput, load, policy};

/// Least share of the fluid bound, Poisson and bursty. The bound here is the rate at which devices first run short.
const FLOORS: [(&str, f64, f64); 5] = [
    ("one-model-8gpu", 0.93, 0.77),
    ("one-model-32gpu", 0.98, 0.88),
    ("eight-models-8gpu", 0.94, 0.90),
    ("mixed-24-models-8gpu", 0.95, 0.95),
    ("h200-10-models-2gpu", 0.75, 0.92),
];

/// How long the overload lasts after which it is calm.
const OVERLOAD_S: f64 = 30.0;

pub(crate) fn print(seeds: u32) {
    floors(seeds);
    overload();
    priorities();
    proportion();
    change();
    calm_after_overload();
}

fn floors(seeds: u32) {
    println!("## adaptive: share of the fluid bound\n");
    println!(
        "{}. The bound is the rate at which devices first run short, as in the study the floors come from.\n",
        counted(seeds)
    );
    println!("| case | floor | adaptive | spread |");
    println!("|---|---|---|---|");
    let row = |name: &str, floor: f64| {
        let scenario = load(name);
        let bound = fluid_first_shortage_rps(&scenario);
        let report = goodput(&scenario, &[policy("adaptive")], seeds);
        let found = &report.policies["adaptive"];
        println!(
            "| {name} | {floor:.2} | {:.3} | {:.3} |",
            found.goodput_rps / bound,
            found.spread_rps / bound
        );
    };
    for (name, poisson, bursty) in FLOORS {
        row(name, poisson);
        row(&format!("{name}-bursty"), bursty);
    }
    row("long-model-4gpu", 0.60);
    println!();
}

fn run(scenario: &Scenario, name: &str) -> RunReport {
    policy(name).run(scenario, scenario.seed, Until::End).unwrap_or_else(|error| panic!("{error}"))
}

/// At the maximum load and above, every model keeps its part and the total stays.
fn overload() {
    println!("## adaptive: overload\n");
    println!(
        "In SLO at 1, 1.5 and 2 times the goodput: total over the total at the goodput, and the worst model over its own\n\
         rate at the goodput. One seed, 60 s.\n"
    );
    println!("| case | total 1.0 | 1.5 | 2.0 | worst model 1.0 | 1.5 | 2.0 |");
    println!("|---|---|---|---|---|---|---|");
    for name in [
        "one-model-8gpu",
        "eight-models-8gpu",
        "mixed-24-models-8gpu",
        "h200-10-models-2gpu",
        "long-model-4gpu",
    ] {
        let mut scenario = load(name);
        let knee = goodput(&scenario, &[policy("adaptive")], 1).policies["adaptive"].goodput_rps;
        scenario.duration = Span::from_secs_f64(60.0);
        let at = |factor: f64| run(&scenario.with_rate(factor * knee), "adaptive");
        let base = at(1.0);
        let runs = [1.0, 1.5, 2.0].map(at);
        let totals = runs.iter().map(|run| run.in_slo_rps / base.in_slo_rps);
        let worst = runs.iter().map(|run| {
            let models = run.models.iter().zip(&base.models);
            models.map(|(model, base)| model.in_slo as f64 / base.in_slo as f64).fold(f64::INFINITY, f64::min)
        });
        let cells: Vec<String> = totals.chain(worst).map(|value| format!("{value:.2}")).collect();
        println!("| {name} | {} |", cells.join(" | "));
    }
    println!();
}

/// A level and the load below it.
fn priorities() {
    println!("## adaptive: priorities\n");
    println!(
        "Half of the models at level 1 with 0.6 of the goodput, the others at level 2: bad rate of the worst model of level 1\n\
         in %, by the load of level 2 over the goodput: none, so that level 1 is alone, to five times. One seed, 60 s.\n"
    );
    println!("| case | 0 | 0.01 | 0.5 | 1 | 2 | 5 |");
    println!("|---|---|---|---|---|---|---|");
    for name in ["eight-models-8gpu", "mixed-24-models-8gpu", "h200-10-models-2gpu"] {
        let mut scenario = load(name);
        let knee = goodput(&scenario, &[policy("adaptive")], 1).policies["adaptive"].goodput_rps;
        scenario.duration = Span::from_secs_f64(60.0);
        let cells = [0.0, 0.01, 0.5, 1.0, 2.0, 5.0].map(|below| {
            let mut levels = scenario.with_rate((0.6 + below) * knee);
            let high: f64 = levels.models.iter().step_by(2).map(|model| model.share).sum();
            for (index, model) in levels.models.iter_mut().enumerate() {
                let (part, whole, level) =
                    if index % 2 == 0 { (0.6, high, 1) } else { (below, 1.0 - high, 2) };
                model.share *= part / (0.6 + below) / whole;
                model.priority = Priority(level);
            }
            levels.models.retain(|model| model.share > 0.0);
            let models = run(&levels, "adaptive").models;
            let of_level_1 =
                models.iter().zip(&levels.models).filter(|(_, model)| model.priority == Priority(1));
            let worst = of_level_1.map(|(found, _)| found.bad_rate).fold(0.0, f64::max);
            format!("{:.2}", 100.0 * worst)
        });
        println!("| {name} | {} |", cells.join(" | "));
    }
    println!();
}

/// Devices in proportion to load, which autoscaling lives on.
fn proportion() {
    println!("## adaptive: GPUs in proportion to load\n");
    println!(
        "One model on 32 GPUs: GPUs that carry 99 % of the busy time, at most ceil(1.15 * share * 32) + 1.\n"
    );
    println!("| share of the goodput | limit | adaptive | deferred | eager |");
    println!("|---|---|---|---|---|");
    let scenario = load("one-model-32gpu");
    let knee = goodput(&scenario, &[policy("adaptive")], 1).policies["adaptive"].goodput_rps;
    for share in [0.25, 0.5, 0.75] {
        let used = |name| run(&scenario.with_rate(share * knee), name).gpus.used;
        let limit = (1.15 * share * 32.0).ceil() as u32 + 1;
        println!("| {share} | {limit} | {} | {} | {} |", used("adaptive"), used("deferred"), used("eager"));
    }
    println!("\nMixes at half the goodput: busy GPU time over the fluid need, at most 1.4.\n");
    println!("| case | need GPUs | adaptive | deferred | eager |");
    println!("|---|---|---|---|---|");
    for name in [
        "eight-models-8gpu",
        "mixed-24-models-8gpu",
        "h200-10-models-2gpu",
        "h200-54-models-16gpu",
        "zipf-100-models-32gpu",
    ] {
        let scenario = load(name);
        let knee = goodput(&scenario, &[policy("adaptive")], 1).policies["adaptive"].goodput_rps;
        let half = scenario.with_rate(knee / 2.0);
        let need = fluid_need_gpus(&half).unwrap_or(f64::NAN);
        let busy = |name| run(&half, name).gpus.busy_fraction.iter().sum::<f64>() / need;
        println!(
            "| {name} | {need:.2} | {:.2} | {:.2} | {:.2} |",
            busy("adaptive"),
            busy("deferred"),
            busy("eager")
        );
    }
    println!();
}

/// After a step in the rate, or a model that appears, back to the steady state in 2 s.
fn change() {
    println!("## adaptive: change\n");
    println!(
        "Bad rate of the worst model, in %: in each of the first two seconds after the change, and from then on; beside it\n\
         the steady state at the rate after the change. The rate after it is 0.9 of the goodput (of the GPUs that are left).\n\
         Mean of 10 seeds.\n"
    );
    println!("| case | change | 1st second | 2nd second | from then on | steady |");
    println!("|---|---|---|---|---|---|");
    for name in ["one-model-8gpu", "eight-models-8gpu", "mixed-24-models-8gpu"] {
        let scenario = load(name);
        let knee = goodput(&scenario, &[policy("adaptive")], 1).policies["adaptive"].goodput_rps;
        let steady = measured(&scenario.with_rate(0.9 * knee), 5.0, 15.0);
        let step = stepped(&scenario, 5.0, 0.9 * knee, scenario.models.len(), 0.25);
        let appears = stepped(&scenario, 5.0, 0.9 * knee, 1, 0.0);
        let mut fails = scenario.with_rate(0.9 * knee * (1.0 - 1.0 / 8.0));
        fails.faults = vec![Fault { gpu: GpuId(0), at: Span::from_secs_f64(5.0) }];
        let mut without = fails.clone();
        without.faults[0].at = Span::from_nanos(1);
        let steady_without = measured(&without, 5.0, 15.0);
        for (change, scenario, steady) in [
            ("all rates times 4", step, steady),
            ("a model appears", appears, steady),
            ("one of 8 GPUs fails", fails, steady_without),
        ] {
            let cells = [(5.0, 6.0), (6.0, 7.0), (7.0, 15.0)].map(|(from, to)| measured(&scenario, from, to));
            println!(
                "| {name} | {change} | {:.2} | {:.2} | {:.2} | {steady:.2} |",
                cells[0], cells[1], cells[2]
            );
        }
    }
    println!();
}

/// After an overload, device time in proportion to load again.
fn calm_after_overload() {
    println!("## adaptive: calm after an overload\n");
    println!(
        "{OVERLOAD_S} s at 1.3 times the goodput, then half of it: busy GPU time over the fluid need from then on, in the seconds\n\
         that the columns name; beside it the steady state. Mean of 3 seeds.\n"
    );
    println!("| case | 0 to 1 | 1 to 5 | 5 to 10 | 10 to 20 | 20 to 40 | steady |");
    println!("|---|---|---|---|---|---|---|");
    for name in
        ["eight-models-8gpu", "mixed-24-models-8gpu", "h200-10-models-2gpu", "long-model-4gpu", "very-bursty"]
    {
        let scenario = load(name);
        let knee = goodput(&scenario, &[policy("adaptive")], 1).policies["adaptive"].goodput_rps;
        let need = fluid_need_gpus(&scenario.with_rate(knee / 2.0)).unwrap_or(f64::NAN);
        let calm = stepped(&scenario, OVERLOAD_S, knee / 2.0, scenario.models.len(), 2.6);
        let busy = |scenario: &Scenario, from_s: f64, to_s: f64| {
            let mut scenario = scenario.clone();
            scenario.warmup = Span::from_secs_f64(from_s);
            scenario.duration = Span::from_secs_f64(to_s);
            let busy = |seed| {
                let run = policy("adaptive")
                    .run(&scenario, seed, Until::End)
                    .unwrap_or_else(|error| panic!("{error}"));
                run.gpus.busy_fraction.iter().sum::<f64>() / need
            };
            (1..=3).map(busy).sum::<f64>() / 3.0
        };
        let cells = [(0.0, 1.0), (1.0, 5.0), (5.0, 10.0), (10.0, 20.0), (20.0, 40.0)]
            .map(|(from, to)| format!("{:.2}", busy(&calm, OVERLOAD_S + from, OVERLOAD_S + to)));
        let steady = busy(&scenario.with_rate(knee / 2.0), 1.0, 21.0);
        println!("| {name} | {} | {steady:.2} |", cells.join(" | "));
    }
    println!();
}

/// The scenario at `rate_rps`, where the first `models` models have `before` of their rate until `at_s`.
fn stepped(scenario: &Scenario, at_s: f64, rate_rps: f64, models: usize, before: f64) -> Scenario {
    let trace = format!("time_s,rate\n0,{before}\n{at_s},1\n1000000,1\n");
    let trace =
        downbeat_sim::RateTrace::parse(&trace, Path::new("step")).unwrap_or_else(|error| panic!("{error}"));
    let mut scenario = scenario.with_rate(rate_rps);
    for model in scenario.models.iter_mut().take(models) {
        model.arrival = Arrival::Trace(trace.clone().into());
    }
    scenario
}

/// The worst model's bad requests in % among those that arrive between two seconds; mean over 10 seeds.
fn measured(scenario: &Scenario, from_s: f64, to_s: f64) -> f64 {
    let mut scenario = scenario.clone();
    scenario.warmup = Span::from_secs_f64(from_s);
    scenario.duration = Span::from_secs_f64(to_s);
    let bad = |seed| {
        let run =
            policy("adaptive").run(&scenario, seed, Until::End).unwrap_or_else(|error| panic!("{error}"));
        run.bad_rate_worst
    };
    10.0 * (1..=10).map(bad).sum::<f64>()
}
