//! How the traffic is divided between the models.

use toml::Spanned;

use super::check::{Least, Place};
use super::error::ScenarioError;
use super::file::{ModelFile, ScenarioFile};
use super::{Arrival, Model, Scenario};

/// Sets every model's share, and says what all of them sum to.
pub(super) fn assign(
    file: &ScenarioFile,
    top: &Place<'_>,
    models: &mut [Model],
) -> Result<f64, ScenarioError> {
    let entries = file.model.as_deref().unwrap_or_default();
    let parts = match &file.total_rps {
        Some(_) => weights(file, top, entries)?,
        None => rates(file, top, entries, models)?,
    };
    let sum: f64 = parts.iter().sum();
    for (model, part) in models.iter_mut().zip(&parts) {
        model.share = part / sum;
    }
    match &file.total_rps {
        Some(total_rps) => top.number("total_rps", total_rps, Least::Above(0.0), Scenario::MOST_RPS),
        None => Ok(sum),
    }
}

/// With `total_rps`: each model's weight.
fn weights(
    file: &ScenarioFile,
    top: &Place<'_>,
    entries: &[Spanned<ModelFile>],
) -> Result<Vec<f64>, ScenarioError> {
    let zipf = zipf_exponent(file, top)?;
    (1..)
        .zip(entries)
        .map(|(rank, entry)| {
            let place = of_model(top, entry);
            let ModelFile { weight, rate_rps, .. } = entry.get_ref();
            place.unused("rate_rps", rate_rps.as_ref(), "total_rps")?;
            if let Some(s) = zipf {
                place.unused("weight", weight.as_ref(), "popularity")?;
                return Ok(f64::from(rank).powf(-s));
            }
            match weight {
                Some(weight) => place.number("weight", weight, Least::Above(0.0), 1e9),
                None => Ok(1.0),
            }
        })
        .collect()
}

/// Without `total_rps`: each model's rate, its own or its trace's.
fn rates(
    file: &ScenarioFile,
    top: &Place<'_>,
    entries: &[Spanned<ModelFile>],
    models: &[Model],
) -> Result<Vec<f64>, ScenarioError> {
    top.unused("popularity", file.popularity.as_ref(), "rate_rps per model; it divides total_rps")?;
    entries
        .iter()
        .zip(models)
        .map(|(entry, model)| {
            let place = of_model(top, entry);
            let ModelFile { weight, rate_rps, .. } = entry.get_ref();
            place.unused("weight", weight.as_ref(), "rate_rps; it divides total_rps")?;
            match (rate_rps, &model.arrival) {
                (Some(rate), _) => place.number("rate_rps", rate, Least::Above(0.0), Scenario::MOST_RPS),
                (None, Arrival::Trace(trace)) => Ok(trace.mean_rate()),
                (None, _) => {
                    Err(place
                        .wrong(entry.span(), "rate_rps is missing; give it, or total_rps for all models"))
                }
            }
        })
        .collect()
}

fn zipf_exponent(file: &ScenarioFile, top: &Place<'_>) -> Result<Option<f64>, ScenarioError> {
    let Some(spanned) = &file.popularity else { return Ok(None) };
    let popularity = spanned.get_ref();
    if popularity.kind.get_ref() != "zipf" {
        return Err(top.unknown("popularity kind", &popularity.kind, &["zipf"]));
    }
    let s = top.needed("popularity.s", popularity.s.as_ref(), spanned.span(), "popularity kind \"zipf\"")?;
    // Past 20 the second model already has less than a millionth of the traffic.
    Ok(Some(top.number("popularity.s", s, Least::From(0.0), 20.0)?))
}

fn of_model<'a>(top: &Place<'a>, entry: &Spanned<ModelFile>) -> Place<'a> {
    Place { source: top.source, who: format!("model {:?}: ", entry.get_ref().name.get_ref()) }
}
