//! Random mixes whose latency grows in steps, as that of engines with a compiled copy per batch size does.

use std::path::Path;

use downbeat_profile::{Beyond, LatencyProfile, ProfileFile};
use downbeat_sim::{Arrival, GpuClass, Jitter, Model, Scenario, Span, fluid_bound_rps};

use super::Dice;

/// Added to the number, so that other dice are thrown than for the other families.
const DICE: u64 = 200_000;

/// Draws past this fluid bound are thrown again: their runs take too many requests.
const BOUND_MAX_RPS: f64 = 60_000.0;

/// The longest run, in measured seconds and in requests at the fluid bound. Runs in which the rarest model needs more
/// requests are longer.
const MEASURED_S: f64 = 14.0;
const REQUESTS: f64 = 200_000.0;

/// Models that run for less than this have the objective of one that runs as long: networks are slower than they are.
const OBJECTIVE_OF_MS: f64 = 1.0;

/// The form of the steps, one for all models of a scenario.
#[derive(Clone, Copy)]
pub(super) enum Steps {
    /// Profiles of `profiles/h200-ort.csv`.
    Measured,
    /// A line, taken at the next power of two.
    PowersOfTwo,
    /// A line that jumps at some batch sizes.
    Jumps,
}

impl Steps {
    pub(super) fn name(self) -> &'static str {
        match self {
            Steps::Measured => "measured",
            Steps::PowersOfTwo => "powers of two",
            Steps::Jumps => "jumps",
        }
    }
}

/// Draws until the fluid bound is one that can be simulated.
pub(super) fn draw(number: u64) -> (Steps, Scenario) {
    let mut dice = Dice::new(DICE + number);
    loop {
        let (steps, mut scenario) = draw_any(&mut dice, format!("stepped-{number}"));
        let bound = fluid_bound_rps(&scenario);
        if bound > 0.0 && bound <= BOUND_MAX_RPS {
            scenario.duration = scenario.warmup + Span::from_secs_f64((REQUESTS / bound).min(MEASURED_S));
            return (steps, scenario);
        }
    }
}

fn draw_any(dice: &mut Dice, name: String) -> (Steps, Scenario) {
    let steps = dice.one_of(&[Steps::Measured, Steps::PowersOfTwo, Steps::Jumps]);
    let gpus = dice.one_of(&[1, 2, 3, 4, 5, 6, 7, 8]);
    let count = dice.one_of(&[1, 2, 3, 4, 5, 6, 7, 8]);
    let arrival = match dice.one_of(&[false, true]) {
        true => Arrival::Gamma { shape: 0.2 },
        false => Arrival::Poisson,
    };
    let mut models: Vec<Model> = (0..count).map(|index| model(dice, steps, index, &arrival)).collect();
    let weights: f64 = models.iter().map(|model| model.share).sum();
    models.iter_mut().for_each(|model| model.share /= weights);
    let scenario = Scenario {
        name,
        classes: vec![GpuClass { name: "gpu".to_owned(), count: gpus }],
        duration: Span::from_secs_f64(1.0 + MEASURED_S),
        warmup: Span::from_secs_f64(1.0),
        seed: 1,
        delays: Default::default(),
        rule: downbeat_sched::Rule::ADAPTIVE,
        response_reserve: Span::ZERO,
        response: None,
        jitter: Jitter::None,
        total_rps: 1_000.0,
        models,
        faults: Vec::new(),
        autoscale: None,
        subclusters: Vec::new(),
    };
    (steps, scenario)
}

/// A model whose share is still its weight.
fn model(dice: &mut Dice, steps: Steps, index: usize, arrival: &Arrival) -> Model {
    let (name, profile) = match steps {
        Steps::Measured => measured(dice),
        Steps::PowersOfTwo => ("m", powers_of_two(dice)),
        Steps::Jumps => ("m", jumps(dice)),
    };
    let slo_ms = profile.latency(1).as_millis_f64().max(OBJECTIVE_OF_MS) * dice.log_uniform(2.0, 10.0);
    Model {
        name: format!("{name}{index}"),
        slo: Span::from_millis_f64(slo_ms),
        share: f64::from(dice.one_of(&[1, 2, 5])),
        profiles: vec![Some(profile)],
        priority: Default::default(),
        arrival: arrival.clone(),
    }
}

fn measured(dice: &mut Dice) -> (&'static str, LatencyProfile) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles/h200-ort.csv");
    let file = ProfileFile::read(path).unwrap_or_else(|error| panic!("{error}"));
    let model = dice.one_of(&["bert", "resnet50", "mlp"]);
    let max_batch = dice.one_of(&[16, 32, 64]);
    let profile = file.profile(model, "h200", Some(max_batch), Beyond::Refuse);
    (model, profile.unwrap_or_else(|error| panic!("{error}")))
}

fn powers_of_two(dice: &mut Dice) -> LatencyProfile {
    let (alpha_ms, beta_ms) = line(dice);
    table(dice.one_of(&[16, 32, 64, 128]), |batch| alpha_ms * f64::from(batch.next_power_of_two()) + beta_ms)
}

fn jumps(dice: &mut Dice) -> LatencyProfile {
    let (alpha_ms, beta_ms) = line(dice);
    let max_batch = dice.one_of(&[16, 32, 64, 128]);
    let count = dice.one_of(&[1, 2, 3, 4, 5]);
    let jumps: Vec<(f64, f64)> = (0..count)
        .map(|_| {
            let at = dice.log_uniform(2.0, f64::from(max_batch)).round();
            (at, (alpha_ms + beta_ms) * (0.1 + 0.7 * dice.uniform()))
        })
        .collect();
    table(max_batch, |batch| {
        let batch = f64::from(batch);
        let jumped: f64 = jumps.iter().filter(|(at, _)| *at <= batch).map(|(_, jump_ms)| jump_ms).sum();
        alpha_ms * batch + beta_ms + jumped
    })
}

/// Alpha and beta, in ms.
fn line(dice: &mut Dice) -> (f64, f64) {
    let beta_ms = dice.log_uniform(1.0, 12.0);
    (beta_ms * dice.log_uniform(0.01, 0.5), beta_ms)
}

/// Every size is a point of its own: between points, profiles rise in a line.
fn table(max_batch: u32, latency_ms: impl Fn(u32) -> f64) -> LatencyProfile {
    let points: Vec<(u32, f64)> = (1..=max_batch).map(|batch| (batch, latency_ms(batch))).collect();
    LatencyProfile::from_points(&points, max_batch, Beyond::Refuse).unwrap_or_else(|error| panic!("{error}"))
}
