//! The guard of deferral: how early windows open.

use downbeat_profile::Span;

use super::{HeadStart, Rule};
use crate::{Candidate, Need, Pressure, Release, Time};

/// The least share of the devices that is reckoned to be spare, so that nothing is divided by zero or less.
const SPARE_MIN: f64 = 0.02;

/// With this share of the devices spare or more, the work of others counts for no more than the batch itself; with
/// less, for more, because then one wait leads to the next. With one device for twice as much: there is no other one.
const SPARE_CALM: f64 = 0.1;

/// How much the spare devices are relied on. Where batches come at random, one that finds all devices busy waits for
/// l / (2 * spare) on average; 2 would keep devices busy with small batches at half load already.
const RELIANCE: f64 = 3.0;

/// However few devices are spare, a device is waited for no more than twice as long as all of them need for the work of
/// others: a batch that starts earlier than that is small for nothing, and the devices have none to spare.
const WAIT_MOST: f64 = 2.0;

/// How many times more the gap between two batches counts where requests are lost and devices are taken at random.
const LOSS_HASTE: f64 = 10.0;

/// How strongly a model that loses requests is drawn forward: one that loses an eighth goes before all that come in
/// while a device is waited for. Much more, and models overtake each other for a single lost request.
const LOSS_PULL: u64 = 8;

/// The mean wait for a device counts in that for no more than so many times what losers can wait: candidates that take
/// far longer and wait for their window are no wait for a device.
const PULL_MOST: u64 = 2;

/// How early windows open on a class of devices, from how hard it is pressed.
///
/// Under [`HeadStart::Wait`] a window opens earlier by about the time that a batch waits for a device where other models
/// want one too:
///
/// ```text
///   spare      = gpus - need - deviation of need
///   others     = min(backlog - own, own * max(1, 2 / gpus, gpus / (10 * spare)))
///   wait       = others * min(randomness / (3 * spare), 2 / gpus)
///   lost       = min(1, lost share / 0.001)
///   gaps       = (1 + 10 * randomness * lost) * share of the others in the need
///              + (1 + lost) * own share, if there is a single device
///   head start = wait + gaps * gap between two batches
/// ```
///
/// Waiting makes batches larger and costs nothing as long as a device can be found when the window opens. How soon one
/// is found depends on the devices that the traffic does not keep busy, and on how randomly the others are taken: a
/// model takes turns with itself, so that what is random is hardly more than one device for each model. A model alone
/// never guards against itself in this: its batches leave one after the other, each waits for its own window. The gap
/// between two batches, the longest that can hold all devices over their number, is added where all devices are busy at
/// once for more than a moment: with one device or two, at almost any load. Where requests are lost it counts for more:
/// then moments in which a device is idle are too dear to be waited through. A model's own part in the traffic is left
/// out, because its batches leave one after the other; only on a single device they wait for each other, too, and if
/// requests are lost, for one more: the batch that runs may have begun late. The gap is not for batches longer than
/// others can wait that would take the last idle device: they are the reason for it.
/// Where traffic of several levels needs all devices, windows open as early as others' work says, without that limit.
/// See `docs/policy.md` for what it gives.
#[derive(Clone, Copy, Debug)]
pub struct Guard {
    /// How many times a batch's own latency the work of others counts for at most.
    others_most: f64,
    /// How long a device is waited for, for each second of others' work: over the spare devices, as far as they are
    /// relied on.
    wait: f64,
    /// The gap between two batches, as far as all devices are busy at once, for a model that needs next to nothing
    /// itself.
    gap_ns: f64,
    /// What is taken off it for each device that the model itself needs.
    gap_ns_per_need: f64,
    /// `wait` on the last device, where nothing beyond the mean counts.
    wait_on_last: f64,
    /// The gap on the last device, to which nobody comes early with a longer batch than others can wait for.
    gap_on_last_ns: f64,
    /// Under [`HeadStart::Backlog`] nothing of this counts, and windows open early by this part of the backlog.
    of_backlog: Option<f64>,
}

impl Default for Guard {
    fn default() -> Self {
        Guard::new(&Pressure::default())
    }
}

