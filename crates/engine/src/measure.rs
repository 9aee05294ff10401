//! How long a model takes for a batch of each size.

use downbeat_oip::Tensor;
use downbeat_profile::Span;

use crate::{Clock, EngineError, Model};

/// When enough was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasureSettings {
    /// Runs of each size before any counts: memory is allocated and kernels are chosen in the first ones.
    pub warmup: u32,
    /// Runs between two looks at the median. At least this many count.
    pub round: u32,
    /// The median is stable when a round moves it by no more than this fraction.
    pub tolerance: f64,
    /// Runs after which a size is done, stable or not.
    pub repeats_max: u32,
    /// Time after which a size is done, stable or not, the warm-up not counted; at least one run counts.
    pub time_max: Span,
    /// After a size that takes longer than this, the measurement ends: with the model's objective here, no time goes
    /// into batches that could never run.
    pub latency_max: Option<Span>,
}

impl MeasureSettings {
    /// For `downbeat profile`: within 2 %, some seconds per size at most.
    pub fn thorough() -> MeasureSettings {
        MeasureSettings {
            warmup: 3,
            round: 10,
            tolerance: 0.02,
            repeats_max: 200,
            time_max: Span::from_millis(5_000),
            latency_max: None,
        }
    }

    /// For the first load of a model, while its users wait: within 5 %, a fraction of a second per size.
    pub fn short() -> MeasureSettings {
        MeasureSettings {
            warmup: 1,
            round: 3,
            tolerance: 0.05,
            repeats_max: 15,
            time_max: Span::from_millis(300),
            latency_max: None,
        }
    }
}

/// What a batch of one size takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The size.
    pub batch: u32,
    /// The median of the runs.
    pub median_ms: f64,
    /// The distance between the quartiles, as a fraction of the median.
    pub spread: f64,
    /// How many runs counted.
    pub repeats: u32,
}

/// Where a measurement stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// The number of sizes that are done.
    pub done: usize,
    /// The number of sizes in all.
    pub sizes: usize,
    /// The size that is being measured, or was just finished, as far as it is known.
    pub current: Measured,
}

/// The sizes to measure for a model of this largest batch: the powers of 2 up to it, and it. A model without a batch
/// dimension, whose largest is 0, has the size 1.
pub fn sizes_up_to(max_batch: u32) -> Vec<u32> {
    let max_batch = max_batch.max(1);
    let powers = std::iter::successors(Some(1u32), |size| size.checked_mul(2));
    powers.take_while(|&size| size < max_batch).chain([max_batch]).collect()
}

/// Measures the sizes in the order given, up to `latency_max`. `make_inputs` makes a batch of so many rows; `progress`
/// is told after every run that counts.
///
/// `between` is called before every run, for what others want of the device, and says how long they can do without it:
/// after a run that takes longer, even if it was to warm up, the measurement ends with what that run took.
pub fn measure(
    model: &mut dyn Model,
    sizes: &[u32],
    make_inputs: &mut dyn FnMut(u32) -> Vec<Tensor>,
    settings: &MeasureSettings,
    clock: &mut dyn Clock,
    between: &mut dyn FnMut() -> Option<Span>,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Vec<Measured>, EngineError> {
    let mut results: Vec<Measured> = Vec::with_capacity(sizes.len());
    let latency_max_ms = settings.latency_max.unwrap_or(Span::MAX).as_millis_f64();
    let mut timed = |inputs: &[Tensor], batch| {
        let run_max = between().unwrap_or(Span::MAX);
        let before = clock.now();
        model.run(inputs, batch)?;
        let took = clock.now() - before;
        Ok((took, took > run_max))
    };
    for (index, &batch) in sizes.iter().enumerate() {
        if results.last().is_some_and(|smaller| smaller.median_ms > latency_max_ms) {
            break;
        }
        let inputs = make_inputs(batch);
        let mut samples = Samples::default();
        for _ in 0..settings.warmup {
            let (took, too_long) = timed(&inputs, batch)?;
            if too_long {
                samples.add(took);
                results.push(samples.summary(batch));
                return Ok(results);
            }
        }
        let mut spent = Span::ZERO;
        loop {
            let (took, too_long) = timed(&inputs, batch)?;
            samples.add(took);
            spent += took;
            let enough = samples.are_enough(settings, spent) || too_long;
            let current = samples.summary(batch);
            progress(&Progress {
                done: index + usize::from(enough),
                sizes: sizes.len(),
                current: current.clone(),
            });
            if enough {
                results.push(current);
                if too_long {
                    return Ok(results);
                }
                break;
            }
        }
    }
    Ok(results)
}

/// The runs of one size.
#[derive(Default)]
struct Samples {
    /// Sorted.
    latencies: Vec<Span>,
    /// The median when the last round ended.
    last_round: Option<Span>,
}

impl Samples {
    fn add(&mut self, latency: Span) {
        let position = self.latencies.partition_point(|&other| other <= latency);
        self.latencies.insert(position, latency);
    }

    fn are_enough(&mut self, settings: &MeasureSettings, elapsed: Span) -> bool {
        let repeats = self.latencies.len() as u32;
        if repeats >= settings.repeats_max || elapsed >= settings.time_max {
            return true;
        }
        if !repeats.is_multiple_of(settings.round.max(1)) {
            return false;
        }
        let (before, now) = (self.last_round, self.quantile(0.5));
        self.last_round = Some(now);
        before.is_some_and(|before| {
            let (before, now) = (before.as_millis_f64(), now.as_millis_f64());
            (now - before).abs() <= settings.tolerance * before
        })
    }

    fn summary(&self, batch: u32) -> Measured {
        // Where the clock is too coarse to see a run at all, the run still takes time.
        let median_ms = self.quantile(0.5).max(Span::from_nanos(1)).as_millis_f64();
        let spread = (self.quantile(0.75) - self.quantile(0.25)).as_millis_f64() / median_ms;
        Measured { batch, median_ms, spread, repeats: self.latencies.len() as u32 }
    }

    /// The lower of the two candidates, where there are two. There is at least one sample.
    fn quantile(&self, q: f64) -> Span {
        let last = self.latencies.len().saturating_sub(1);
        self.latencies.get((q * last as f64).floor() as usize).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
