//! How much a service gets out of slices: the throughput rules.

#[cfg(test)]
mod tests;

use std::fmt;

/// How throughput is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The largest b/l(b) over measured sizes with l(b) <= SLO. What the MIG-serving paper counts; it forgets that a
    /// batch must fill.
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

    /// The least number of instances with which a batch may take so long; `None` where no number would do.
    fn least_instances(self, latency_ms: f64, slo_ms: f64) -> Option<u32> {
        let in_time = |instances: u32| latency_ms <= self.longest_ms(slo_ms, instances);
        if self != Rule::Staggered || in_time(1) {
            return in_time(1).then_some(1);
        }
        // l (1 + 1/n) <= SLO; as a batch is in time with any number beyond, the least one is found by halving.
        let (mut late, mut enough) = (1, MOST_INSTANCES);
        if !in_time(enough) {
            return None;
        }
        while enough - late > 1 {
            let middle = late + (enough - late) / 2;
            if in_time(middle) {
                enough = middle;
            } else {
                late = middle;
            }
        }
        Some(enough)
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
    /// By the number of instances, from 1: the most that so many or fewer serve, per instance.
    best_rates_rps: Vec<f64>,
    /// What each instance serves from so many on, past the steps; more every time. Before the first it is what the last
    /// step says.
    later: Vec<Stretch>,
}

/// So many instances of a service on equal slices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// What they serve together, in requests per second.
    pub capacity_rps: f64,
    /// The batch they run.
    pub batch: u32,
}

/// From `from` instances on each serves as much.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stretch {
    from: u32,
    rate_rps: f64,
    batch: u32,
}

/// No plan has more: a million GPUs of sixteen slices.
const MOST_INSTANCES: u32 = 16_000_000;

/// Up to this many instances a curve is written down one by one, which is the fastest to read; past them by
/// [`Stretch`]es.
const LONGEST_CURVE: u32 = 48;

impl Curve {
    /// Every instance serves the same.
    pub fn linear(rate_rps: f64, batch: u32) -> Curve {
        let steps = vec![Step { capacity_rps: rate_rps, batch }];
        Curve { steps, best_rates_rps: vec![rate_rps], later: Vec::new() }
    }

    /// From the capacity of 1, 2, 3 and so on instances. `None` where even all of them serve nothing.
    pub fn from_steps(steps: Vec<Step>) -> Option<Curve> {
        Curve::new(steps, Vec::new())
    }

    fn new(mut steps: Vec<Step>, later: Vec<Stretch>) -> Option<Curve> {
        // An instance more can be left idle: capacity never falls.
        let mut most = Step { capacity_rps: 0.0, batch: 1 };
        let mut best_rate = 0.0f64;
        let mut best_rates_rps = Vec::with_capacity(steps.len());
        for (n, step) in (1u32..).zip(&mut steps) {
            if step.capacity_rps > most.capacity_rps {
                most = *step;
            }
            *step = most;
            best_rate = best_rate.max(step.capacity_rps / f64::from(n));
            best_rates_rps.push(best_rate);
        }
        let curve = Curve { steps, best_rates_rps, later };
        (!curve.steps.is_empty() && curve.best_rate() > 0.0).then_some(curve)
    }

    /// By a rule that needs no simulator: over `(batch, latency_ms)` points that fit in memory. `None` where no batch
    /// meets the SLO with any number of instances.
    pub(crate) fn by_rule(rule: Rule, points: &[(u32, f64)], slo_ms: f64) -> Option<Curve> {
        let mut stretches: Vec<Stretch> = points
            .iter()
            .filter_map(|&(batch, latency_ms)| {
                let from = rule.least_instances(latency_ms, slo_ms)?;
                Some(Stretch { from, rate_rps: f64::from(batch) / latency_ms * 1e3, batch })
            })
            .collect();
        // Only what serves more than fewer instances do.
        stretches.sort_by(|a, b| a.from.cmp(&b.from).then(b.rate_rps.total_cmp(&a.rate_rps)));
        let mut best = 0.0;
        stretches.retain(|stretch| {
            let better = stretch.rate_rps > best;
            best = stretch.rate_rps.max(best);
            better
        });
        let written = stretches.last()?.from.min(LONGEST_CURVE);
        let step = |instances: u32| {
            let stretch = stretches.iter().rfind(|stretch| stretch.from <= instances);
            stretch.map_or(Step { capacity_rps: 0.0, batch: 1 }, |stretch| Step {
                capacity_rps: stretch.rate_rps * f64::from(instances),
                batch: stretch.batch,
            })
        };
        let steps = (1..=written).map(step).collect();
        Curve::new(steps, stretches.into_iter().filter(|stretch| stretch.from > written).collect())
    }

