//! `adaptive` beside the best of the others.

use std::fmt;

use downbeat_sim::GoodputReport;

use crate::suite::OURS;

/// Who has this share of the best is not behind.
pub(crate) const NEAR: f64 = 0.99;

/// Ours over the best other policy, seed by seed. Displayed: mean and range.
pub(crate) struct AgainstBest {
    best: String,
    ratios: Vec<f64>,
}

impl AgainstBest {
    pub(crate) fn of(report: &GoodputReport) -> AgainstBest {
        let others = report.policies.iter().filter(|(name, _)| *name != OURS);
        let best = others.max_by(|a, b| a.1.goodput_rps.total_cmp(&b.1.goodput_rps));
        let (best, found) = best.unwrap_or_else(|| panic!("{OURS} is measured beside others"));
        let pairs = report.policies[OURS].by_seed_rps.iter().zip(&found.by_seed_rps);
        // Nobody is behind one that serves nothing.
        let ratio = |(ours, theirs): (&f64, &f64)| if *theirs > 0.0 { ours / theirs } else { 1.0 };
        AgainstBest { best: best.clone(), ratios: pairs.map(ratio).collect() }
    }

    pub(crate) fn mean(&self) -> f64 {
        self.ratios.iter().sum::<f64>() / self.ratios.len() as f64
    }

    /// Largest less smallest over the seeds.
    pub(crate) fn spread(&self) -> f64 {
        let (least, most) = self.range();
        most - least
    }

    /// Over the seeds.
    fn range(&self) -> (f64, f64) {
        let least = self.ratios.iter().copied().fold(f64::INFINITY, f64::min);
        (least, self.ratios.iter().copied().fold(0.0, f64::max))
    }

    /// Not [near](NEAR), and with every seed: a range that contains 1 is no difference.
    pub(crate) fn is_behind(&self) -> bool {
        self.mean() < NEAR && self.range().1 < 1.0
    }
}

impl fmt::Display for AgainstBest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = self.range();
        let behind = if self.is_behind() { ", behind" } else { "" };
        write!(f, "{:.3} ({least:.3} to {most:.3}) of {}{behind}", self.mean(), self.best)
    }
}

/// In how many scenarios ours is not behind.
pub(crate) fn print_verdict(ratios: &[AgainstBest]) {
    let behind = ratios.iter().filter(|ratio| ratio.is_behind()).count();
    println!(
        "\n{OURS} is at {NEAR} of the best of the others or more, or not behind with every seed, in {} of {}.\n",
        ratios.len() - behind,
        ratios.len()
    );
}