impl Guard {
    /// The guard of the rule that is followed under this pressure.
    pub fn new(pressure: &Pressure) -> Guard {
        let gpus = f64::from(pressure.gpus.max(1));
        let spare = pressure.spare_gpus().max(SPARE_MIN * gpus);
        let randomness = pressure.randomness;
        // All devices are busy for about this part of the time; then one is free after the gap between two batches.
        let gap_ns = pressure.holding.as_nanos() as f64 / gpus;
        let gap_ns = gap_ns * (pressure.all_busy / Pressure::ALL_BUSY_MAX).min(1.0);
        let lost = pressure.lost();
        let gaps = 1.0 + LOSS_HASTE * randomness * lost;
        // A device alone is waited for behind one's own batches, too, and the one that runs may have begun late.
        let own_gaps = if pressure.gpus == 1 { 1.0 + lost } else { 0.0 };
        let need = pressure.need.mean();
        let per_need = |ns: f64| if need > 0.0 { ns / need } else { 0.0 };
        // A higher level must not wait because a lower one needs all devices: where these are always busy, it starts as
        // soon as it can.
        let limited = need < gpus || pressure.higher.is_none();
        let wait_most = if limited { WAIT_MOST / gpus } else { f64::INFINITY };
        Guard {
            others_most: (SPARE_CALM * gpus / spare).max(2.0 / gpus).max(1.0),
            wait: (randomness / (RELIANCE * spare)).min(wait_most),
            gap_ns: gap_ns * gaps,
            gap_ns_per_need: per_need(gap_ns * (gaps - own_gaps)),
            wait_on_last: randomness / (RELIANCE * (gpus - need).max(SPARE_MIN * gpus)),
            gap_on_last_ns: gap_ns.min(pressure.patience.as_nanos() as f64),
            of_backlog: match pressure.rule.head_start {
                HeadStart::Backlog(times) => Some(times.max(0.0) / gpus),
                HeadStart::Wait => None,
            },
        }
    }

    /// How long before its frontrun a candidate of `latency` may start, of a model that needs `own` devices itself,
    /// where so much work waits.
    #[inline]
    pub fn head_start(&self, backlog: Span, latency: Span, own: Need) -> Span {
        if let Some(part) = self.of_backlog {
            // However little waits.
            if part.is_infinite() {
                return Span::MAX;
            }
            return Span::from_nanos((part * backlog.as_nanos() as f64) as u64);
        }
        let others_ns = (backlog - latency).as_nanos() as f64;
        let latency_ns = latency.as_nanos() as f64;
        let wait_ns = others_ns.min(latency_ns * self.others_most) * self.wait;
        let gap_ns = self.gap_ns - self.gap_ns_per_need * own.mean();
        // Below 0 it is 0: a model's need is told sooner than the sum of all is reckoned with.
        Span::from_nanos((wait_ns + gap_ns) as u64)
    }

    /// The same on the last idle device, for a candidate that would hold it for longer than others can wait.
    ///
    /// Without what bursts and scarce devices add, and with less of the gap: a batch that holds the last device for
    /// long is the very reason why others must start early.
    pub fn head_start_on_last(&self, backlog: Span, latency: Span) -> Span {
        if self.of_backlog.is_some() {
            return self.head_start(backlog, latency, Need::default());
        }
        let others = (backlog - latency).min(latency).as_nanos() as f64;
        Span::from_nanos((others * self.wait_on_last + self.gap_on_last_ns) as u64)
    }
}

impl Rule {
    /// The reason given for a batch that starts before its own window opened.
    pub(crate) fn early(&self) -> Release {
        if self.is_eager() { Release::Eager } else { Release::Guard }
    }

    /// What models with open windows are ordered by when they wait for a device, within a priority: the earliest first.
    ///
    /// A model that loses requests goes before others, the more it loses the further: where there is too much for all,
    /// all lose alike. By deadlines alone, those with the least time or the smallest batches would lose most.
    pub(crate) fn urgency(pressure: &Pressure, candidate: &Candidate) -> Time {
        if pressure.rule.head_start != HeadStart::Wait {
            return candidate.latest;
        }
        let wait_ns = pressure.backlog.as_nanos() / u64::from(pressure.gpus.max(1));
        let wait_ns = wait_ns.min(PULL_MOST * pressure.losers_patience.as_nanos());
        let loss = LOSS_PULL * u64::from(candidate.loss_permille);
        candidate.latest - Span::from_nanos(wait_ns / 1_000 * loss)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Candidate, ClassId, Guard, HigherNeeds, Need, Pressure, Priority, Rule, Span, Time};

    fn pressure(gpus: u32, backlog_ms: u64, need: f64, deviation: f64) -> Pressure {
        let need = Need::new(need, deviation);
        Pressure {
            gpus,
            backlog: Span::from_millis(backlog_ms),
            need,
            holding: Span::ZERO,
            all_busy: Pressure::reckon_all_busy(need, gpus),
            patience: Span::ZERO,
            // Many small models.
            randomness: 1.0,
            loss: 0.0,
            losers_patience: Span::ZERO,
            higher: HigherNeeds::default(),
            rule: Rule::ADAPTIVE,
        }
    }

    /// Of a model that needs next to nothing itself.
    fn head_start(pressure: &Pressure) -> Span {
        head_start_of(pressure, 0.0)
    }

