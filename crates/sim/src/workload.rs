//! Traffic: when the requests of a model arrive.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use downbeat_sched::Time;
use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1, Gamma};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::scenario::{Arrival, RatePiece, RateTrace};

/// The random stream that a model's arrivals are drawn from; see [`random_stream`].
const ARRIVALS: u64 = 0;

/// The random stream that execution times are drawn from.
pub(crate) const JITTER: u64 = 1;

/// The random stream that the ways back are drawn from.
pub(crate) const RESPONSES: u64 = 2;

/// One model's arrivals: an endless stream of times that never goes back.
///
/// A stream depends on the seed and on the model's index alone, so that every policy sees the same arrivals, and a
/// change to one model leaves the others' arrivals as they were. At twice the rate the same random numbers are used:
/// a Poisson, uniform or Gamma stream is the same one played twice as fast.
#[derive(Clone, Debug)]
pub struct Arrivals {
    random: Xoshiro256PlusPlus,
    process: Process,
}

/// Times are in nanoseconds as `f64`: below a nanosecond's rounding for a hundred days, and without an error that adds
/// up at rates whose gap is not a whole number of nanoseconds.
#[derive(Clone, Debug)]
enum Process {
    Never,
    Poisson { mean_gap_ns: f64, now_ns: f64 },
    Uniform { gap_ns: f64, phase: f64, count: u64 },
    Gamma { gaps: Gamma<f64>, mean_gap_ns: f64, now_ns: f64 },
    Trace(TraceWalk),
}

impl Arrivals {
    /// The arrivals of the model with the index `model`, at a mean of `rate_rps` requests per second.
    ///
    /// Nothing ever arrives at a rate of 0, nor by a process that no scenario file can name (a negative shape).
    pub fn new(arrival: &Arrival, rate_rps: f64, seed: u64, model: usize) -> Arrivals {
        let mut random = random_stream(seed, model as u64, ARRIVALS);
        let process = Process::new(arrival, rate_rps, &mut random).unwrap_or(Process::Never);
        Arrivals { random, process }
    }

    /// The next arrival, no earlier than the one before; [`Time::NEVER`] where nothing arrives any more.
    #[allow(clippy::should_implement_trait, reason = "an endless stream: an Option would promise an end")]
    #[inline]
    pub fn next(&mut self) -> Time {
        let random = &mut self.random;
        let at_ns = match &mut self.process {
            Process::Never => return Time::NEVER,
            Process::Poisson { mean_gap_ns, now_ns } => {
                *now_ns += unit_exponential(random) * *mean_gap_ns;
                *now_ns
            }
            Process::Uniform { gap_ns, phase, count } => {
                let at_ns = (*phase + *count as f64) * *gap_ns;
                *count += 1;
                at_ns
            }
            Process::Gamma { gaps, mean_gap_ns, now_ns } => {
                *now_ns += gaps.sample(random) * *mean_gap_ns;
                *now_ns
            }
            Process::Trace(walk) => walk.advance(unit_exponential(random)),
        };
        // Past the end of the clock the conversion saturates at `NEVER`.
        Time::from_nanos(at_ns as u64)
    }
}

impl Process {
    /// `None` where nothing ever arrives.
    fn new(arrival: &Arrival, rate_rps: f64, random: &mut Xoshiro256PlusPlus) -> Option<Process> {
        let mean_gap_ns = 1e9 / rate_rps;
        if !(mean_gap_ns > 0.0 && mean_gap_ns < u64::MAX as f64) {
            return None;
        }
        Some(match arrival {
            Arrival::Poisson => Process::Poisson { mean_gap_ns, now_ns: 0.0 },
            Arrival::Uniform => Process::Uniform { gap_ns: mean_gap_ns, phase: random.random(), count: 0 },
            Arrival::Gamma { shape } => {
                let gaps = Gamma::new(*shape, 1.0 / *shape).ok()?;
                Process::Gamma { gaps, mean_gap_ns, now_ns: 0.0 }
            }
            Arrival::OnOff { on, off, factor } => {
                let pieces =
                    vec![RatePiece { end: *on, rate: *factor }, RatePiece { end: *on + *off, rate: 1.0 }];
                let trace = Arc::new(RateTrace::from_pieces(pieces)?);
                let phase: f64 = random.random();
                Process::Trace(TraceWalk::new(trace, mean_gap_ns, phase))
            }
            Arrival::Trace(trace) => Process::Trace(TraceWalk::new(Arc::clone(trace), mean_gap_ns, 0.0)),
        })
    }
}

