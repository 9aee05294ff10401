//! The exact solver: column generation, and then every column that a better division could have.
//!
//! A *column* is a sub-cluster: some models on so many devices of a kind, which may take the place of a sub-cluster of
//! the last epoch. The linear program over all columns (each model in at least one, each old place taken once, few
//! moves) is solved from its dual side: prices of the models that no column beats, improved by adding the columns that
//! do beat them (`exact/pricing.rs`). Its value, rounded up, is a bound. If the best division known costs more, then
//! every division that costs less consists of columns whose reduced cost is below the difference: those are listed, and
//! an integer program over them decides. No branching is needed.
//!
//! Covering a model twice is allowed in the programs: taking it out of all but one sub-cluster, its home if it is one
//! of them, makes nothing worse.

mod pricing;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use downbeat_milp::{Backend, Limits, MilpError, Program, Status, Variable};

use crate::division::Division;
use crate::need::Needs;
use crate::previous::Homes;
use pricing::{Prices, Pricing};

/// How the bound is called in plans.
pub(crate) const NAME: &str = "linear program over all sub-clusters";

/// Columns past which the list for the integer program is given up.
const MOST_LISTED: usize = 60_000;

/// Rounds of column generation past which prices are taken as they are.
const MOST_ROUNDS: usize = 400;

/// A sub-cluster that might be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Column {
    members: Vec<usize>,
    cost: u64,
    /// The sub-cluster of the last epoch whose place it takes; `None` for a new one.
    place: Option<usize>,
}

impl Column {
    fn moves(&self, homes: &Homes) -> usize {
        self.members
            .iter()
            .filter(|&&model| homes.of[model].is_some() && homes.of[model] != self.place)
            .count()
    }
}

/// What was proved.
pub(crate) struct Proof<'a> {
    /// The best division: the one that was given, or a better one.
    pub(crate) division: Division<'a>,
    /// No division costs less.
    pub(crate) bound: u64,
    /// Whether the bound is that of [`NAME`], or what was given.
    pub(crate) improved: bool,
}

/// Improves a division until it is proved that none is better, or until told to stop.
pub(crate) fn prove<'a>(
    needs: &'a Needs,
    homes: &'a Homes,
    known: Division<'a>,
    bound: u64,
    backend: &Backend,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Proof<'a>, MilpError> {
    let mut master = Master::new(needs, homes, &known);
    let pricing = Pricing::new(needs, homes);
    let mut best_bound = bound as f64;
    let mut best: Option<(Prices, f64)> = None;
    for _ in 0..MOST_ROUNDS {
        if stop() || whole(best_bound) >= known.cost {
            break;
        }
        let Some(prices) = master.prices(backend, stop)? else { break };
        let value = master.value(&prices);
        let Some(found) = pricing.best_columns(&prices, stop) else { break };
        // Prices that are beaten by some columns hold once they are scaled down to what those cost.
        let scale = found.iter().map(|(worth, column)| column.cost as f64 / worth).fold(1.0, f64::min);
        if best.as_ref().is_none_or(|(_, value_known)| value * scale > *value_known) {
            best_bound = best_bound.max(value * scale);
            best = Some((prices.scaled(scale), value * scale));
        }
        let new = found.into_iter().filter(|(worth, column)| *worth > column.cost as f64 + 1e-7);
        if !master.extend(new.map(|(_, column)| column)) {
            break;
        }
    }
    let improved = whole(best_bound) > bound;
    let bound = whole(best_bound).min(known.cost);
    let unproved = |division| Ok(Proof { division, bound, improved });
    if bound >= known.cost || stop() {
        return unproved(known);
    }
    let Some((prices, value)) = best else { return unproved(known) };
    // Only columns whose reduced cost is at most this can be part of a division that costs at least one unit less.
    let allowance = (known.cost - 1) as f64 - value + 1e-6;
    let listed = pricing.columns_within(&prices, allowance, MOST_LISTED, stop);
    let all_listed = listed.is_some();
    master.extend(listed.unwrap_or_default());
    match master.integer(backend, known.cost, stop)? {
        Answer::Better(division) => {
            let bound = if all_listed { division.cost } else { bound };
            Ok(Proof { division, bound, improved: improved || all_listed })
        }
        Answer::None if all_listed => Ok(Proof { bound: known.cost, division: known, improved: true }),
        Answer::None | Answer::Stopped => unproved(known),
    }
}

/// Costs are whole numbers of units.
fn whole(bound: f64) -> u64 {
    (bound - 1e-6).ceil().max(0.0) as u64
}

enum Answer<'a> {
    Better(Division<'a>),
    None,
    Stopped,
}

/// The columns so far.
struct Master<'a> {
    needs: &'a Needs,
    homes: &'a Homes,
    columns: Vec<Column>,
    seen: BTreeSet<Column>,
}