    fn head_start_of(pressure: &Pressure, own_need: f64) -> Span {
        head_start_with(pressure, Need::new(own_need, 0.0))
    }

    fn head_start_with(pressure: &Pressure, own: Need) -> Span {
        let guard = Guard::new(pressure);
        guard.head_start(pressure.backlog, Span::from_millis(10), own)
    }

    /// 8 - 6 = 2 spare devices: 6 / (3 * 2) = 1 ms for 6 ms of others' work.
    #[test]
    fn a_window_opens_early_by_what_spare_devices_need_for_the_work_of_others() {
        assert_eq!(head_start(&pressure(8, 16, 6.0, 0.0)), Span::from_millis(1));
    }

    /// However much waits, it is the batch's own 10 ms that count: 10 / (3 * 2).
    #[test]
    fn the_work_of_others_counts_for_no_more_than_the_batch_itself() {
        let most = Span::from_nanos(1_666_666);
        assert_eq!(head_start(&pressure(8, 30, 6.0, 0.0)), most);
        assert_eq!(head_start(&pressure(8, 3_000, 6.0, 0.0)), most);
    }

    /// With 0.4 of 8 devices spare it counts for twice the batch, and waits no longer than twice what 8 devices need
    /// for that.
    #[test]
    fn with_little_spare_the_work_of_others_counts_for_more() {
        let early_ms = head_start(&pressure(8, 3_000, 7.6, 0.0)).as_millis_f64();
        assert!((early_ms - 5.0).abs() < 0.001, "{early_ms}");
    }

    /// 6 / (3 * 1) would be 2 ms for 6 ms of others' work, and 6 / (3 * 0.16) more than 12 ms.
    #[test]
    fn however_few_are_spare_a_device_is_waited_for_twice_as_long_as_all_need_for_others_at_most() {
        for need in [7.0, 8.0, 80.0] {
            assert_eq!(head_start(&pressure(8, 16, need, 0.0)), Span::from_micros(1_500));
        }
    }

    #[test]
    fn where_a_lower_level_needs_all_devices_everything_that_waits_starts_as_soon_as_it_can() {
        let higher = HigherNeeds::from_numbers([1 << 56 | 3_000_000, 0, 0]);
        for need in [8.0, 80.0] {
            let pressure = Pressure { higher, ..pressure(8, 70, need, 0.0) };
            assert!(head_start(&pressure) > Span::from_millis(100));
        }
    }

    /// A standard deviation of 2 leaves 2 spare devices.
    #[test]
    fn bursts_leave_fewer_devices_spare() {
        let [calm, bursty] = [0.0, 2.0].map(|deviation| head_start(&pressure(8, 16, 4.0, deviation)));
        assert_eq!((calm, bursty), (Span::from_micros(500), Span::from_millis(1)));
    }

    #[test]
    fn models_that_take_turns_with_themselves_need_not_start_early() {
        let pressure = Pressure { randomness: 0.5, ..pressure(8, 16, 6.0, 0.0) };
        assert_eq!(head_start(&pressure), Span::from_micros(500));
    }

    #[test]
    fn a_model_alone_waits_for_its_window_at_any_load_and_loss() {
        for need in [0.0, 4.0, 8.0, 80.0] {
            for loss in [0.0, 0.5] {
                let pressure =
                    Pressure { holding: Span::from_millis(20), loss, ..pressure(8, 10, need, 0.0) };
                assert!(head_start_of(&pressure, need) < Span::from_micros(1));
            }
        }
    }

    /// One device is needed, and the gap is 10 ms. A model that needs a quarter of it itself has three quarters of the
    /// gap; but a device alone is waited for behind one's own batches, too.
    #[test]
    fn the_gap_counts_as_far_as_it_is_others_who_take_the_devices() {
        let gap = |gpus, own_need| {
            let holding = Span::from_millis(10 * u64::from(gpus));
            let early = head_start_of(&Pressure { holding, ..pressure(gpus, 10, 1.0, 0.0) }, own_need);
            early.as_millis_f64()
        };
        assert_eq!([gap(2, 0.0), gap(2, 0.25), gap(2, 1.0)], [10.0, 7.5, 0.0]);
        assert_eq!([gap(1, 0.0), gap(1, 0.25), gap(1, 1.0)], [10.0, 10.0, 10.0]);
    }

