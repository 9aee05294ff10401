//! A load for the scheduler alone: requests that are made up on the shards' threads, devices that are emulated.

mod account;
mod churn;
mod devices;
mod generator;
mod single;
mod stalls;

#[cfg(test)]
mod tests;

use std::thread;
use std::time::Duration;

use downbeat_sched::{ClassId, Delays, GpuId, LatencyProfile, ModelId, ModelSpec, Rule, Span, Time};
use serde::Serialize;

use crate::clock::{self, Clock};
use crate::host::DomainId;
use crate::runtime::Runtime;
use crate::settings::{RuntimeError, Settings};
use crate::sync::Arc;

pub use account::{LagReport, LoadReport};
pub use devices::EmulatedDevices;

use account::Account;
use generator::Generator;

/// What the scheduler is loaded with. All models are alike but for their popularity.
#[derive(Clone, Debug, Serialize)]
pub struct Load {
    /// Models.
    pub models: u32,
    /// Emulated devices, of all domains together.
    pub gpus: u32,
    /// Threads with models, each with its part of the load.
    pub shards: u16,
    /// Matchmakers, each with its part of models and devices.
    pub domains: u16,
    /// Requests per second of all models together; gaps are exponential.
    pub rate: f64,
    /// The exponent of popularity: 0 for models that are equally popular, 1 for Zipf's law.
    pub zipf: f64,
    /// From arrival to response.
    pub slo: Span,
    /// l(b) = alpha * b + beta.
    pub alpha_ms: f64,
    /// See `alpha_ms`.
    pub beta_ms: f64,
    /// The largest batch.
    pub max_batch: u32,
    /// How long it is measured.
    pub duration: Span,
    /// How long it runs before it is measured.
    pub warmup: Span,
    /// Threads never sleep.
    pub spin: bool,
    /// Threads are bound to processors.
    pub pin: bool,
    /// How many devices and models come and go every second meanwhile.
    pub churn: f64,
    /// What all randomness grows from.
    pub seed: u64,
}

/// Why a load cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Something is out of range.
    #[error("{0}")]
    Invalid(String),
    /// The threads did not start, or did not come back.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

/// What passes between scheduler and device, as the authors of Symphony assume it.
const DELAYS: Delays = Delays { control: Span::from_micros(100), data: Span::from_micros(50) };

/// What is kept of each deadline for the way back.
const RESERVE: Span = Span::from_millis(2);

/// Time for the threads to learn of models and devices before the first request.
const SETTLING: Span = Span::from_millis(300);

impl Load {
    /// How many devices the load needs: what the batches that fit into the SLO keep busy.
    pub fn needed_gpus(&self) -> Result<f64, LoadError> {
        let profile = self.profile()?;
        let gap = Span::from_secs_f64(f64::from(self.models) / self.rate);
        let batch = profile.largest_within(self.allowance() - DELAYS.control, DELAYS.data + gap).max(1);
        Ok(self.rate * profile.latency(batch).as_secs_f64() / f64::from(batch))
    }

    /// Runs it and says what came of it. Takes `warmup` and `duration` in real time, and about an SLO more.
    pub fn run(&self) -> Result<LoadReport, LoadError> {
        self.check()?;
        let profile = self.profile()?;
        let settings = Settings {
            delays: DELAYS,
            domains: self.domains,
            models: self.models + churn::PASSING_MODELS,
            gpus: self.gpus,
            spin: self.spin,
            pin: self.pin,
            ..Settings::default()
        };
        let clock = Clock::start();
        let devices = Arc::new(EmulatedDevices::new(self.gpus as usize));
        let weights = self.weights();
        let placed = self.place(&weights);
        // All models and devices are there before the first request.
        let setup = Span::from_nanos(2_000) * u64::from(self.models + self.gpus);
        let begin = clock.now() + SETTLING + setup;
        let account = Account::new(begin + self.warmup, self.duration);
        let hosts = (0u16..).zip(&placed).map(|(index, models)| {
            Generator::new(self, index, models, &weights, begin, Arc::clone(&devices), account.clone())
        });
        let runtime = Runtime::start(Rule::ADAPTIVE, &settings, clock, hosts.collect())?;
        for (shard, models) in placed.iter().enumerate() {
            for &model in models {
                let spec = ModelSpec::new([(ClassId(0), profile.clone())]);
                runtime.add_model_on(
                    self.domain_of(model.0),
                    model,
                    spec,
                    weights[model.0 as usize] * self.rate,
                    shard,
                )?;
            }
        }
        for gpu in (0..self.gpus).map(GpuId) {
            runtime.join(self.domain_of(gpu.0), gpu, ClassId(0))?;
        }
        let late = clock.now() > begin;
        let cpu = account::CpuMeter::start();
        sleep_until(&clock, account.measured_from());
        let cpu_from = cpu.used();
        if self.churn > 0.0 {
            self.come_and_go(&runtime, &clock, &profile, account.measured_until())?;
        }
        sleep_until(&clock, account.measured_until());
        let cpu_used = cpu.used() - cpu_from;
        sleep_until(&clock, account.measured_until() + self.slo + SETTLING);
        let hosts = runtime.stop()?;
        if late {
            return Err(LoadError::Invalid(
                "setting up took too long; fewer models or devices, please".to_owned(),
            ));
        }
        Ok(LoadReport::sum(self, hosts.into_iter().map(Generator::into_account), cpu_used))
    }

