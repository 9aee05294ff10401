//! One scenario at one load: `adaptive` beside its rivals.

use downbeat_sim::Scenario;

use super::baseline::Before;
use super::outcome::Outcome;
use crate::suite::OURS;
use crate::unseen::gpus;

const EAGER: &str = "eager";
const DELAYED: [&str; 2] = ["delayed", "delayed:timeout=on"];

/// Policies whose latency `adaptive` is compared with.
pub(super) const RIVALS: [&str; 10] = [
    EAGER,
    "eager:drop=window",
    "guarded:k=1",
    "guarded:k=2",
    "deferred",
    DELAYED[0],
    DELAYED[1],
    "clockwork",
    "nexus",
    "shepherd",
];

pub(super) struct Cell<'a> {
    pub(super) scenario: &'a Scenario,
    /// In percent of the goodput.
    pub(super) load: u32,
    pub(super) before: &'a Before,
    pub(super) ours: Outcome,
    rivals: Vec<Outcome>,
    /// The one of the rivals with the lowest p50 among those that lose no more; `None` where all lose more.
    best: Option<usize>,
}

impl<'a> Cell<'a> {
    /// From the outcomes of all policies, ours first.
    pub(super) fn new(
        scenario: &'a Scenario,
        load: u32,
        before: &'a Before,
        mut outcomes: Vec<Outcome>,
    ) -> Cell<'a> {
        let ours = outcomes.remove(0);
        let lose_no_more = outcomes.iter().enumerate().filter(|(_, rival)| rival.lost <= ours.lost);
        let best = lose_no_more.max_by(|a, b| ours.p50_over(a.1).total_cmp(&ours.p50_over(b.1)));
        Cell { scenario, load, before, best: best.map(|(index, _)| index), ours, rivals: outcomes }
    }

    pub(super) fn gpus(&self) -> u32 {
        gpus(self.scenario)
    }

    /// The best rival.
    pub(super) fn best_rival(&self) -> Option<&Outcome> {
        self.best.map(|index| &self.rivals[index])
    }

    pub(super) fn p50_ratio(&self) -> Option<f64> {
        self.best_rival().map(|rival| self.ours.p50_over(rival))
    }

    pub(super) fn p99_ratio(&self) -> Option<f64> {
        self.best_rival().map(|rival| self.ours.p99_over(rival))
    }

    /// Share of all requests.
    pub(super) fn eager_lost(&self) -> f64 {
        self.lost(&[EAGER])
    }

    /// Share of all requests, with the better of two settings.
    pub(super) fn delayed_lost(&self) -> f64 {
        self.lost(&DELAYED)
    }

    fn lost(&self, policies: &[&str]) -> f64 {
        let named = self.rivals.iter().filter(|rival| policies.contains(&rival.policy.as_str()));
        named.map(|rival| rival.lost).fold(1.0, f64::min)
    }

    pub(super) fn print_header() {
        println!(
            "| scenario | GPUs | load % | p50 ratio | p99 ratio | p50 ms | lost % | lost by eager | lost by delayed | busy {OURS} | busy rival | best rival |"
        );
        println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    }

    pub(super) fn print(&self) {
        let ratio = |ratio: Option<f64>| ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"));
        let (rival_busy, rival) = match self.best_rival() {
            Some(rival) => (format!("{:.2}", rival.busy_gpus), rival.policy.as_str()),
            None => ("-".to_owned(), "all lose more"),
        };
        println!(
            "| {} | {} | {} | {} | {} | {:.3} | {:.3} | {:.3} | {:.3} | {:.2} | {rival_busy} | {rival} |",
            self.scenario.name,
            self.gpus(),
            self.load,
            ratio(self.p50_ratio()),
            ratio(self.p99_ratio()),
            self.ours.mean_p50_ms(),
            100.0 * self.ours.lost,
            100.0 * self.eager_lost(),
            100.0 * self.delayed_lost(),
            self.ours.busy_gpus,
        );
    }
}