    /// What `instances` serve together, in requests per second.
    #[inline]
    pub fn capacity(&self, instances: u32) -> f64 {
        match (instances as usize).checked_sub(1) {
            None => 0.0,
            Some(index) => match self.steps.get(index) {
                Some(step) => step.capacity_rps,
                None => self.rate_past_steps(instances) * f64::from(instances),
            },
        }
    }

    fn rate_past_steps(&self, instances: u32) -> f64 {
        let known = self.steps.len();
        let reached = self.later.iter().rfind(|stretch| stretch.from <= instances);
        reached.map_or_else(|| self.steps[known - 1].capacity_rps / known as f64, |stretch| stretch.rate_rps)
    }

    /// The batch that `instances` run.
    pub fn batch(&self, instances: u32) -> u32 {
        let index = (instances.max(1) as usize - 1).min(self.steps.len() - 1);
        let reached = self.later.iter().rfind(|stretch| stretch.from <= instances);
        reached.map_or(self.steps[index].batch, |stretch| stretch.batch)
    }

    /// The most that any number of instances serves, per instance.
    #[inline]
    pub fn best_rate(&self) -> f64 {
        self.best_rate_to(u32::MAX)
    }

    /// The most that `instances` or fewer serve, per instance.
    #[inline]
    pub fn best_rate_to(&self, instances: u32) -> f64 {
        let reached = self.later.iter().rfind(|stretch| stretch.from <= instances);
        let index = (instances as usize).min(self.steps.len());
        let written = index.checked_sub(1).map_or(0.0, |index| self.best_rates_rps[index]);
        reached.map_or(written, |stretch| stretch.rate_rps.max(written))
    }

    /// Whether every instance counts the same.
    pub fn is_linear(&self) -> bool {
        self.steps.len() == 1 && self.later.is_empty()
    }

    /// How many of `instances` are replicas: all of them, or none where so few serve nothing.
    #[inline]
    pub fn replicas(&self, instances: u32) -> u32 {
        if self.capacity(instances) > 0.0 { instances } else { 0 }
    }

    /// The least number of instances that serve anything.
    pub fn fewest(&self) -> u32 {
        self.needed(f64::MIN_POSITIVE)
    }

    /// The least number of instances that serve this much alone.
    pub fn needed(&self, demand_rps: f64) -> u32 {
        // A capacity of n instances is at most n times the best rate, so that no fewer do.
        let first = (demand_rps / self.best_rate()).ceil().max(1.0) as u32;
        let written = self.steps.len() as u32;
        if let Some(found) = (first..=written).find(|&n| self.capacity(n) >= demand_rps) {
            return found;
        }
        // In the order of the stretches, each as far as the next.
        let begins = std::iter::once(written + 1).chain(self.later.iter().map(|stretch| stretch.from));
        let mut ends = self.later.iter().map(|stretch| stretch.from - 1).chain([u32::MAX]);
        for begin in begins {
            let end = ends.next().unwrap_or(u32::MAX);
            let enough = (demand_rps / self.rate_past_steps(begin)).ceil() as u32;
            let mut instances = enough.saturating_sub(1).max(begin).max(first);
            while instances <= end {
                if instances == u32::MAX || self.capacity(instances) >= demand_rps {
                    return instances;
                }
                // Division and product may round differently, by one instance.
                instances = (instances + 1).max(enough);
            }
        }
        u32::MAX
    }
}