    fn profile(&self) -> Result<LatencyProfile, LoadError> {
        LatencyProfile::linear(self.alpha_ms, self.beta_ms, self.max_batch)
            .map_err(|error| LoadError::Invalid(error.to_string()))
    }

    /// From arrival to the deadline that the scheduler sees.
    fn allowance(&self) -> Span {
        self.slo - RESERVE
    }

    fn check(&self) -> Result<(), LoadError> {
        let profile = self.profile()?;
        let invalid = |message: String| Err(LoadError::Invalid(message));
        if self.models == 0 || self.gpus == 0 || self.shards == 0 || self.domains == 0 {
            return invalid("there must be at least one model, device, shard and domain".to_owned());
        }
        if u32::from(self.shards) > self.models {
            return invalid(format!(
                "{} shards for {} models: each shard must have a model; use more models or fewer shards",
                self.shards, self.models
            ));
        }
        if u32::from(self.domains) > self.gpus {
            return invalid(format!(
                "{} domains for {} devices: each must have one",
                self.domains, self.gpus
            ));
        }
        if !(self.rate > 0.0 && self.rate <= 1e9) {
            return invalid(format!("the rate must be above 0 and at most 1e9 (is {})", self.rate));
        }
        if !(0.0..=1e5).contains(&self.churn) {
            return invalid(format!(
                "what comes and goes must be from 0 to 1e5 a second (is {})",
                self.churn
            ));
        }
        if !(0.0..=10.0).contains(&self.zipf) {
            return invalid(format!("the exponent of popularity must be from 0 to 10 (is {})", self.zipf));
        }
        let alone = profile.latency(1) + DELAYS.lead(1);
        if alone > self.allowance() {
            return invalid(format!(
                "the SLO of {} ms cannot be met: a request alone takes {} ms, and {} ms are kept for the response",
                self.slo.as_millis_f64(),
                alone.as_millis_f64(),
                RESERVE.as_millis_f64()
            ));
        }
        Ok(())
    }

    /// The domain of a model or a device of this number.
    fn domain_of(&self, number: u32) -> DomainId {
        DomainId((number % u32::from(self.domains)) as u16)
    }

    /// The share of each model in all requests.
    fn weights(&self) -> Vec<f64> {
        let raw: Vec<f64> = (1..=self.models).map(|rank| f64::from(rank).powf(-self.zipf)).collect();
        let sum: f64 = raw.iter().sum();
        raw.into_iter().map(|weight| weight / sum).collect()
    }

    /// The models of each shard: the most popular first, each to the shard with the least load so far.
    fn place(&self, weights: &[f64]) -> Vec<Vec<ModelId>> {
        let mut shards = vec![(0.0_f64, Vec::new()); usize::from(self.shards)];
        for (model, weight) in (0..).map(ModelId).zip(weights) {
            let least = shards.iter_mut().min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.len().cmp(&b.1.len())));
            if let Some((load, models)) = least {
                *load += weight;
                models.push(model);
            }
        }
        shards.into_iter().map(|(_, models)| models).collect()
    }
}

#[expect(clippy::disallowed_methods, reason = "the benchmark waits for the threads that it measures")]
fn sleep_until(clock: &Clock, then: Time) {
    loop {
        let left = clock::until(clock.now(), then);
        if left == Duration::ZERO {
            return;
        }
        thread::sleep(left);
    }
}
