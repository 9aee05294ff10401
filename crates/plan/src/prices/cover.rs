//! The cheapest whole slices that serve one service, at given prices.

use crate::problem::{Problem, ROUNDING};
use crate::rule::Curve;

/// A set of slices that serves a service: how many of each kind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pattern {
    pub(crate) counts: Vec<u32>,
    /// What they are worth at the prices asked with.
    pub(crate) worth: f64,
}

/// Steps after which a search for the cheapest pattern gives up on proving it; real services take some hundred.
const MOST_STEPS: u32 = 200_000;

/// The cheapest pattern of a service and a bound on its worth: equal but for services whose search was given up. `None`
/// where no slice serves it.
pub(crate) fn cheapest(problem: &Problem, service: usize, prices: &[f64]) -> Option<(Pattern, f64)> {
    let mut search = Search::new(problem, service, prices)?;
    let fractional = search.fractional_bound();
    search.descend(0, search.demand, search.least, 0.0);
    let found = search.found.pop()?;
    let bound = if search.steps >= MOST_STEPS { fractional } else { found.worth };
    Some((found, bound))
}

/// The cheapest slices that serve the rest of a service beside those that it has; where throughput is not linear,
/// slices that surely do. `None` where no slice serves it.
pub(crate) fn cheapest_rest(
    problem: &Problem,
    service: usize,
    has: &[u32],
    prices: &[f64],
) -> Option<Pattern> {
    let mut search = Search::new(problem, service, prices)?;
    let rest = search.demand - problem.capacity(service, has);
    let missing = search.least.saturating_sub(problem.replicas(service, has));
    search.descend(0, rest, missing, 0.0);
    search.found.pop()
}

/// Every minimal pattern worth at most `limit`, the cheapest first; the flag says whether these are all. At most `most`
/// are kept.
pub(crate) fn all_within(
    problem: &Problem,
    service: usize,
    prices: &[f64],
    limit: f64,
    most: usize,
) -> (Vec<Pattern>, bool) {
    let Some(mut search) = Search::new(problem, service, prices) else { return (Vec::new(), true) };
    search.collect = Some(most);
    search.limit = limit;
    search.descend(0, search.demand, search.least, 0.0);
    let complete = search.steps < MOST_STEPS && search.found.len() <= most;
    let mut found = search.found;
    found.sort_by(|a, b| a.worth.total_cmp(&b.worth).then_with(|| a.counts.cmp(&b.counts)));
    found.dedup_by(|a, b| a.counts == b.counts);
    found.truncate(most);
    (found, complete)
}

/// A kind of slice that serves the service.
struct Choice<'a> {
    slice: usize,
    curve: &'a Curve,
    price: f64,
    /// The most that an instance serves on it, in as many as could be of use.
    best_rate: f64,
    /// The price of serving one request per second on it, at best.
    unit_price: f64,
    /// The least number of instances that serve anything.
    fewest: u32,
    /// The least price of this kind and those after it.
    least_price: f64,
}

/// Depth first over the kinds of slices, the cheapest per request first, from as many of each as could be used down.
struct Search<'a> {
    problem: &'a Problem,
    service: usize,
    choices: Vec<Choice<'a>>,
    demand: f64,
    least: u32,
    counts: Vec<u32>,
    /// Patterns worth more are not looked for.
    limit: f64,
    /// Keep all that are found up to so many, instead of the cheapest only.
    collect: Option<usize>,
    found: Vec<Pattern>,
    steps: u32,
}

