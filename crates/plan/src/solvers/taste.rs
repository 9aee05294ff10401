//! What counts when GPUs are filled.

use crate::bound::slice_cost;
use crate::prices::dual;
use crate::problem::Problem;
use crate::solver::Run;

/// What slices and demands are worth: the prices of slices that bound every plan best, and each service's cheapest
/// slices at those.
///
/// By shares of compute, a kind of slice that everybody wants would seem as cheap as the kind that is left beside it.
#[derive(Clone, Debug)]
pub(crate) struct Worth {
    /// By kind of slice.
    pub(crate) slices: Vec<f64>,
    /// By service.
    pub(crate) demands: Vec<f64>,
}

impl Worth {
    pub(crate) fn of(problem: &Problem, run: &Run<'_>) -> Worth {
        match dual::best_prices(problem, run, &|_| {}) {
            Ok(Some(prices)) => Worth {
                demands: prices.patterns.iter().map(|pattern| pattern.worth).collect(),
                slices: prices.slices,
            },
            _ => Worth {
                slices: (0..problem.slices.len()).map(|slice| slice_cost(problem, slice)).collect(),
                demands: vec![1.0; problem.services.len()],
            },
        }
    }
}

/// What a share of a service's demand is worth to who fills GPUs.
#[derive(Clone, Debug)]
pub(crate) struct Taste {
    /// What all of each demand is worth.
    demands: Vec<f64>,
    /// How much more a share counts that is served while much is lacking: a power of what lacks.
    urgency: f64,
}

impl Taste {
    /// The paper's: every demand is worth the same, and those that lack much come first.
    pub(crate) fn published(problem: &Problem) -> Taste {
        Taste { demands: vec![1.0; problem.services.len()], urgency: 1.0 }
    }

    /// A demand counts what it is worth, to the power of `size`.
    pub(crate) fn sized(worth: &Worth, size: f64, urgency: f64) -> Taste {
        Taste { demands: worth.demands.iter().map(|worth| worth.max(1e-6).powf(size)).collect(), urgency }
    }

    /// What it is worth to serve a share of a demand of which another is lacking.
    pub(super) fn worth(&self, service: usize, lacking: f64, served: f64) -> f64 {
        // A power takes longer than all the rest.
        let urgency = match self.urgency {
            0.0 => 1.0,
            1.0 => lacking,
            power => lacking.powf(power),
        };
        self.demands[service] * urgency * served
    }
}