impl<'a> Master<'a> {
    /// Begins with the columns of a division, and each model alone.
    fn new(needs: &'a Needs, homes: &'a Homes, known: &Division<'_>) -> Master<'a> {
        let mut master = Master { needs, homes, columns: Vec::new(), seen: BTreeSet::new() };
        let of_group = |(index, group): (usize, &crate::division::Group)| {
            let mut members = group.members.clone();
            members.sort_unstable();
            let place = (index < homes.count).then_some(index);
            group.choice.map(|choice| Column { members, cost: choice.cost, place })
        };
        master.extend(known.groups.iter().enumerate().filter_map(of_group));
        let alone = |model: usize| {
            let cost = needs.of_set(&[model])?.cost;
            Some([None, homes.of[model]].map(|place| Column { members: vec![model], cost, place }))
        };
        master.extend((0..needs.models()).filter_map(alone).flatten());
        master
    }

    /// Adds columns; false where all were known.
    fn extend(&mut self, columns: impl IntoIterator<Item = Column>) -> bool {
        let before = self.columns.len();
        for column in columns {
            if self.seen.insert(column.clone()) {
                self.columns.push(column);
            }
        }
        self.columns.len() > before
    }

    /// How many moves are allowed, where that is a limit at all.
    fn move_limit(&self) -> Option<f64> {
        let at_home = self.homes.of.iter().flatten().count();
        (self.homes.most_moves < at_home).then_some(self.homes.most_moves as f64)
    }

    /// The prices that are worth most and beaten by no column so far: the dual program, so that any backend will do.
    fn prices(
        &self,
        backend: &Backend,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Prices>, MilpError> {
        let mut program = Program::default();
        let models: Vec<Variable> =
            (0..self.needs.models()).map(|_| program.continuous(-1.0, 0.0, f64::INFINITY)).collect();
        let places: Vec<Variable> =
            (0..self.homes.count).map(|_| program.continuous(1.0, 0.0, f64::INFINITY)).collect();
        let limit = self.move_limit();
        let move_price =
            program.continuous(limit.unwrap_or(0.0), 0.0, if limit.is_some() { f64::INFINITY } else { 0.0 });
        for column in &self.columns {
            let mut terms: Vec<(Variable, f64)> =
                column.members.iter().map(|&model| (models[model], 1.0)).collect();
            terms.extend(column.place.map(|place| (places[place], -1.0)));
            let moves = column.moves(self.homes);
            if moves > 0 && limit.is_some() {
                terms.push((move_price, -(moves as f64)));
            }
            program.at_most(&terms, column.cost as f64);
        }
        let answer = backend.solve(&program, &Limits { stop, ..Limits::none() })?;
        let Some(values) = answer.values.filter(|_| answer.status == Status::Optimal) else {
            return Ok(None);
        };
        let value = |variable: &Variable| values[variable.0].max(0.0);
        Ok(Some(Prices {
            models: models.iter().map(value).collect(),
            places: places.iter().map(value).collect(),
            a_move: value(&move_price),
        }))
    }

    /// What prices are worth.
    fn value(&self, prices: &Prices) -> f64 {
        prices.models.iter().sum::<f64>()
            - prices.places.iter().sum::<f64>()
            - prices.a_move * self.move_limit().unwrap_or(0.0)
    }

    /// The cheapest division out of the columns, if it costs less than `known`.
    fn integer(
        &self,
        backend: &Backend,
        known: u64,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Answer<'a>, MilpError> {
        let mut program = Program::default();
        let chosen: Vec<Variable> =
            self.columns.iter().map(|column| program.integer(column.cost as f64, 0.0, 1.0)).collect();
        let of = |belongs: &dyn Fn(&Column) -> f64| -> Vec<(Variable, f64)> {
            let terms =
                self.columns.iter().zip(&chosen).map(|(column, &variable)| (variable, belongs(column)));
            terms.filter(|(_, weight)| *weight != 0.0).collect()
        };
        for model in 0..self.needs.models() {
            program.at_least(&of(&|column| f64::from(u8::from(column.members.contains(&model)))), 1.0);
        }
        for place in 0..self.homes.count {
            program.at_most(&of(&|column| f64::from(u8::from(column.place == Some(place)))), 1.0);
        }
        if let Some(limit) = self.move_limit() {
            program.at_most(&of(&|column| column.moves(self.homes) as f64), limit);
        }
        program.at_most(&of(&|column| column.cost as f64), known as f64 - 1.0);
        // Units are whole: one that is better by less than that is not better.
        let answer = backend.solve(&program, &Limits { stop, start: None, absolute_gap: 0.99 })?;
        match (answer.status, answer.values) {
            (Status::Infeasible, _) => Ok(Answer::None),
            (Status::Optimal, Some(values)) => {
                let columns =
                    self.columns.iter().zip(&chosen).filter(|(_, variable)| values[variable.0] > 0.5);
                let division = self.divided(columns.map(|(column, _)| column));
                Ok(if division.is_complete() { Answer::Better(division) } else { Answer::Stopped })
            }
            _ => Ok(Answer::Stopped),
        }
    }

    /// The division that these columns make: each model in one of them, at home if it can be.
    fn divided<'c>(&self, columns: impl Iterator<Item = &'c Column>) -> Division<'a> {
        let columns: Vec<&Column> = columns.collect();
        let mut division = Division::new(self.needs, self.homes);
        let mut next = self.homes.count;
        let mut groups = Vec::new();
        for column in &columns {
            groups.push(column.place.unwrap_or(next));
            next += usize::from(column.place.is_none());
        }
        for model in 0..self.needs.models() {
            let holding = columns.iter().zip(&groups).filter(|(column, _)| column.members.contains(&model));
            let best = holding.min_by_key(|&(_, &group)| self.homes.of[model] != Some(group));
            if let Some((_, &group)) = best {
                division.insert(model, group);
            }
        }
        division
    }
}
