//! `[[subcluster]]`: which devices are whose.

use std::collections::BTreeMap;

use downbeat_sched::{GpuId, ModelId};
use toml::Spanned;

use super::check::Place;
use super::error::ScenarioError;
use super::file::{ScenarioFile, SubclusterFile};
use super::{GpuClass, Model, Scenario};

/// Devices with the models that run on them and nowhere else: a scheduler's domain of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subcluster {
    /// Its name.
    pub name: String,
    /// How many devices of each class it has, in the order of [`Scenario::classes`]; at least one in all.
    pub gpus: Vec<u32>,
    /// Its models, by their index in [`Scenario::models`]; at least one. Every model is in one sub-cluster.
    pub models: Vec<usize>,
}

/// A sub-cluster as a scenario of its own, and whose its devices and models are in the whole.
#[derive(Clone, Debug)]
pub struct Part {
    /// The sub-cluster alone: its classes, its models, its share of the rate. It has no faults.
    pub scenario: Scenario,
    /// Its devices, in the part's order.
    pub gpus: Vec<GpuId>,
    /// Its models, in the part's order.
    pub models: Vec<ModelId>,
}

impl Scenario {
    /// The sub-clusters, each alone; the whole scenario where it has none. Devices that are nobody's are in no part.
    pub fn parts(&self) -> Vec<Part> {
        let mut first = 0;
        let mut next: Vec<u32> = Vec::with_capacity(self.classes.len());
        for class in &self.classes {
            next.push(first);
            first += class.count;
        }
        if self.subclusters.is_empty() {
            return vec![Part {
                scenario: Scenario { faults: Vec::new(), ..self.clone() },
                gpus: (0..first).map(GpuId).collect(),
                models: (0..self.models.len() as u32).map(ModelId).collect(),
            }];
        }
        self.subclusters.iter().map(|subcluster| self.part(subcluster, &mut next)).collect()
    }

    /// One sub-cluster, with the next devices of each class.
    fn part(&self, subcluster: &Subcluster, next: &mut [u32]) -> Part {
        let share: f64 = subcluster.models.iter().map(|&model| self.models[model].share).sum();
        let used: Vec<usize> = (0..self.classes.len())
            .filter(|&class| subcluster.gpus.get(class).is_some_and(|n| *n > 0))
            .collect();
        let mut gpus = Vec::new();
        for &class in &used {
            let begin = next[class];
            next[class] += subcluster.gpus[class];
            gpus.extend((begin..next[class]).map(GpuId));
        }
        let model = |&index: &usize| {
            let model = &self.models[index];
            Model {
                share: model.share / share,
                profiles: used.iter().map(|&class| model.profiles[class].clone()).collect(),
                ..model.clone()
            }
        };
        let class = |&class: &usize| GpuClass {
            name: self.classes[class].name.clone(),
            count: subcluster.gpus[class],
        };
        Part {
            scenario: Scenario {
                name: subcluster.name.clone(),
                classes: used.iter().map(class).collect(),
                models: subcluster.models.iter().map(model).collect(),
                total_rps: self.total_rps * share,
                faults: Vec::new(),
                subclusters: Vec::new(),
                ..self.clone()
            },
            gpus,
            models: subcluster.models.iter().map(|&model| ModelId(model as u32)).collect(),
        }
    }
}

