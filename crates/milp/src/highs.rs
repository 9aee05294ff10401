//! By HiGHS, in a shared library that is loaded at run time.
//!
//! `calls` is the C interface, and the only unsafe code; here is what is asked of it.

mod calls;
mod library;

use std::path::Path;

use crate::{Answer, Limits, MilpError, Program, Status};
use calls::{Calls, Model};

pub(crate) use library::LIBRARY;
pub use library::LIBRARY_VARIABLE;

/// Words of HiGHS's interface; see its `highs_c_api.h`.
const STATUS_ERROR: i32 = -1;
const MODEL_EMPTY: i32 = 6;
const MODEL_OPTIMAL: i32 = 7;
const MODEL_INFEASIBLE: i32 = 8;
const MODEL_UNBOUNDED_OR_INFEASIBLE: i32 = 9;
const SOLUTION_FEASIBLE: i32 = 2;

/// HiGHS, ready to solve.
#[derive(Debug)]
pub(crate) struct Highs {
    calls: Calls,
}

impl Highs {
    pub(crate) fn load(library: &Path) -> Result<Highs, MilpError> {
        Calls::load(library)
            .map(|calls| Highs { calls })
            .map_err(|why| MilpError::Library(format!("{}: {why}", library.display())))
    }

    pub(crate) fn solve(&self, program: &Program, limits: &Limits<'_>) -> Result<Answer, MilpError> {
        let failed = |what: &str| MilpError::Failed { backend: "highs", why: what.to_owned() };
        let whole = program.columns.iter().any(|column| column.integer);
        let mut model = Model::new(&self.calls).ok_or_else(|| failed("no memory"))?;
        model.option_bool("output_flag", false);
        model.option_double("mip_abs_gap", limits.absolute_gap.max(1e-9));
        model.option_double("mip_rel_gap", 0.0);
        // The default of 1e-6 per row lets a demand be missed by more than a checker forgives; with 1e-9 for whole
        // numbers, HiGHS has been seen to prove a plan to be the best that was not.
        model.option_double("mip_feasibility_tolerance", 1e-7);
        model.option_double("primal_feasibility_tolerance", 1e-9);
        if model.pass(program) == STATUS_ERROR {
            return Err(failed("the program was refused"));
        }
        if let Some(start) = limits.start {
            model.start_from(start);
        }
        if model.run(limits.stop) == STATUS_ERROR {
            return Err(failed("the search failed"));
        }
        let status = match model.status() {
            MODEL_OPTIMAL | MODEL_EMPTY => Status::Optimal,
            MODEL_INFEASIBLE | MODEL_UNBOUNDED_OR_INFEASIBLE => return Ok(Answer::infeasible()),
            _ => Status::Stopped,
        };
        let mut values = (model.info_int("primal_solution_status") == Some(SOLUTION_FEASIBLE))
            .then(|| model.solution(program.columns.len(), program.rows.len()));
        if let Some((values, _)) = &mut values {
            for (value, column) in values.iter_mut().zip(&program.columns) {
                if column.integer {
                    *value = value.round();
                }
            }
        }
        let (values, duals) = values.map_or((None, Vec::new()), |(values, duals)| (Some(values), duals));
        let objective = values.as_ref().map_or(f64::INFINITY, |values| program.objective(values));
        let bound = match status {
            _ if whole => model.info_double("mip_dual_bound").unwrap_or(f64::NEG_INFINITY),
            Status::Optimal => objective,
            _ => f64::NEG_INFINITY,
        };
        Ok(Answer { status, values, objective, bound, duals: if whole { Vec::new() } else { duals } })
    }
}
