//! Random problems.

use std::path::{Path, PathBuf};

use downbeat_day::Goodput;
use downbeat_plan::{Problem, Simulator};
use downbeat_profile::ProfileFile;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_distr::{Distribution, LogNormal, Normal};
use rand_xoshiro::Xoshiro256PlusPlus;

/// How demands are drawn, in whole GPUs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Draw {
    Normal { mean: f64, deviation: f64 },
    Lognormal { mean_log: f64, deviation_log: f64 },
}

impl Draw {
    pub(crate) const NORMAL: Draw = Draw::Normal { mean: 8.0, deviation: 4.0 };
    pub(crate) const LOGNORMAL: Draw = Draw::Lognormal { mean_log: 2.0, deviation_log: 0.9 };
    /// Most services need a part of a GPU: a median of a seventh.
    pub(crate) const SCARCE: Draw = Draw::Lognormal { mean_log: -2.0, deviation_log: 1.2 };

    fn sample(self, random: &mut Xoshiro256PlusPlus) -> f64 {
        let drawn = match self {
            Draw::Normal { mean, deviation } => Normal::new(mean, deviation).unwrap().sample(random),
            Draw::Lognormal { mean_log, deviation_log } => {
                LogNormal::new(mean_log, deviation_log).unwrap().sample(random)
            }
        };
        drawn.max(0.05)
    }
}

/// What to draw.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instance<'a> {
    pub(crate) gpu: &'a str,
    pub(crate) profiles: &'a str,
    pub(crate) services: usize,
    /// Of so many models at most.
    pub(crate) models: usize,
    pub(crate) slo_ms: f64,
    pub(crate) draw: Draw,
    pub(crate) seed: u64,
    pub(crate) rule: &'a str,
}

impl Instance<'static> {
    pub(crate) fn h200(services: usize, slo_ms: f64, draw: Draw, seed: u64) -> Instance<'static> {
        Instance {
            gpu: "H200-141GB",
            profiles: "profiles/h200.csv",
            services,
            models: usize::MAX,
            slo_ms,
            draw,
            seed,
            rule: "paper",
        }
    }

    /// On the tables of the MIG-serving paper.
    pub(crate) fn a100(services: usize, slo_ms: f64, draw: Draw, seed: u64) -> Instance<'static> {
        Instance {
            gpu: "A100-40GB",
            profiles: "profiles/a100.csv",
            ..Instance::h200(services, slo_ms, draw, seed)
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The problem, as a user would write it and the planner reads it.
pub(crate) fn problem(instance: &Instance<'_>, simulator: &dyn Simulator) -> Problem {
    let file = ProfileFile::read(root().join(instance.profiles)).unwrap();
    let device = file.classes().next().unwrap().device().to_owned();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(instance.seed);
    let rate = |model: &str| {
        let points = file.points(model, &format!("{device}/7g")).unwrap_or_default();
        let in_time = points.iter().filter(|(_, latency)| *latency <= instance.slo_ms);
        in_time.map(|(batch, latency)| f64::from(*batch) / latency * 1e3).fold(0.0, f64::max)
    };
    let mut models: Vec<&str> = file.models().filter(|model| rate(model) > 0.0).collect();
    models.shuffle(&mut random);
    models.truncate(instance.models);
    let mut text = format!(
        "gpu = \"{}\"\nprofiles = \"{}\"\nrule = \"{}\"\n",
        instance.gpu, instance.profiles, instance.rule
    );
    for index in 0..instance.services {
        let model = models[index % models.len()];
        let demand = instance.draw.sample(&mut random) * rate(model);
        text += &format!(
            "[[service]]\nmodel = \"{model}\"\nrate_rps = {demand:.3}\nslo_ms = {}\n",
            instance.slo_ms
        );
    }
    Problem::parse(&text, &root().join("drawn.toml"), simulator).unwrap()
}

/// The same, by a rule that needs no simulator.
pub(crate) fn plain(instance: &Instance<'_>) -> Problem {
    problem(instance, &Goodput::forgetful())
}
