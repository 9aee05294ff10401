//! The clairvoyant minimum: for every minute the fewest GPUs that keep the objectives in it, tried out on the arrivals
//! that will come.

use downbeat_sched::{Span, Time};

use super::elastic::Elastic;
use super::ledger::Tally;
use super::report::{BAD_MAX, COUNTED, MinuteReport};

const MINUTE: Span = Span::from_millis(60_000);

/// A minute is tried in slices, so that a trial that is going badly ends early.
const SLICES: u64 = 6;

/// A trial is given up when so many of the requests until then were bad.
const HOPELESS: f64 = 0.05;

/// What one who knows the future does.
pub(super) struct Foresight {
    /// GPUs, by minute.
    pub(super) gpus: Vec<u32>,
    pub(super) minutes: Vec<MinuteReport>,
    pub(super) tallies: Vec<Vec<Tally>>,
    /// Requests that wait per GPU, in the mean over the minutes in which there are the most GPUs.
    pub(super) waiting_at_peak: f64,
    pub(super) gpu_seconds: f64,
    /// Minutes in which even the most GPUs that there may be are too few.
    pub(super) hopeless: u64,
    pub(super) requests: u64,
}

/// A minute that was tried with some number of GPUs.
struct Trial {
    cluster: Elastic,
    gpus: u32,
    kept: bool,
    report: MinuteReport,
    waiting: f64,
}

/// Finds it out, minute by minute; `on_minute` is called after each.
///
/// The state at the end of a minute is the beginning of the next, so that the result is one run that was really
/// simulated.
pub(super) fn foresee(
    mut cluster: Elastic,
    minutes: usize,
    limits: (u32, u32),
    provision: Span,
    on_minute: &(dyn Fn() + Sync),
) -> Foresight {
    let mut found = Foresight {
        gpus: Vec::with_capacity(minutes),
        minutes: Vec::with_capacity(minutes),
        tallies: Vec::with_capacity(minutes),
        waiting_at_peak: 0.0,
        gpu_seconds: 0.0,
        hopeless: 0,
        requests: 0,
    };
    let began_with = cluster.gpus();
    let mut guess = began_with;
    let mut waiting: Vec<f64> = Vec::with_capacity(minutes);
    for minute in 0..minutes {
        let best = fewest(&cluster, minute, guess, limits);
        found.hopeless += u64::from(!best.kept);
        guess = best.gpus;
        found.gpus.push(best.gpus);
        found.minutes.push(best.report);
        waiting.push(best.waiting / f64::from(best.gpus.max(1)));
        cluster = best.cluster;
        // What was answered in the minute before is complete.
        found.tallies.extend(cluster.ledger_mut().forget(minute));
        on_minute();
    }
    cluster.close();
    found.requests = cluster.ledger().arrivals;
    found.tallies.extend(cluster.ledger_mut().forget(usize::MAX));
    let peak = found.gpus.iter().copied().max().unwrap_or(1);
    let at_peak =
        found.gpus.iter().zip(&waiting).filter(|(gpus, _)| **gpus == peak).map(|(_, waiting)| *waiting);
    let count = at_peak.clone().count().max(1);
    found.waiting_at_peak = at_peak.sum::<f64>() / count as f64;
    found.gpu_seconds = bill(&found.gpus, began_with, provision).as_secs_f64();
    found
}

/// The fewest GPUs, from a guess on, that keep a minute; where none do, the most that there may be.
fn fewest(cluster: &Elastic, minute: usize, guess: u32, (min, max): (u32, u32)) -> Trial {
    let fewer = guess.saturating_sub(1).max(min);
    let (at_guess, below) = rayon::join(
        || Trial::run(cluster, minute, guess),
        || (fewer < guess).then(|| Trial::run(cluster, minute, fewer)),
    );
    if let Some(mut best) = below.filter(|trial| trial.kept) {
        while best.gpus > min {
            let next = Trial::run(cluster, minute, best.gpus - 1);
            if !next.kept {
                break;
            }
            best = next;
        }
        return best;
    }
    let mut best = at_guess;
    while !best.kept && best.gpus < max {
        let (one, two) = (best.gpus + 1, (best.gpus + 2).min(max));
        let (first, second) =
            rayon::join(|| Trial::run(cluster, minute, one), || Trial::run(cluster, minute, two));
        best = if first.kept { first } else { second };
    }
    if best.kept { best } else { Trial::run_whole(cluster, minute, max) }
}