/// The sub-clusters of a file; none where it lists none.
pub(super) fn subclusters(
    file: &ScenarioFile,
    top: &Place<'_>,
    classes: &[GpuClass],
    models: &[Model],
) -> Result<Vec<Subcluster>, ScenarioError> {
    let listed = file.subcluster.as_deref().unwrap_or_default();
    let Some(first) = listed.first() else { return Ok(Vec::new()) };
    if let Some(autoscale) = &file.autoscale {
        return Err(top.wrong(autoscale.span(), "autoscale cannot be given with [[subcluster]]"));
    }
    let mut left: Vec<u32> = classes.iter().map(|class| class.count).collect();
    let mut names: BTreeMap<&str, ()> = BTreeMap::new();
    let mut owner: Vec<Option<&str>> = vec![None; models.len()];
    let mut built = Vec::with_capacity(listed.len());
    for spanned in listed {
        let name = &spanned.get_ref().name;
        let place = Place { source: top.source, who: format!("subcluster {:?}: ", name.get_ref()) };
        place.name(name)?;
        if names.insert(name.get_ref(), ()).is_some() {
            return Err(place.wrong(name.span(), "the name is given twice"));
        }
        let gpus = devices(&place, spanned, classes, &mut left)?;
        let members = members(&place, spanned, models, &mut owner)?;
        for &member in &members {
            let runs = |(gpus, profile): (&u32, &Option<_>)| *gpus > 0 && profile.is_some();
            if !gpus.iter().zip(&models[member].profiles).any(runs) {
                let message = format!("none of its devices runs model {:?}", models[member].name);
                return Err(place.wrong(spanned.span(), message));
            }
        }
        built.push(Subcluster { name: name.get_ref().clone(), gpus, models: members });
    }
    if let Some(homeless) = owner.iter().position(Option::is_none) {
        let message =
            format!("model {:?} is in no [[subcluster]]; every model must be in one", models[homeless].name);
        return Err(top.wrong(first.span(), message));
    }
    Ok(built)
}

/// How many devices of each class it takes of those that are left.
fn devices(
    place: &Place<'_>,
    spanned: &Spanned<SubclusterFile>,
    classes: &[GpuClass],
    left: &mut [u32],
) -> Result<Vec<u32>, ScenarioError> {
    let mut taken = vec![0; classes.len()];
    let mut take = |key: &str, class: usize, count: &Spanned<i64>| {
        taken[class] = place.whole(key, count, 1, u32::MAX)?;
        match left[class].checked_sub(taken[class]) {
            Some(rest) => left[class] = rest,
            None => {
                let message = format!("{key} asks for {}, and {} are left", taken[class], left[class]);
                return Err(place.wrong(count.span(), message));
            }
        }
        Ok(())
    };
    let SubclusterFile { gpus, gpus_by_class, .. } = spanned.get_ref();
    match (gpus, gpus_by_class) {
        (Some(gpus), Some(_)) => {
            return Err(place.wrong(gpus.span(), "gpus and gpus_by_class cannot both be given"));
        }
        (Some(gpus), None) if classes.len() > 1 => {
            let message =
                "gpus does not say of which class; with [[gpu_class]] give gpus_by_class = { CLASS = N }";
            return Err(place.wrong(gpus.span(), message));
        }
        (Some(gpus), None) => take("gpus", 0, gpus)?,
        (None, Some(counts)) => {
            let known: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
            for (class, count) in counts.get_ref() {
                let Some(index) = known.iter().position(|known| known == class.get_ref()) else {
                    return Err(place.unknown("gpus_by_class: the class", class, &known));
                };
                take(&format!("gpus_by_class.{:?}", class.get_ref()), index, count)?;
            }
            if counts.get_ref().is_empty() {
                return Err(place.wrong(counts.span(), "gpus_by_class names no class"));
            }
        }
        (None, None) => return Err(place.wrong(spanned.span(), "gpus is missing")),
    }
    Ok(taken)
}

/// Its models, each of which is nobody's yet.
fn members<'f>(
    place: &Place<'_>,
    spanned: &'f Spanned<SubclusterFile>,
    models: &[Model],
    owner: &mut [Option<&'f str>],
) -> Result<Vec<usize>, ScenarioError> {
    let SubclusterFile { name, models: listed, .. } = spanned.get_ref();
    if listed.get_ref().is_empty() {
        return Err(place.wrong(listed.span(), "models names no model"));
    }
    let index: BTreeMap<&str, usize> =
        models.iter().enumerate().map(|(index, model)| (model.name.as_str(), index)).collect();
    let member = |model: &Spanned<String>| {
        let Some(&index) = index.get(model.get_ref().as_str()) else {
            let known: Vec<&str> = index.keys().copied().collect();
            return Err(place.unknown("models: the model", model, &known));
        };
        match owner[index].replace(name.get_ref()) {
            None => Ok(index),
            Some(other) => {
                let message = format!("model {:?} is in {other:?} already", model.get_ref());
                Err(place.wrong(model.span(), message))
            }
        }
    };
    listed.get_ref().iter().map(member).collect()
}
