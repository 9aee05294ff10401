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

/// The cheapest pattern of a service and a bound on its worth: equal but for services whose search was given up. `None` where no slice
/// serves it.
pub(crate) fn cheapest(problem: &Problem, service: usize, prices: &[f64]) -> Option<(Pattern, f64)> {
    let mut search = Search::new(problem, service, prices)?;
    let fractional = search.fractional_bound();
    search.descend(0, search.demand, 0.0);
    let found = search.found.pop()?;
    let bound = if search.steps >= MOST_STEPS { fractional } else { found.worth };
    Some((found, bound))
}

/// Every minimal pattern worth at most `limit`, the cheapest first; the flag says whether these are all. At most `most` are kept.
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
    search.descend(0, search.demand, 0.0);
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
    /// The price of serving one request per second on it, at best.
    unit_price: f64,
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
        let mut choices: Vec<Choice<'a>> = problem.curves[service]
            .iter()
            .zip(prices)
            .enumerate()
            .filter_map(|(slice, (curve, &price))| {
                let curve = curve.as_ref()?;
                Some(Choice { slice, curve, price, unit_price: price / curve.best_rate() })
            })
            .collect();
        // Of two equally cheap ones the larger first: it leaves less to decide.
        choices.sort_by(|a, b| {
            a.unit_price.total_cmp(&b.unit_price).then(b.curve.best_rate().total_cmp(&a.curve.best_rate()))
        });
        let wanted = &problem.services[service];
        (!choices.is_empty()).then(|| Search {
            problem,
            service,
            demand: wanted.planned_rps() * (1.0 - ROUNDING),
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
        self.choices[0].unit_price * self.demand
    }

    /// Chooses the number of slices of the kinds from `depth` on, for what is left of the demand.
    fn descend(&mut self, depth: usize, left: f64, worth: f64) {
        self.steps += 1;
        if left <= 0.0 || depth == self.choices.len() {
            if left <= 0.0 {
                self.arrive(worth);
            }
            return;
        }
        let Choice { slice, price, .. } = self.choices[depth];
        let curve = self.choices[depth].curve;
        let next_unit_price = self.choices.get(depth + 1).map_or(f64::INFINITY, |next| next.unit_price);
        let mut count = curve.needed(left);
        loop {
            let here = worth + price * f64::from(count);
            let rest = left - curve.capacity(count);
            // At best every slice of this kind serves at its best rate; with fewer of them it only gets worse, as later kinds cost more.
            let ideal_rest = left - f64::from(count) * curve.best_rate();
            let prune = self.limit - TOLERANCE;
            if ideal_rest > 0.0 && here + ideal_rest * next_unit_price >= prune {
                break;
            }
            let rest_worth = if rest > 0.0 { rest * next_unit_price } else { 0.0 };
            if here + rest_worth < prune {
                self.counts[slice] = count;
                self.descend(depth + 1, rest, here);
                self.counts[slice] = 0;
            }
            if count == 0 || self.steps >= MOST_STEPS || self.is_full() {
                break;
            }
            count -= 1;
        }
    }

    fn is_full(&self) -> bool {
        self.collect.is_some_and(|most| self.found.len() > most)
    }

    /// The demand is met; the least number of instances may not be.
    fn arrive(&mut self, worth: f64) {
        let instances: u32 = self.counts.iter().sum();
        let missing = self.least.saturating_sub(instances);
        let filler = self.choices.iter().min_by(|a, b| a.price.total_cmp(&b.price));
        let Some(filler) = filler else { return };
        let worth = worth + filler.price * f64::from(missing);
        if worth >= self.limit {
            return;
        }
        let mut counts = self.counts.clone();
        counts[filler.slice] += missing;
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
