//! How much a service gets out of slices: the throughput rules.

#[cfg(test)]
mod tests;

use std::fmt;

/// How throughput is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The largest b/l(b) over measured sizes with l(b) <= SLO. What the MIG-serving paper counts; it forgets that a batch must fill.
    Paper,
    /// The same with 2 l(b) <= SLO: a request waits for one batch and runs in the next.
    Half,
    /// The same with l(b) (1 + 1/n) <= SLO: n equal slices of a service that start in turn.
    Staggered,
    /// What the simulator measures for n equal slices under Poisson arrivals.
    Measured,
}

impl Rule {
    /// All of them.
    pub const ALL: [Rule; 4] = [Rule::Paper, Rule::Half, Rule::Staggered, Rule::Measured];

    /// As it is written in a problem file.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Paper => "paper",
            Rule::Half => "half",
            Rule::Staggered => "staggered",
            Rule::Measured => "measured",
        }
    }

    /// The rule of this name.
    pub fn by_name(name: &str) -> Option<Rule> {
        Rule::ALL.into_iter().find(|rule| rule.name() == name)
    }

    /// How long a batch may take under a rule that says so, with n instances.
    fn longest_ms(self, slo_ms: f64, instances: u32) -> f64 {
        match self {
            Rule::Paper | Rule::Measured => slo_ms,
            Rule::Half => slo_ms / 2.0,
            Rule::Staggered => slo_ms / (1.0 + 1.0 / f64::from(instances)),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a number of equal slices of one service serve together.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// By the number of instances, from 1: requests per second of all of them, never falling, and the batch they run.
    steps: Vec<Step>,
    best_rate_rps: f64,
}

/// So many instances of a service on equal slices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// What they serve together, in requests per second.
    pub capacity_rps: f64,
    /// The batch they run.
    pub batch: u32,
}

/// Past this many instances each further one counts like the average of those before it.
const LONGEST_CURVE: u32 = 48;

impl Curve {
    /// Every instance serves the same.
    pub fn linear(rate_rps: f64, batch: u32) -> Curve {
        Curve { steps: vec![Step { capacity_rps: rate_rps, batch }], best_rate_rps: rate_rps }
    }

    /// From the capacity of 1, 2, 3 and so on instances. `None` where even all of them serve nothing.
    pub fn from_steps(mut steps: Vec<Step>) -> Option<Curve> {
        // An instance more can be left idle: capacity never falls.
        let mut most = Step { capacity_rps: 0.0, batch: 1 };
        for step in &mut steps {
            if step.capacity_rps > most.capacity_rps {
                most = *step;
            }
            *step = most;
        }
        let rate = |(n, step): (u32, &Step)| step.capacity_rps / f64::from(n);
        let best_rate_rps = (1..).zip(&steps).map(rate).fold(0.0, f64::max);
        (best_rate_rps > 0.0).then_some(Curve { steps, best_rate_rps })
    }

    /// By a rule that needs no simulator: over `(batch, latency_ms)` points that fit in memory. `None` where no batch meets the SLO
    /// with any number of instances.
    pub(crate) fn by_rule(rule: Rule, points: &[(u32, f64)], slo_ms: f64) -> Option<Curve> {
        let best = |instances: u32| {
            let in_time = points.iter().filter(|(_, latency)| *latency <= rule.longest_ms(slo_ms, instances));
            let rated = in_time.map(|&(batch, latency)| (f64::from(batch) / latency * 1e3, batch));
            rated.max_by(|a, b| a.0.total_cmp(&b.0))
        };
        if rule != Rule::Staggered {
            return best(1).map(|(rate, batch)| Curve::linear(rate, batch));
        }
        let step = |instances: u32| {
            let (rate, batch) = best(instances).unwrap_or((0.0, 1));
            Step { capacity_rps: rate * f64::from(instances), batch }
        };
        let mut steps: Vec<Step> = (1..=LONGEST_CURVE).map(step).collect();
        // What stays as it is need not be written down.
        let rate = |index: usize| steps[index].capacity_rps / (index + 1) as f64;
        let (first, last) = (rate(0), rate(steps.len() - 1));
        let changed = (0..steps.len()).rev().find(|&index| (rate(index) - last).abs() > last * 1e-12);
        let settled = if first == last { 1 } else { changed.map_or(1, |changed| changed + 2) };
        steps.truncate(settled);
        Curve::from_steps(steps)
    }

    /// What `instances` serve together, in requests per second.
    #[inline]
    pub fn capacity(&self, instances: u32) -> f64 {
        match (instances as usize).checked_sub(1) {
            None => 0.0,
            Some(index) => match self.steps.get(index) {
                Some(step) => step.capacity_rps,
                None => {
                    let (known, last) = (self.steps.len(), self.steps[self.steps.len() - 1]);
                    last.capacity_rps * f64::from(instances) / known as f64
                }
            },
        }
    }

    /// The batch that `instances` run.
    pub fn batch(&self, instances: u32) -> u32 {
        let index = (instances.max(1) as usize - 1).min(self.steps.len() - 1);
        self.steps[index].batch
    }

    /// The most that any number of instances serves, per instance.
    #[inline]
    pub fn best_rate(&self) -> f64 {
        self.best_rate_rps
    }

    /// Whether every instance counts the same.
    pub fn is_linear(&self) -> bool {
        self.steps.len() == 1
    }

    /// The least number of instances that serve this much alone.
    pub fn needed(&self, demand_rps: f64) -> u32 {
        // A capacity of n instances is at most n times the best rate, so that no fewer do.
        let mut instances = (demand_rps / self.best_rate_rps).ceil().max(1.0) as u32;
        while self.capacity(instances) < demand_rps {
            instances += 1;
        }
        instances
    }
}
