//! The models of a scenario: SLO, profiles, arrivals. Their rates are in `rates`.

use std::collections::BTreeSet;
use std::ops::Range;

use downbeat_profile::{LARGEST_BATCH, LatencyProfile};
use downbeat_sched::{Priority, Span};
use toml::Spanned;

use super::check::{LONGEST_S, Least, Place};
use super::error::ScenarioError;
use super::file::{ArrivalFile, ModelFile, ProfileEntry, ScenarioFile};
use super::load::Files;
use super::{Arrival, GpuClass, Model};

const SECOND: f64 = 1.0;
const MILLISECOND: f64 = 1e-3;

/// The smallest shape: below it nearly all gaps round to no time at all, and the clock stands still.
const LEAST_SHAPE: f64 = 1e-3;

/// The largest coefficient of a profile: the longest time a scenario may name.
const MOST_MS: f64 = LONGEST_S / MILLISECOND;

/// What is known when the models are read.
pub(super) struct Reader<'a> {
    pub(super) top: &'a Place<'a>,
    pub(super) file: &'a ScenarioFile,
    pub(super) classes: &'a [GpuClass],
    pub(super) response_reserve: Span,
}

impl Reader<'_> {
    /// All models, with a share of 0 that is still to be assigned.
    pub(super) fn models(&self, files: &mut Files) -> Result<Vec<Model>, ScenarioError> {
        let models = self.file.model.as_deref().unwrap_or_default();
        if models.is_empty() {
            return Err(self.top.source.invalid(None, "model is missing; give at least one [[model]]"));
        }
        let default_arrival = match &self.file.arrival {
            Some(spanned) => arrival(self.top, spanned, files)?,
            None => Arrival::Poisson,
        };
        let mut names = BTreeSet::new();
        models
            .iter()
            .map(|spanned| {
                let model = spanned.get_ref();
                let name = model.name.get_ref();
                let place = Place { source: self.top.source, who: format!("model {name:?}: ") };
                place.name(&model.name)?;
                if !names.insert(name) {
                    return Err(place.wrong(model.name.span(), "the name is given twice"));
                }
                Ok(Model {
                    name: name.clone(),
                    slo: self.slo(&place, &model.slo_ms)?,
                    share: 0.0,
                    profiles: self.profiles(&place, model, spanned.span(), files)?,
                    priority: match &model.priority {
                        Some(priority) => Priority(place.whole("priority", priority, 0, 255)? as u8),
                        None => Priority::default(),
                    },
                    arrival: match &model.arrival {
                        Some(spanned) => arrival(&place, spanned, files)?,
                        None => default_arrival.clone(),
                    },
                })
            })
            .collect()
    }

    fn slo(&self, place: &Place<'_>, slo_ms: &Spanned<f64>) -> Result<Span, ScenarioError> {
        let slo = place.time("slo_ms", slo_ms, MILLISECOND)?;
        if slo <= self.response_reserve {
            let reserve_ms = self.response_reserve.as_millis_f64();
            let message = format!(
                "slo_ms must be above response_reserve_us, which is {reserve_ms} ms (is {})",
                slo_ms.get_ref()
            );
            return Err(place.wrong(slo_ms.span(), message));
        }
        Ok(slo)
    }

    /// The model's profile on each class.
    fn profiles(
        &self,
        place: &Place<'_>,
        model: &ModelFile,
        table: Range<usize>,
        files: &mut Files,
    ) -> Result<Vec<Option<LatencyProfile>>, ScenarioError> {
        let entries = match (&model.profile, &model.profiles) {
            (Some(entry), Some(_)) => {
                return Err(place.wrong(entry.span(), "profile and profiles cannot both be given"));
            }
            (Some(entry), None) if self.file.gpus.is_some() => {
                return Ok(vec![Some(profile(place, "profile", entry, files)?)]);
            }
            (Some(entry), None) => {
                return Err(place.wrong(
                    entry.span(),
                    "profile does not say for which class; with [[gpu_class]] give profiles = { CLASS = {...} }",
                ));
            }
            (None, Some(entries)) => entries.get_ref(),
            (None, None) => {
                return Err(place.wrong(table, "profile is missing: the model cannot run anywhere"));
            }
        };
        if entries.is_empty() {
            return Err(place.wrong(table, "profiles names no class: the model cannot run anywhere"));
        }
        let mut by_class = vec![None; self.classes.len()];
        for (class, entry) in entries {
            let Some(index) = self.classes.iter().position(|known| known.name == *class.get_ref()) else {
                let known: Vec<&str> = self.classes.iter().map(|class| class.name.as_str()).collect();
                return Err(place.unknown("profiles: the class", class, &known));
            };
            by_class[index] = Some(profile(place, &format!("profiles.{:?}", class.get_ref()), entry, files)?);
        }
        Ok(by_class)
    }
}