impl Trial {
    fn run(cluster: &Elastic, minute: usize, gpus: u32) -> Trial {
        Trial::try_out(cluster, minute, gpus, true)
    }

    fn run_whole(cluster: &Elastic, minute: usize, gpus: u32) -> Trial {
        Trial::try_out(cluster, minute, gpus, false)
    }

    fn try_out(cluster: &Elastic, minute: usize, gpus: u32, may_give_up: bool) -> Trial {
        let mut cluster = cluster.clone();
        cluster.set(gpus);
        let begin = Time::ZERO + MINUTE * minute as u64;
        let mut total = MinuteTotals::default();
        for slice in 1..=SLICES {
            let signals = cluster.advance(begin + Span::from_nanos(MINUTE.as_nanos() * slice / SLICES));
            total.add(&signals);
            if may_give_up && total.bad as f64 > HOPELESS * total.answered as f64 + 20.0 {
                break;
            }
        }
        let tallies = cluster.ledger().minute(minute);
        let kept = total.slices == SLICES && is_kept(tallies);
        let report = total.report(gpus, 0, tallies);
        Trial { kept, gpus, report, waiting: total.waiting / total.slices.max(1) as f64, cluster }
    }
}

/// Whether a minute keeps its objectives: each model of which there are enough requests to tell, and the others
/// together.
fn is_kept(tallies: &[Tally]) -> bool {
    let (many, few): (Vec<&Tally>, Vec<&Tally>) = tallies.iter().partition(|tally| tally.answered >= COUNTED);
    let bad = |tally: &Tally| tally.bad as f64 > BAD_MAX * tally.answered as f64;
    let together = few.iter().fold(Tally::default(), |sum, tally| Tally {
        answered: sum.answered + tally.answered,
        bad: sum.bad + tally.bad,
    });
    !many.into_iter().any(bad) && !bad(&together)
}

/// What one pays who has this many GPUs in each minute and asks for each as late as possible: its time to come, or the
/// time until it is needed again, where that is shorter.
pub(super) fn bill(gpus: &[u32], began_with: u32, provision: Span) -> Span {
    let most = gpus.iter().copied().max().unwrap_or(0);
    let mut paid = Span::ZERO;
    for rank in 1..=most {
        // The end of the last minute in which it was there.
        let mut there_until = (rank <= began_with).then_some(0);
        for (minute, _) in (0u64..).zip(gpus).filter(|(_, count)| **count >= rank) {
            let away = there_until.map_or(MINUTE * minute, |until| MINUTE * (minute - until));
            paid = paid + MINUTE + away.min(provision);
            there_until = Some(minute + 1);
        }
    }
    paid
}

/// The sums of a minute's signals.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MinuteTotals {
    slices: u64,
    time_s: f64,
    arrivals: u64,
    answered: u64,
    bad: u64,
    needed: f64,
    busy: f64,
    waiting: f64,
}

impl MinuteTotals {
    pub(super) fn add(&mut self, signals: &downbeat_scale::Signals) {
        let over_s = signals.over.as_secs_f64();
        self.slices += 1;
        self.time_s += over_s;
        self.arrivals += signals.arrivals;
        self.answered += signals.answered;
        self.bad += signals.bad;
        self.needed += signals.needed * over_s;
        self.busy += signals.busy_gpus() * over_s;
        self.waiting += signals.waiting as f64;
    }

    pub(super) fn report(&self, gpus: u32, coming: u32, tallies: &[Tally]) -> MinuteReport {
        let per = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let counted = tallies.iter().filter(|tally| tally.answered >= COUNTED);
        MinuteReport {
            gpus,
            coming,
            rate_rps: per(self.arrivals as f64, self.time_s),
            bad_rate: per(self.bad as f64, self.answered as f64),
            bad_rate_worst: counted.map(Tally::bad_rate).fold(0.0, f64::max),
            needed: per(self.needed, self.time_s),
            busy: per(self.busy, self.time_s),
        }
    }
}
