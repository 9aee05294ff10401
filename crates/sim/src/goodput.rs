//! Goodput: the largest rate at which every model meets its objective.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use downbeat_sched::Span;
use rayon::prelude::*;

use crate::fluid::fluid_bound_rps;
use crate::policies::{PolicyError, PolicySpec};
use crate::report::{GoodputReport, LoadPoint, PolicyGoodput};
use crate::scenario::Scenario;
use crate::simulation::Until;

/// The largest share of bad requests that any model may have.
pub const BAD_RATE_MAX: f64 = 0.01;

/// Fewer do to tell good settings of a policy from bad ones.
const RAREST_REQUESTS_TUNING: f64 = 1_000.0;
/// Requests of all models together past which a run is not made longer for the sake of its rarest model.
const MOST_REQUESTS: f64 = 1e7;

/// Rates are tried on a grid of this share of the fluid bound.
const GRID: f64 = 0.005;
/// The grid ends at this many times the fluid bound, which bursts can pass: what passes there is called capped.
const GRID_END: f64 = 8.0;
/// The curve of the first seed is drawn on to this many times the fluid bound, to show what overload does.
const DRAWN_TO: f64 = 1.3;
/// The search walks up in steps of so many grid points, and from the last rate that passed on in the next smaller ones.
const STRIDES: [u32; 3] = [20, 5, 1];

/// What a goodput search is asked for.
#[derive(Clone, Debug)]
pub struct GoodputSearch<'a> {
    /// The scenario; its rate does not matter, the models' shares do.
    pub scenario: &'a Scenario,
    /// The policies to compare.
    pub policies: &'a [PolicySpec],
    /// How many seeds, from the scenario's own up. Every policy sees the same arrivals under the same seed.
    pub seeds: u32,
    /// Requests that the rarest model is to have in a run: [`RAREST_REQUESTS`](Self::RAREST_REQUESTS), or fewer to find
    /// out where to look closer.
    pub rarest_requests: u32,
}

/// How a search is made.
#[derive(Clone, Copy)]
struct Effort {
    rarest_requests: f64,
    /// Whether all of the curve is to be drawn, past the knee too.
    drawn: bool,
}

/// The search of one policy with one seed.
struct Knee {
    goodput_rps: f64,
    /// No rate failed.
    capped: bool,
    curve: Vec<LoadPoint>,
}