/// The profile that the table under `key` describes.
fn profile(
    place: &Place<'_>,
    key: &str,
    spanned: &Spanned<ProfileEntry>,
    files: &mut Files,
) -> Result<LatencyProfile, ScenarioError> {
    let table = spanned.span();
    let ProfileEntry { alpha_ms, beta_ms, max_batch, csv, model, slice } = spanned.get_ref();
    let at = |field: &str| format!("{key}.{field}");
    let largest = match max_batch {
        Some(value) => Some(place.whole(&at("max_batch"), value, 1, LARGEST_BATCH)?),
        None => None,
    };
    if let Some(csv) = csv {
        place.unused(&at("alpha_ms"), alpha_ms.as_ref(), "csv")?;
        place.unused(&at("beta_ms"), beta_ms.as_ref(), "csv")?;
        let model = place.needed(&at("model"), model.as_ref(), table.clone(), "csv")?.get_ref();
        let slice = place.needed(&at("slice"), slice.as_ref(), table, "csv")?.get_ref();
        return files
            .profile(csv.get_ref(), model, slice, largest)
            .map_err(|error| place.wrong(csv.span(), format!("{key}: {error}")));
    }

    let needed_by = "a profile without csv";
    place.unused(&at("model"), model.as_ref(), needed_by)?;
    place.unused(&at("slice"), slice.as_ref(), needed_by)?;
    let coefficient = |field: &str, value: Option<&Spanned<f64>>| {
        let value = place.needed(&at(field), value, table.clone(), needed_by)?;
        place.number(&at(field), value, Least::From(0.0), MOST_MS)
    };
    let alpha_ms = coefficient("alpha_ms", alpha_ms.as_ref())?;
    let beta_ms = coefficient("beta_ms", beta_ms.as_ref())?;
    place.needed(&at("max_batch"), max_batch.as_ref(), table.clone(), needed_by)?;
    LatencyProfile::linear(alpha_ms, beta_ms, largest.unwrap_or(1))
        .map_err(|error| place.wrong(table, format!("{key}: {error}")))
}

fn arrival(
    place: &Place<'_>,
    spanned: &Spanned<ArrivalFile>,
    files: &mut Files,
) -> Result<Arrival, ScenarioError> {
    let ArrivalFile { kind, shape, on_s, off_s, factor, csv } = spanned.get_ref();
    let name = kind.get_ref().as_str();
    if !["poisson", "uniform", "gamma", "onoff", "trace"].contains(&name) {
        return Err(place.unknown("arrival kind", kind, &["poisson", "uniform", "gamma", "onoff", "trace"]));
    }
    let this_kind = format!("arrival kind {name:?}");
    for (owner, key, value) in [
        ("gamma", "arrival.shape", shape),
        ("onoff", "arrival.on_s", on_s),
        ("onoff", "arrival.off_s", off_s),
        ("onoff", "arrival.factor", factor),
    ] {
        if owner == name {
            place.needed(key, value.as_ref(), spanned.span(), &this_kind)?;
        } else {
            place.unused(key, value.as_ref(), &this_kind)?;
        }
    }
    if name != "trace" {
        place.unused("arrival.csv", csv.as_ref(), &this_kind)?;
    }

    Ok(match (name, shape, (on_s, off_s, factor)) {
        ("uniform", ..) => Arrival::Uniform,
        ("gamma", Some(shape), _) => {
            place.number("arrival.shape", shape, Least::Above(0.0), 1e6)?;
            let shape = place.number("arrival.shape", shape, Least::From(LEAST_SHAPE), 1e6)?;
            Arrival::Gamma { shape }
        }
        ("onoff", _, (Some(on_s), Some(off_s), Some(factor))) => Arrival::OnOff {
            on: place.time("arrival.on_s", on_s, SECOND)?,
            off: place.time("arrival.off_s", off_s, SECOND)?,
            factor: place.number("arrival.factor", factor, Least::From(1.0), 1e9)?,
        },
        ("trace", ..) => {
            let csv = place.needed("arrival.csv", csv.as_ref(), spanned.span(), &this_kind)?;
            let trace = files
                .trace(csv.get_ref())
                .map_err(|error| place.wrong(csv.span(), format!("arrival.csv: {error}")))?;
            Arrival::Trace(trace)
        }
        _ => Arrival::Poisson,
    })
}