impl<'a> Search<'a> {
    fn new(problem: &'a Problem, service: usize, prices: &[f64]) -> Option<Search<'a>> {
        let wanted = &problem.services[service];
        let demand = wanted.planned_rps() * (1.0 - ROUNDING);
        let mut choices: Vec<Choice<'a>> = problem.curves[service]
            .iter()
            .zip(prices)
            .enumerate()
            .filter_map(|(slice, (curve, &price))| {
                let curve = curve.as_ref()?;
                let fewest = curve.fewest();
                // With more than these one could be left out.
                let most = curve.needed(demand).max(wanted.min_replicas).max(fewest);
                let best_rate = curve.best_rate_to(most);
                let unit_price = price / best_rate;
                Some(Choice { slice, curve, price, best_rate, unit_price, fewest, least_price: price })
            })
            .collect();
        // Of two equally cheap ones the larger first: it leaves less to decide.
        choices
            .sort_by(|a, b| a.unit_price.total_cmp(&b.unit_price).then(b.best_rate.total_cmp(&a.best_rate)));
        let mut least_price = f64::INFINITY;
        for choice in choices.iter_mut().rev() {
            least_price = choice.price.min(least_price);
            choice.least_price = least_price;
        }
        (!choices.is_empty()).then(|| Search {
            problem,
            service,
            demand,
            least: wanted.min_replicas,
            counts: vec![0; problem.slices.len()],
            limit: f64::INFINITY,
            collect: None,
            found: Vec::new(),
            steps: 0,
            choices,
        })
    }

    /// What even parts of slices are worth.
    fn fractional_bound(&self) -> f64 {
        let first = &self.choices[0];
        (first.unit_price * self.demand).max(first.least_price * f64::from(self.least))
    }

    /// Chooses the number of slices of the kinds from `depth` on, for what is left of the demand and of the replicas
    /// wanted.
    fn descend(&mut self, depth: usize, left: f64, replicas: u32, worth: f64) {
        self.steps += 1;
        if left <= 0.0 && replicas == 0 {
            return self.arrive(self.counts.clone(), worth);
        }
        let filled_up = left <= 0.0 && self.fill_up(replicas, worth);
        if filled_up || depth == self.choices.len() {
            return;
        }
        let Choice { slice, curve, price, best_rate, fewest, .. } = self.choices[depth];
        let next = self.choices.get(depth + 1);
        let next_unit_price = next.map_or(f64::INFINITY, |next| next.unit_price);
        let next_price = next.map_or(f64::INFINITY, |next| next.least_price);
        let for_demand = if left > 0.0 { curve.needed(left) } else { 0 };
        let mut count = for_demand.max(if replicas > 0 { replicas.max(fewest) } else { 0 });
        loop {
            let here = worth + price * f64::from(count);
            let rest = left - curve.capacity(count);
            let missing = replicas.saturating_sub(curve.replicas(count));
            // At best every slice of this kind serves at its best rate; with fewer of them it only gets worse, as later
            // kinds cost more.
            let ideal_rest = left - f64::from(count) * best_rate;
            let prune = self.limit - TOLERANCE;
            if ideal_rest > 0.0 && here + ideal_rest * next_unit_price >= prune {
                break;
            }
            let rest_worth = if rest > 0.0 { rest * next_unit_price } else { 0.0 };
            let missing_worth = if missing > 0 { f64::from(missing) * next_price } else { 0.0 };
            if here + rest_worth.max(missing_worth) < prune {
                self.counts[slice] = count;
                self.descend(depth + 1, rest, missing, here);
                self.counts[slice] = 0;
            }
            if count == 0 || self.steps >= MOST_STEPS || self.is_full() {
                break;
            }
            // Fewer than serve anything are as good as none.
            count = if count <= fewest { 0 } else { count - 1 };
        }
    }

    fn is_full(&self) -> bool {
        self.collect.is_some_and(|most| self.found.len() > most)
    }

    /// The demand is met, replicas are missing: where only the cheapest pattern is asked for, they are on the cheapest
    /// kind of slice. Whether that is so: not where one instance of a kind serves nothing.
    fn fill_up(&mut self, missing: u32, worth: f64) -> bool {
        if self.collect.is_some() || self.choices.iter().any(|choice| choice.fewest > 1) {
            return false;
        }
        let Some(filler) = self.choices.iter().min_by(|a, b| a.price.total_cmp(&b.price)) else {
            return false;
        };
        let mut counts = self.counts.clone();
        counts[filler.slice] += missing;
        self.arrive(counts, worth + filler.price * f64::from(missing));
        true
    }

    /// These slices serve the service.
    fn arrive(&mut self, mut counts: Vec<u32>, worth: f64) {
        if worth >= self.limit {
            return;
        }
        match self.collect {
            None => {
                self.limit = worth;
                self.found = vec![Pattern { counts, worth }];
            }
            Some(_) if self.is_minimal(&mut counts) => self.found.push(Pattern { counts, worth }),
            Some(_) => {}
        }
    }

    /// Whether no instance can be left out.
    fn is_minimal(&self, counts: &mut [u32]) -> bool {
        (0..counts.len()).all(|slice| {
            if counts[slice] == 0 {
                return true;
            }
            counts[slice] -= 1;
            let served = self.problem.is_served(self.service, counts);
            counts[slice] += 1;
            !served
        })
    }
}

/// Patterns that differ in worth by less are alike.
const TOLERANCE: f64 = 1e-10;