    /// The gap is 10 ms and devices are hardly taken at random. Where requests are lost, a model that has the only
    /// device to itself starts two gaps early, one that has half of it three, for the others' sake; on two devices a
    /// model alone waits as ever.
    #[test]
    fn where_requests_are_lost_a_model_alone_on_one_device_starts_two_of_its_batches_early() {
        let early_ms = |gpus, loss, own_need| {
            let holding = Span::from_millis(10 * u64::from(gpus));
            let pressure = Pressure { holding, loss, randomness: 0.3, ..pressure(gpus, 10, 1.0, 0.0) };
            head_start_of(&pressure, own_need).as_millis_f64()
        };
        assert_eq!([0.0, 0.001].map(|loss| early_ms(1, loss, 1.0)), [10.0, 20.0]);
        assert_eq!(early_ms(1, 0.001, 0.5), 30.0);
        assert_eq!([0.0, 0.001].map(|loss| early_ms(2, loss, 1.0)), [0.0, 0.0]);
    }

    /// A loss of 0.1 % or more makes it 11 times the gap of 10 ms; half of that 6 times; so does 0.1 % where half of
    /// what is in use is taken at random.
    #[test]
    fn where_requests_are_lost_the_gap_counts_for_more() {
        let early_ms = |randomness, loss| {
            let holding = Span::from_millis(20);
            head_start(&Pressure { holding, randomness, loss, ..pressure(2, 10, 1.0, 0.0) }).as_millis_f64()
        };
        assert_eq!([0.0, 0.0005, 0.001, 0.2].map(|loss| early_ms(1.0, loss)), [10.0, 60.0, 110.0, 110.0]);
        assert_eq!([0.0, 0.001].map(|loss| early_ms(0.5, loss)), [10.0, 60.0]);
    }

    /// 1 - 0.5 = 0.5 spare: 2 * 10 / (3 * 0.5).
    #[test]
    fn with_one_device_the_work_of_others_counts_twice() {
        let early_ms = head_start(&pressure(1, 3_000, 0.5, 0.0)).as_millis_f64();
        assert!((early_ms - 13.333).abs() < 0.01, "{early_ms}");
    }

    /// One of two devices is needed, so both are busy a quarter of the time: too often to rely on finding one. A batch
    /// of 20 ms on each frees one every 10 ms. On 8 devices of which 1 is needed, all are hardly ever busy.
    #[test]
    fn where_all_devices_are_often_busy_a_window_opens_early_by_the_gap_between_two_batches() {
        let holding = Span::from_millis(20);
        assert_eq!(head_start(&Pressure { holding, ..pressure(2, 10, 1.0, 0.0) }), Span::from_millis(10));
        assert!(head_start(&Pressure { holding, ..pressure(8, 10, 1.0, 0.0) }) < Span::from_micros(1));
    }

    /// One of two devices is needed: the gap is 10 ms, and others' 20 ms count for 10 / (3 * 1). On the last device
    /// only as much of the gap counts as others can wait, and bursts do not.
    #[test]
    fn on_the_last_device_the_gap_counts_no_more_than_others_can_wait_and_bursts_do_not() {
        let own = Span::from_millis(10);
        for deviation in [0.0, 0.5] {
            for (patience_ms, early_ms) in [(2, 10.0 / 3.0 + 2.0), (50, 10.0 / 3.0 + 10.0)] {
                let (holding, patience) = (Span::from_millis(20), Span::from_millis(patience_ms));
                let pressure = Pressure { holding, patience, ..pressure(2, 30, 1.0, deviation) };
                let guard = Guard::new(&pressure);
                let on_last = guard.head_start_on_last(pressure.backlog, own);
                assert!((on_last.as_millis_f64() - early_ms).abs() < 0.001, "{on_last:?}, not {early_ms} ms");
                assert!(on_last <= head_start(&pressure));
            }
        }
    }

    /// Due at the same time, one loses 5 % of its requests: it goes before by 8 * 0.05 of the mean wait, 80 / 8 = 10
    /// ms; or of 4 ms, if losers can wait for 2 ms.
    #[test]
    fn a_model_that_loses_requests_goes_before_one_that_does_not() {
        let candidate = |loss_permille| Candidate {
            class: ClassId(0),
            size: 1,
            frontrun: Time::ZERO,
            latest: Time::ZERO + Span::from_millis(50),
            latency: Span::from_millis(10),
            priority: Priority(1),
            full: false,
            drains: false,
            loss_permille,
        };
        let urgency = |patience_ms, loss_permille| {
            let losers_patience = Span::from_millis(patience_ms);
            let pressure = Pressure { losers_patience, ..pressure(8, 80, 4.0, 0.0) };
            Rule::urgency(&pressure, &candidate(loss_permille))
        };
        for (patience_ms, earlier_us) in [(100, 4_000), (5, 4_000), (2, 1_600)] {
            assert_eq!(urgency(patience_ms, 0), candidate(0).latest);
            let earlier = urgency(patience_ms, 0).since(urgency(patience_ms, 50));
            assert_eq!(earlier, Span::from_micros(earlier_us));
        }
    }
}
