//! Which models of a run are shown by name and colour, and which are pooled.

use std::cmp::Ordering;

use super::format;
use super::page::{COLOURS, colour};
use crate::{ModelReport, RunReport};

/// How many muted tints the pooled models have on the timeline, so that neighbours can be told apart.
const TINTS: usize = 4;

/// The models of a run in the roles that the charts give them.
pub(super) struct Cast {
    /// Models with a colour of their own.
    pub(super) named: Vec<usize>,
    /// All others.
    pub(super) pooled: Vec<usize>,
}

impl Cast {
    /// Every model by name while there are colours for all; else the worst by bad rate, and the rest together.
    pub(super) fn of(run: &RunReport) -> Self {
        if run.models.len() <= COLOURS {
            return Self { named: (0..run.models.len()).collect(), pooled: Vec::new() };
        }
        let mut named = worst_first(&run.models);
        let pooled = named.split_off(COLOURS - 1);
        Self { named, pooled }
    }

    /// The class of a model's line or bars.
    pub(super) fn class(&self, model: usize) -> String {
        match self.named.iter().position(|named| *named == model) {
            Some(place) => colour(place),
            None => "rest".to_owned(),
        }
    }

    /// The class of a model's blocks on the timeline.
    pub(super) fn block_class(&self, model: usize) -> String {
        match self.named.iter().position(|named| *named == model) {
            Some(place) => colour(place),
            None => format!("rest r{}", model % TINTS),
        }
    }

    /// What the pooled models are called together.
    pub(super) fn pooled_label(&self) -> String {
        format!("other {}", format::counted(self.pooled.len(), "model"))
    }

    /// (class, label) of everything shown.
    pub(super) fn legend(&self, run: &RunReport) -> Vec<(String, String)> {
        let named = self.named.iter().map(|model| (self.class(*model), name(run, *model).to_owned()));
        let pooled = (!self.pooled.is_empty()).then(|| ("rest".to_owned(), self.pooled_label()));
        named.chain(pooled).collect()
    }

    /// Says which models are shown by name, when not all are.
    pub(super) fn note(&self) -> String {
        if self.pooled.is_empty() {
            return String::new();
        }
        format!("The {} worst models by bad rate are shown by name, the others together. ", self.named.len())
    }
}

/// A model's name; a run may speak of models that it does not list.
pub(super) fn name(run: &RunReport, model: usize) -> &str {
    run.models.get(model).map_or("?", |m| m.name.as_str())
}

/// A model's SLO, where it is known and means something.
pub(super) fn slo_ms(run: &RunReport, model: usize) -> Option<f64> {
    run.detail.slo_ms.get(model).copied().filter(|slo| slo.is_finite() && *slo > 0.0)
}

/// The models' indices by falling bad rate, then by falling traffic, then in the scenario's order.
pub(super) fn worst_first(models: &[ModelReport]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..models.len()).collect();
    order.sort_by(|a, b| {
        let (a, b) = (&models[*a], &models[*b]);
        falling(a.bad_rate, b.bad_rate).then(b.offered.cmp(&a.offered))
    });
    order
}

/// Falling order; what is not a number comes last.
pub(super) fn falling(a: f64, b: f64) -> Ordering {
    let key = |x: f64| if x.is_nan() { f64::NEG_INFINITY } else { x };
    key(b).total_cmp(&key(a))
}
