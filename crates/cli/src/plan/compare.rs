//! `downbeat plan compare`

use std::path::PathBuf;

use clap::Args;
use downbeat_plan::{Infeasible, Unsolved, solvers};
use serde_json::json;

use super::{SearchArguments, Session};
use crate::output::{self, Format};

/// Run all solvers and baselines on one problem: GPUs, bound, gap, seconds
#[derive(Args)]
pub(super) struct Arguments {
    /// The problem, a TOML file
    #[arg(value_name = "FILE")]
    problem: PathBuf,
    /// Only these, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = solvers::ALL.map(downbeat_plan::Solver::name).to_vec())]
    solvers: Vec<String>,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub(super) fn run(arguments: &Arguments, search: &SearchArguments) -> anyhow::Result<()> {
    let session = Session::begin(search)?;
    let problem = session.load(&arguments.problem)?;
    let mut rows = Vec::new();
    let mut whole = None;
    for solver in solvers::ALL {
        if !arguments.solvers.is_empty() && !arguments.solvers.iter().any(|name| name == solver.name()) {
            continue;
        }
        match session.plan(&problem, solver, None, false) {
            Ok(made) => {
                if solver.name() == "whole" {
                    whole = Some(made.plan.cost);
                }
                rows.push((solver.name(), Ok(made.plan)));
            }
            // What is proved to have no plan has none by any solver; a solver that found none is a line of the table.
            Err(error) => match error.downcast_ref::<Unsolved>() {
                Some(Unsolved::NotApplicable { why, .. }) => rows.push((solver.name(), Err(why.clone()))),
                Some(Unsolved::Infeasible(Infeasible::Pools { proved: false, .. })) => {
                    rows.push((solver.name(), Err(error.to_string())));
                }
                _ => return Err(error),
            },
        }
    }
    // The best bound of any bounds them all.
    let best_bound =
        rows.iter().filter_map(|(_, row)| row.as_ref().ok()).map(|plan| plan.lower_bound).fold(0.0, f64::max);
    let result = match arguments.format {
        Format::Json => {
            let row = |(name, row): &(&str, Result<downbeat_plan::Plan, String>)| match row {
                Ok(plan) => json!({
                    "algorithm": name, "gpus": plan.gpus, "cost": plan.cost, "lower_bound": plan.lower_bound,
                    "bound_name": plan.bound_name, "gap": plan.gap, "proved_optimal": plan.proved_optimal, "seconds": plan.seconds,
                }),
                Err(why) => json!({ "algorithm": name, "not_applicable": why }),
            };
            serde_json::to_string_pretty(&json!({
                "problem": problem.name, "rule": problem.rule.name(), "backend": session.backend.name(),
                "solvers": rows.iter().map(row).collect::<Vec<_>>(),
            }))?
        }
        Format::Text => {
            let row = |(name, row): &(&str, Result<downbeat_plan::Plan, String>)| match row {
                Ok(plan) => {
                    let objective = if problem.minimises_cost() { plan.cost } else { f64::from(plan.gpus) };
                    let saved = whole.map_or_else(String::new, |whole| {
                        format!("{:.1} %", (1.0 - plan.cost / whole) * 100.0)
                    });
                    vec![
                        (*name).to_owned(),
                        plan.gpus.to_string(),
                        format!("{:.1} %", (objective / best_bound - 1.0) * 100.0),
                        saved,
                        format!("{}", plan.lower_bound),
                        plan.bound_name.clone(),
                        format!(
                            "{:.2} %{}",
                            plan.gap * 100.0,
                            if plan.proved_optimal { " proved" } else { "" }
                        ),
                        format!("{:.2}", plan.seconds),
                    ]
                }
                Err(why) => vec![
                    (*name).to_owned(),
                    "-".to_owned(),
                    String::new(),
                    String::new(),
                    String::new(),
                    why.clone(),
                ],
            };
            let header = [
                "solver",
                "GPUs",
                "above best bound",
                "saved over whole",
                "own bound",
                "by",
                "own gap",
                "seconds",
            ];
            let title = format!(
                "{}: {} services, rule {}, {}\n\n",
                problem.name,
                problem.services.len(),
                problem.rule,
                session.backend.name()
            );
            title + &output::table(&header, rows.iter().map(row))
        }
    };
    output::print(&result)
}