/// A Poisson process whose rate follows a trace: a walk along the trace, on which each arrival uses up the area under
/// the rate that a unit-rate process would have waited.
#[derive(Clone, Debug)]
struct TraceWalk {
    trace: Arc<RateTrace>,
    length_ns: f64,
    /// Requests that one nanosecond at the trace's rate 1 brings.
    scale: f64,
    /// Requests that one pass of the trace brings.
    per_pass: f64,
    /// When the current pass of the trace began. Before 0 where the first pass begins in the middle.
    pass_begin_ns: f64,
    /// Where in the pass the walk is. Kept apart from the beginning, so that a short pass keeps its precision however
    /// late it is.
    offset_ns: f64,
    piece: usize,
}

impl TraceWalk {
    /// A walk that begins at `phase`, from 0 to 1, of the trace.
    fn new(trace: Arc<RateTrace>, mean_gap_ns: f64, phase: f64) -> TraceWalk {
        let length_ns = trace.length().as_nanos() as f64;
        let offset_ns = phase * length_ns;
        let piece = trace.pieces().partition_point(|piece| piece.end.as_nanos() as f64 <= offset_ns);
        TraceWalk {
            scale: 1.0 / (mean_gap_ns * trace.mean_rate()),
            per_pass: length_ns / mean_gap_ns,
            pass_begin_ns: -offset_ns,
            offset_ns,
            // A phase of almost 1 may round to the very end.
            piece: piece.min(trace.pieces().len() - 1),
            trace,
            length_ns,
        }
    }

    /// Walks until `requests` have come, and says when that is.
    fn advance(&mut self, mut requests: f64) -> f64 {
        // Whole passes in one step: at a low rate a short trace passes many times between two requests.
        // The remainder is exact; a difference would leave many passes' worth of rounding error to walk through.
        let rest = requests % self.per_pass;
        self.pass_begin_ns += ((requests - rest) / self.per_pass).round() * self.length_ns;
        requests = rest;
        loop {
            let piece = self.trace.pieces()[self.piece];
            let rate = piece.rate * self.scale;
            let left_ns = (piece.end.as_nanos() as f64 - self.offset_ns).max(0.0);
            let room = left_ns * rate;
            if requests < room {
                self.offset_ns += requests / rate;
                return self.pass_begin_ns + self.offset_ns;
            }
            requests -= room;
            self.offset_ns += left_ns;
            self.piece += 1;
            if self.piece == self.trace.pieces().len() {
                self.piece = 0;
                self.pass_begin_ns += self.length_ns;
                self.offset_ns = 0.0;
            }
        }
    }
}

fn unit_exponential(random: &mut impl Rng) -> f64 {
    Exp1.sample(random)
}

/// A random stream of its own for each purpose, the same on every run: `purpose` numbers what the numbers are drawn
/// for (0 is arrivals), `index` whom for (the model, the device).
pub(crate) fn random_stream(seed: u64, index: u64, purpose: u64) -> Xoshiro256PlusPlus {
    let key = scramble(scramble(scramble(seed).wrapping_add(index)).wrapping_add(purpose));
    Xoshiro256PlusPlus::seed_from_u64(key)
}

/// One step of SplitMix64: neighbouring numbers come out unrelated.
fn scramble(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
