//! What plans can cost: whole numbers of GPUs, so that between two costs there are few others or none.

use super::Problem;

/// GPUs that cost the same, of one pool or several.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CostGroup {
    /// What one costs.
    pub(crate) cost: f64,
    /// How many there are, where that is limited.
    count: Option<u32>,
    /// Indices in [`Problem::pools`].
    pub(crate) pools: Vec<usize>,
}

/// Numbers of GPUs that are looked through for the next cost; where there are more the step must do.
const MOST_TRIED: f64 = 1e5;
/// Costs that differ by less, as a share, are the same but for rounding.
const ROUNDING: f64 = 1e-9;

impl Problem {
    /// The largest step that every plan's cost is a whole multiple of; `None` where there is none to speak of.
    pub fn cost_step(&self) -> Option<f64> {
        let first = self.pools[0].cost;
        if !self.minimises_cost() {
            return Some(first);
        }
        // As fine as costs are written.
        let billionths = |cost: f64| {
            let whole = (cost * 1e9).round();
            // But for the rounding of the product: a cost that is nearly a multiple is none.
            ((cost * 1e9 - whole).abs() <= whole * 1e-15 && whole <= 1e15).then_some(whole as u64)
        };
        let costs: Option<Vec<u64>> = self.pools.iter().map(|pool| billionths(pool.cost)).collect();
        costs.map(|costs| costs.into_iter().fold(0, gcd) as f64 / 1e9)
    }

    /// The least that a plan can cost which costs no less than `bound`: what some numbers of GPUs cost, of those there
    /// are. Where there are too many numbers to try, the next step, or `bound` itself.
    pub(crate) fn next_cost(&self, bound: f64) -> f64 {
        let step = self.cost_step();
        let least = bound - (bound.abs() * ROUNDING).max(step.unwrap_or(0.0) * 1e-6);
        let by_step = step.map_or(bound, |step| (least / step).ceil() * step);
        let groups = self.cost_groups();
        let tried: f64 = groups[1..].iter().map(|group| bound.max(0.0) / group.cost + 1.0).product();
        if tried > MOST_TRIED {
            return by_step;
        }
        match next_of(&groups, least) {
            next if next.is_finite() => next.max(by_step),
            // More than all GPUs cost.
            _ => by_step,
        }
    }

    /// The numbers of GPUs, by [group](Self::cost_groups), that cost at least `least` and less than `below`; the
    /// cheapest first. `None` where there are more than `most`, or too many to try.
    pub(crate) fn counts_between(&self, least: f64, below: f64, most: usize) -> Option<Vec<Vec<u32>>> {
        let groups = self.cost_groups();
        let tried: f64 = groups[1..].iter().map(|group| below / group.cost + 1.0).product();
        if tried > MOST_TRIED {
            return None;
        }
        let range = least * (1.0 - ROUNDING)..below * (1.0 - ROUNDING);
        let mut found = Vec::new();
        collect_counts(&groups, &range, 0.0, &mut vec![0; groups.len()], &mut found, most);
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        (found.len() <= most).then(|| found.into_iter().map(|(_, counts)| counts).collect())
    }

    /// GPUs by what they cost, the cheapest first.
    pub(crate) fn cost_groups(&self) -> Vec<CostGroup> {
        let mut groups: Vec<CostGroup> = Vec::new();
        for (index, pool) in self.pools.iter().enumerate() {
            match groups.iter_mut().find(|group| group.cost == pool.cost) {
                Some(group) => {
                    group.count = group.count.zip(pool.count).map(|(a, b)| a.saturating_add(b));
                    group.pools.push(index);
                }
                None => {
                    groups.push(CostGroup { cost: pool.cost, count: pool.count, pools: vec![index] });
                }
            }
        }
        groups.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        groups
    }
}

/// The least sum of GPUs that is `least` or more; infinite where all of them are less. The dearest are counted through,
/// of the cheapest there are as many as it takes.
fn next_of(groups: &[CostGroup], least: f64) -> f64 {
    if least <= 0.0 {
        return 0.0;
    }
    let Some((group, rest)) = groups.split_last() else { return f64::INFINITY };
    let needed = (least / group.cost).ceil();
    let there = group.count.map_or(f64::INFINITY, f64::from);
    if rest.is_empty() {
        return if needed <= there { needed * group.cost } else { f64::INFINITY };
    }
    let mut next = f64::INFINITY;
    let mut count = 0.0;
    while count <= needed.min(there) {
        let spent = count * group.cost;
        next = next.min(spent + next_of(rest, least - spent));
        count += 1.0;
    }
    next
}

/// All numbers of these groups' GPUs, the dearest counted through first, whose sum with what is `spent` lies in the
/// range; some more than `most` end it.
fn collect_counts(
    groups: &[CostGroup],
    range: &std::ops::Range<f64>,
    spent: f64,
    counts: &mut Vec<u32>,
    found: &mut Vec<(f64, Vec<u32>)>,
    most: usize,
) {
    let Some((group, rest)) = groups.split_last() else {
        if range.contains(&spent) {
            found.push((spent, counts.clone()));
        }
        return;
    };
    let there = group.count.map_or(f64::INFINITY, f64::from);
    // Of the cheapest only as many as bring the sum into the range.
    let fewest = if rest.is_empty() { ((range.start - spent) / group.cost).ceil().max(0.0) } else { 0.0 };
    let mut count = fewest;
    while count <= there && spent + count * group.cost < range.end && found.len() <= most {
        counts[rest.len()] = count as u32;
        collect_counts(rest, range, spent + count * group.cost, counts, found, most);
        count += 1.0;
    }
    counts[rest.len()] = 0;
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