impl GoodputSearch<'_> {
    /// Of fewer requests 1 % is noise.
    pub const RAREST_REQUESTS: u32 = 5_000;

    /// Searches, on all cores. `on_done` is called once for each of the [`steps`](Self::steps), from any thread.
    pub fn run(&self, on_done: &(dyn Fn() + Sync)) -> Result<GoodputReport, PolicyError> {
        self.check_policies()?;
        let bound_rps = fluid_bound_rps(self.scenario);
        let tuned: Vec<PolicySpec> = self
            .policies
            .par_iter()
            .map(|policy| self.tune(policy, bound_rps, on_done))
            .collect::<Result<_, _>>()?;
        let seeds: Vec<u64> =
            (0..u64::from(self.seeds)).map(|step| self.scenario.seed.wrapping_add(step)).collect();
        let searches: Vec<(&PolicySpec, u64)> =
            tuned.iter().flat_map(|policy| seeds.iter().map(move |&seed| (policy, seed))).collect();
        let knees = searches
            .par_iter()
            .map(|&(policy, seed)| {
                let drawn = seed == self.scenario.seed;
                let effort = Effort { rarest_requests: f64::from(self.rarest_requests), drawn };
                let knee = self.knee(policy, seed, bound_rps, effort);
                on_done();
                knee
            })
            .collect::<Result<Vec<Knee>, PolicyError>>()?;
        let policies = (self.policies.par_iter().zip(&tuned))
            .zip(knees.par_chunks(seeds.len().max(1)))
            .map(|((asked, tuned), knees)| Ok((asked.to_string(), self.summary(tuned, knees, bound_rps)?)))
            .collect::<Result<BTreeMap<_, _>, PolicyError>>()?;
        Ok(GoodputReport {
            scenario: self.scenario.name.clone(),
            fluid_bound_rps: bound_rps,
            rarest_requests: self.requests_of_rarest(),
            notes: self.notes(),
            policies,
        })
    }

    /// Runs every policy for a moment: one that cannot run the scenario at all says so before any time is spent.
    fn check_policies(&self) -> Result<(), PolicyError> {
        let mut moment = self.scenario.clone();
        moment.warmup = Span::ZERO;
        moment.duration = Span::from_micros(1);
        self.policies.iter().try_for_each(|policy| policy.run(&moment, moment.seed, Until::Failure).map(drop))
    }

    fn rarest_share(&self) -> f64 {
        self.scenario.models.iter().map(|model| model.share).fold(1.0, f64::min)
    }

    /// How many requests of the rarest model a run has at least, in the mean.
    fn requests_of_rarest(&self) -> u64 {
        (self.rarest_share() * MOST_REQUESTS).min(f64::from(self.rarest_requests)) as u64
    }

    /// What is to be known before the numbers are believed.
    fn notes(&self) -> Vec<String> {
        let mut notes = self.scenario.impossible();
        let rarest = self.scenario.models.iter().min_by(|a, b| a.share.total_cmp(&b.share));
        let requests = self.requests_of_rarest();
        if let Some(model) = rarest.filter(|_| requests < u64::from(self.rarest_requests)) {
            notes.push(format!(
                "model {:?} is so rare that a run has only {requests} of its requests: whether 1 % of them are bad is \
                 chance (no run is made longer than {:.0} million requests for the sake of a rare model)",
                model.name,
                MOST_REQUESTS / 1e6
            ));
        }
        notes
    }

    /// How many steps of about equal length [`run`](Self::run) takes.
    pub fn steps(&self) -> u64 {
        let tuning = |policy: &PolicySpec| match policy.variants().len() as u64 {
            0 | 1 => 0,
            several => several,
        };
        self.policies.iter().map(|policy| tuning(policy) + u64::from(self.seeds)).sum()
    }

    /// The best settings of a policy that leaves some open, by shorter runs of the first seed.
    fn tune(
        &self,
        policy: &PolicySpec,
        bound_rps: f64,
        on_done: &(dyn Fn() + Sync),
    ) -> Result<PolicySpec, PolicyError> {
        let variants = policy.variants();
        if variants.len() <= 1 {
            return Ok(policy.clone());
        }
        let goodputs = variants
            .par_iter()
            .map(|variant| {
                let effort = Effort { rarest_requests: RAREST_REQUESTS_TUNING, drawn: false };
                let knee = self.knee(variant, self.scenario.seed, bound_rps, effort);
                on_done();
                knee.map(|knee| knee.goodput_rps)
            })
            .collect::<Result<Vec<f64>, PolicyError>>()?;
        let best = goodputs.iter().zip(variants).max_by(|a, b| a.0.total_cmp(b.0));
        Ok(best.map_or_else(|| policy.clone(), |(_, variant)| variant))
    }

    /// Walks up the grid to the first rate that fails.
    fn knee(
        &self,
        policy: &PolicySpec,
        seed: u64,
        bound_rps: f64,
        effort: Effort,
    ) -> Result<Knee, PolicyError> {
        let rate = |point: u32| f64::from(point) * GRID * bound_rps;
        let try_point = |point: u32| self.try_rate(policy, seed, rate(point), effort);
        let end = (GRID_END / GRID) as u32;
        let mut curve = Vec::new();
        let (mut passed, mut failed) = (0, if bound_rps > 0.0 { end + 1 } else { 1 });
        for stride in STRIDES {
            let mut point = passed + stride;
            while point < failed {
                let tried = try_point(point)?;
                curve.push(tried);
                if tried.bad_rate_worst > BAD_RATE_MAX {
                    failed = point;
                } else {
                    passed = point;
                    point += stride;
                }
            }
        }
        if effort.drawn && bound_rps > 0.0 {
            let drawn_to = (DRAWN_TO / GRID) as u32;
            for point in (0..=drawn_to).step_by(STRIDES[0] as usize).filter(|&point| point > failed) {
                curve.push(try_point(point)?);
            }
        }
        curve.sort_by(|a, b| a.offered_rps.total_cmp(&b.offered_rps));
        Ok(Knee { goodput_rps: rate(passed), capped: failed > end, curve })
    }

    fn try_rate(
        &self,
        policy: &PolicySpec,
        seed: u64,
        rate_rps: f64,
        effort: Effort,
    ) -> Result<LoadPoint, PolicyError> {
        // What is drawn must be right past the knee too, where else it is enough to know that a rate fails.
        let until = if effort.drawn { Until::End } else { Until::Failure };
        let run = policy.run(&self.long_enough(rate_rps, effort.rarest_requests), seed, until)?;
        Ok(LoadPoint {
            // A run that ended early does not know what it was offered.
            offered_rps: if effort.drawn { run.offered_rps } else { rate_rps },
            bad_rate_worst: run.bad_rate_worst,
            in_slo_rps: run.in_slo_rps,
            gpus_used: run.gpus.used,
        })
    }

    /// The scenario at a rate, long enough for the rarest model to have requests enough.
    fn long_enough(&self, rate_rps: f64, rarest_requests: f64) -> Scenario {
        let scenario = self.scenario.with_rate(rate_rps);
        let requests = (rarest_requests / self.rarest_share()).min(MOST_REQUESTS);
        let measured = (scenario.duration - scenario.warmup).max(Span::from_secs_f64(requests / rate_rps));
        scenario.with_measured(measured)
    }

    fn summary(
        &self,
        policy: &PolicySpec,
        knees: &[Knee],
        bound_rps: f64,
    ) -> Result<PolicyGoodput, PolicyError> {
        let by_seed_rps: Vec<f64> = knees.iter().map(|knee| knee.goodput_rps).collect();
        let goodput_rps = by_seed_rps.iter().sum::<f64>() / by_seed_rps.len().max(1) as f64;
        let most = by_seed_rps.iter().copied().fold(0.0, f64::max);
        let least = by_seed_rps.iter().copied().fold(most, f64::min);
        let shown_rps = by_seed_rps.first().copied().filter(|&rate| rate > 0.0);
        let at_goodput = shown_rps
            .map(|rate| {
                policy.run(
                    &self.long_enough(rate, f64::from(self.rarest_requests)),
                    self.scenario.seed,
                    Until::End,
                )
            })
            .transpose()?;
        Ok(PolicyGoodput {
            goodput_rps,
            spread_rps: most - least,
            ratio_to_bound: if bound_rps > 0.0 { goodput_rps / bound_rps } else { 0.0 },
            by_seed_rps,
            capped: knees.iter().any(|knee| knee.capped),
            settings: policy.to_string(),
            curve: knees.first().map(|knee| knee.curve.clone()).unwrap_or_default(),
            at_goodput,
        })
    }
}
