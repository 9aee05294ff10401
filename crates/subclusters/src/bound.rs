//! A lower bound for thousands of models: what memory and load cost at prices that no sub-cluster beats.
//!
//! Let every kind of sub-cluster have a price for load and one for memory such that what it holds is worth at most what
//! it costs: `load_price * capacity + memory_price * memory <= cost`. Then no division costs less than the sum, over
//! the models, of what a model is worth in the kind that values it least. (It is the linear program in which models are
//! cut into pieces, from its dual side.) The prices are improved by subgradient steps; any prices give a bound.

#[cfg(test)]
mod tests;

use crate::need::{BLOCKED, CALM, Needs, capacity};

/// How it is called in plans.
pub(crate) const NAME: &str = "prices of load and memory";

const STEPS: u32 = 400;

/// A kind, as far as prices go. Sizes from [`CALM`] on are one kind.
struct Priced {
    kind: usize,
    cost: f64,
    capacity: f64,
    memory: f64,
    /// The highest price of load that larger sizes of the same kind bear, too.
    most_load_price: f64,
}

impl Priced {
    /// The two prices when this share of the cost is load's.
    fn prices(&self, share: f64) -> (f64, f64) {
        let load = (share * self.cost / self.capacity).min(self.most_load_price);
        (load, ((self.cost - load * self.capacity) / self.memory).max(0.0))
    }
}

/// No division costs less than this, in units.
pub(crate) fn units(needs: &Needs) -> f64 {
    let models = needs.models();
    // A sub-cluster leaves at least this to activations.
    let activation = needs.memory.iter().map(|memory| memory.activation).min().unwrap_or(0);
    let priced: Vec<Priced> = (needs.kinds.iter().enumerate())
        .filter(|(_, kind)| needs.room_kib[kind.device] > activation)
        .map(|(index, kind)| {
            let units = needs.units[kind.device] as f64;
            Priced {
                kind: index,
                cost: f64::from(kind.count) * units,
                capacity: capacity(kind.count) as f64,
                memory: (needs.room_kib[kind.device] - activation) as f64,
                most_load_price: if kind.count == CALM { units / 0.97e6 } else { f64::INFINITY },
            }
        })
        .collect();
    if priced.is_empty() {
        return 0.0;
    }
    let mut shares = vec![0.7; priced.len()];
    let mut best: f64 = 0.0;
    for step in 0..STEPS {
        let prices: Vec<(f64, f64)> =
            priced.iter().zip(&shares).map(|(kind, &share)| kind.prices(share)).collect();
        let mut total = 0.0;
        let mut slopes = vec![0.0; priced.len()];
        for model in 0..models {
            let (loads, weights) = (needs.loads(model), needs.memory[model].weights as f64);
            let worth = |index: usize| {
                let load = loads[priced[index].kind];
                if load >= BLOCKED {
                    f64::INFINITY
                } else {
                    prices[index].0 * load as f64 + prices[index].1 * weights
                }
            };
            let Some(least) = (0..priced.len()).min_by(|&a, &b| worth(a).total_cmp(&worth(b))) else {
                continue;
            };
            total += worth(least);
            let kind = &priced[least];
            slopes[least] += kind.cost * (loads[kind.kind] as f64 / kind.capacity - weights / kind.memory);
        }
        if !total.is_finite() {
            // Somebody fits nowhere at all: there is no division to bound.
            return 0.0;
        }
        best = best.max(total);
        let norm = slopes.iter().map(|slope| slope * slope).sum::<f64>().sqrt();
        if norm <= 0.0 {
            break;
        }
        let length = 0.5 / f64::from(step + 2).powf(0.7);
        for (share, slope) in shares.iter_mut().zip(&slopes) {
            *share = (*share + length * slope / norm).clamp(0.0, 1.0);
        }
    }
    // Loads are rounded up to millionths; the bound is of them as they are.
    best
}
