//! Scenarios that nobody chose: drawn from a number.

mod stepped;

use std::fmt::Write;
use std::ops::RangeInclusive;
use std::path::Path;

use downbeat_sim::Scenario;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A scenario drawn from its number, always the same.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drawn {
    /// `random-N`: 1 to 64 GPUs, 1 to 40 models of mixed profiles, objectives and popularity, Poisson or bursty, in
    /// every fourth with models that run far longer than the others.
    Mixed(u64),
    /// `alone-N`: one such model on one to four GPUs.
    Alone(u64),
    /// `stepped-N`: 1 to 8 models on 1 to 8 GPUs, whose latency grows in steps.
    Stepped(u64),
}

impl Drawn {
    pub(crate) fn named(name: &str) -> Option<Drawn> {
        let (kind, number) = name.split_once('-')?;
        let number = number.parse().ok()?;
        match kind {
            "random" => Some(Drawn::Mixed(number)),
            "alone" => Some(Drawn::Alone(number)),
            "stepped" => Some(Drawn::Stepped(number)),
            _ => None,
        }
    }

    pub(crate) fn scenario(self) -> Scenario {
        let (name, text) = match self {
            Drawn::Mixed(number) => (format!("random-{number}"), text(number, false)),
            // Other dice than those of the mixed ones.
            Drawn::Alone(number) => (format!("alone-{number}"), text(100_000 + number, true)),
            Drawn::Stepped(number) => return stepped::draw(number).1,
        };
        Scenario::parse(&text, Path::new(&name)).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Names the form of the models' profiles.
    pub(crate) fn profiles(self) -> &'static str {
        match self {
            Drawn::Mixed(_) | Drawn::Alone(_) => "lines",
            Drawn::Stepped(number) => stepped::draw(number).0.name(),
        }
    }
}

/// Reads a range of numbers, as in `1200-1299`; `None` for another word and for an empty range.
pub(crate) fn numbers(word: &str) -> Option<RangeInclusive<u64>> {
    let (from, to) = word.split_once('-')?;
    Some(from.parse().ok()?..=to.parse().ok()?).filter(|numbers| !numbers.is_empty())
}

/// The text of a scenario file.
fn text(number: u64, alone: bool) -> String {
    let mut dice = Dice::new(number);
    let gpus = dice.one_of(&[1, 2, 3, 4, 6, 8, 12, 16, 32, 64]);
    let models = dice.log_uniform(1.0, 40.9) as u32;
    let (gpus, models) = if alone { (1 + gpus % 4, 1) } else { (gpus, models) };
    let arrival = dice.one_of(&["{ kind = \"poisson\" }", "{ kind = \"gamma\", shape = 0.2 }"]);
    let long_share = dice.one_of(&[0.0, 0.0, 0.0, 0.2]);
    let mut text = format!("gpus = {gpus}\nduration_s = 15\ntotal_rps = 1000\narrival = {arrival}\n");
    for model in 0..models {
        let slower = if dice.uniform() < long_share { 20.0 } else { 1.0 };
        let beta_ms = slower * dice.log_uniform(1.0, 12.0);
        let alpha_ms = beta_ms * dice.log_uniform(0.01, 0.5);
        let slo_ms = (alpha_ms + beta_ms) * dice.log_uniform(2.2, 20.0);
        let max_batch = dice.one_of(&[16, 32, 64, 128]);
        let weight = f64::from(dice.one_of(&[1, 2, 5])) / slower;
        let _ = write!(
            text,
            "\n[[model]]\nname = \"m{model}\"\nslo_ms = {slo_ms:.1}\nweight = {weight}\n\
             profile = {{ alpha_ms = {alpha_ms:.3}, beta_ms = {beta_ms:.2}, max_batch = {max_batch} }}\n"
        );
    }
    text
}

struct Dice(Xoshiro256PlusPlus);

impl Dice {
    fn new(number: u64) -> Dice {
        Dice(Xoshiro256PlusPlus::seed_from_u64(number))
    }

    fn uniform(&mut self) -> f64 {
        self.0.random()
    }

    fn log_uniform(&mut self, from: f64, to: f64) -> f64 {
        from * (to / from).powf(self.uniform())
    }

    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.0.random_range(0..values.len())]
    }
}
