//! The signals of the last minutes.

use std::collections::VecDeque;

use downbeat_sched::{Span, Time};

use crate::Signals;
use crate::signals::ratio;

/// A device that was busy for less than this part of the time had next to nothing to do.
const IDLE: f64 = 0.02;

/// The signals of the last minutes, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct Recent {
    keep: Span,
    signals: VecDeque<Signals>,
    /// The load at the end of each of them, averaged over a short time.
    loads: VecDeque<Load>,
}

/// What the traffic asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Load {
    pub(crate) needed: f64,
    pub(crate) deviation: f64,
}

impl Load {
    /// How much it is, for comparison with others.
    pub(crate) fn size(self) -> f64 {
        self.needed + self.deviation
    }

    /// The same traffic, so many times.
    pub(crate) fn times(self, factor: f64) -> Load {
        Load { needed: self.needed * factor, deviation: self.deviation * factor.sqrt() }
    }
}

impl Recent {
    pub(crate) fn new(keep: Span) -> Recent {
        Recent { keep, signals: VecDeque::new(), loads: VecDeque::new() }
    }

    /// Takes in signals; `react` is the short time.
    pub(crate) fn add(&mut self, signals: Signals, react: Span) {
        let now = signals.now;
        self.signals.push_back(signals);
        let load = Load {
            needed: self.mean(react, |signals| signals.needed),
            deviation: self.mean(react, |signals| signals.deviation),
        };
        self.loads.push_back(load);
        while self.signals.front().is_some_and(|oldest| now.since(oldest.now) >= self.keep) {
            self.signals.pop_front();
            self.loads.pop_front();
        }
    }

    pub(crate) fn load(&self) -> Load {
        self.loads.back().copied().unwrap_or_default()
    }

    pub(crate) fn loads(&self) -> impl Iterator<Item = Load> + '_ {
        self.loads.iter().copied()
    }

    /// The mean of a signal over the last `over`, at least over the newest interval.
    pub(crate) fn mean(&self, over: Span, value: impl Fn(&Signals) -> f64) -> f64 {
        let (mut sum, mut time) = (0.0, 0.0);
        for signals in self.last(over) {
            let length = signals.over.as_secs_f64();
            sum += value(signals) * length;
            time += length;
        }
        ratio(sum, time)
    }

    /// The sum of a count over the last `over`, at least over the newest interval.
    pub(crate) fn sum(&self, over: Span, value: impl Fn(&Signals) -> u64) -> u64 {
        self.last(over).map(value).fold(0, u64::saturating_add)
    }

    /// How long signals go back in which there were as many devices as now.
    pub(crate) fn unchanged(&self) -> Span {
        let Some(newest) = self.signals.back() else { return Span::ZERO };
        let same = self.signals.iter().rev().take_while(|signals| signals.gpus == newest.gpus);
        same.last().map_or(Span::ZERO, |oldest| newest.now.since(oldest.now) + oldest.over)
    }

    /// Whole devices that had next to nothing to do all the time, the last ones in rank.
    pub(crate) fn idle(&self) -> u32 {
        let Some(gpus) = self.signals.iter().map(|signals| signals.busy.len()).min() else { return 0 };
        let rank_busy = |rank: usize| self.mean(self.keep, |signals| signals.busy[rank]);
        (0..gpus).rev().take_while(|&rank| rank_busy(rank) < IDLE).count() as u32
    }

    fn last(&self, over: Span) -> impl Iterator<Item = &Signals> {
        let now = self.signals.back().map_or(Time::ZERO, |newest| newest.now);
        self.signals
            .iter()
            .rev()
            .enumerate()
            .take_while(move |(age, signals)| *age == 0 || now.since(signals.now) < over)
            .map(|(_, signals)| signals)
    }
}
