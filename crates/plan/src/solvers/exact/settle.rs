//! Integer programs, and what their ends prove.

use downbeat_milp::Status;

use super::{FINEST, MOST_COUNTS, MOST_PATTERNS, Search};
use crate::prices::cover::Pattern;
use crate::prices::dual::Prices;
use crate::solver::{Bound, Unsolved};
use crate::solvers::compact::Compact;
use crate::solvers::patterns::PatternModel;

impl Search<'_> {
    /// By the integer program that settles it, once more with a finer grain where costs have no step. Whether the best
    /// plan is proved.
    pub(super) fn finish(&mut self, prices: &Prices) -> Result<bool, Unsolved> {
        if self.settle_by_model(prices)? {
            return Ok(true);
        }
        if self.best.is_none() {
            return Ok(false);
        }
        if self.whole_step().is_none() {
            self.grain = FINEST;
            if self.settle_by_model(prices)? {
                return Ok(true);
            }
        }
        self.settle_by_counts(prices)
    }

    /// Where costs are too close for integer programs to tell apart: one program for each number of GPUs that would be
    /// cheaper than the best plan and is not yet ruled out. In these programs all numbers are whole. Whether the best
    /// plan is proved.
    fn settle_by_counts(&mut self, prices: &Prices) -> Result<bool, Unsolved> {
        if (self.run.stop)() {
            return Ok(false);
        }
        let Some(cheaper) = self.problem.counts_between(self.bound.cost, self.cost(), MOST_COUNTS) else {
            return Ok(false);
        };
        let gap = (self.cost() - prices.bound).max(0.0) + 1e-6;
        let most = MOST_PATTERNS / self.problem.services.len().max(1);
        let (patterns, complete) = self.patterns_within(prices, gap, most);
        if !complete {
            return Ok(false);
        }
        let groups = self.problem.cost_groups();
        for counts in cheaper {
            let cost: f64 =
                groups.iter().zip(&counts).map(|(group, &count)| group.cost * f64::from(count)).sum();
            self.prove(cost, "numbers of GPUs");
            let mut model = PatternModel::new(self.problem, &patterns, 0.0, f64::MAX);
            for (group, &count) in groups.iter().zip(&counts) {
                model.limit_pools(&group.pools, count);
            }
            // Any plan will do.
            let answer = model.solve(self.run, 1e9)?;
            match &answer.values {
                Some(values) => {
                    self.offer(model.allocation(values));
                    return Ok(self.is_proved());
                }
                None if answer.status == Status::Infeasible => {}
                None => return Ok(false),
            }
        }
        self.prove(self.cost(), "numbers of GPUs");
        Ok(self.is_proved())
    }

    fn settle_by_model(&mut self, prices: &Prices) -> Result<bool, Unsolved> {
        if (self.run.stop)() && self.best.is_some() {
            return Ok(false);
        }
        // A better plan than the best known uses no pattern dearer than the gap: with all of those the model is exact.
        let gap = (self.cost() - self.step() - prices.bound).max(0.0) + 1e-6;
        let most = MOST_PATTERNS / self.problem.services.len().max(1);
        if gap.is_finite() {
            let (all, complete) = self.patterns_within(prices, gap, most);
            if complete {
                return self.search_patterns(&all, true);
            }
        }
        if !Compact::is_exact(self.problem) {
            return Ok(false);
        }
        let mut compact = Compact::new(self.problem);
        compact.cost_within(self.bound.cost, self.cost().min(1e9) - self.step());
        let answer = compact.solve(self.run, self.step() * 0.999)?;
        if let Some(values) = &answer.values {
            self.offer(compact.allocation(values));
        }
        self.settle(answer.status, answer.bound, "compact model");
        Ok(self.is_proved())
    }

    /// Plans of these patterns that are better than the best; where `complete`, that there is none proves the best.
    pub(super) fn search_patterns(
        &mut self,
        patterns: &[Vec<Pattern>],
        complete: bool,
    ) -> Result<bool, Unsolved> {
        let model =
            PatternModel::new(self.problem, patterns, self.bound.cost, self.cost().min(1e9) - self.step());
        let answer = model.solve(self.run, self.step() * 0.999)?;
        if let Some(values) = &answer.values {
            self.offer(model.allocation(values));
        }
        if complete {
            self.settle(answer.status, answer.bound, "pattern model");
        }
        Ok(self.is_proved())
    }

    /// What an exact model's end proves.
    fn settle(&mut self, status: Status, bound: f64, name: &'static str) {
        match status {
            // There is none that is better by a step. Where costs have none, one may still be better by less.
            Status::Infeasible if self.best.is_some() && self.whole_step().is_some() => {
                self.bound = Bound { cost: self.cost(), name };
                self.report(name, self.bound.cost);
            }
            Status::Infeasible if self.best.is_some() => self.prove(self.cost() - self.step(), name),
            Status::Infeasible => {}
            Status::Optimal | Status::Stopped => {
                let doubt = if self.whole_step().is_some() { 0.0 } else { bound.abs() * FINEST };
                self.prove((bound - doubt).min(self.cost()), name);
            }
        }
    }
}
