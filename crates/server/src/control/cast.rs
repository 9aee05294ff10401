//! Models and workers, as the control task knows them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use downbeat_oip::config::WrittenConfig;
use downbeat_oip::{Failure, Reason};
use downbeat_profile::{LatencyProfile, Span};
use downbeat_repository::{ModelDefinition, Repository, Version};
use downbeat_sched::ClassId;

use crate::dispatch::InstanceId;
use crate::files::{self, NotedFile, Stamp};
use crate::link::message::{File, Load};
use crate::link::{Worker, WorkerId, tensors};
use crate::metrics::DeviceMeter;
use crate::subcluster::{Pool, Subcluster};

/// How far a model is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Loading,
    Ready,
    Leaving,
}

/// A version of a model, loaded once.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) definition: Arc<ModelDefinition>,
    pub(super) version: Version,
    /// Its files as they were when it was loaded; none of an emulated model.
    files: Vec<NotedFile>,
    /// The configuration that it was loaded with, where that was not its own.
    pub(super) config: Option<Box<WrittenConfig>>,
    pub(super) slo: Span,
    /// The sub-cluster that it is in.
    pub(super) home: Option<Subcluster>,
    pub(super) phase: Phase,
    /// Workers that were told to load it and have not answered.
    pub(super) awaiting: BTreeSet<WorkerId>,
    /// Workers that cannot load it, because its files have changed, and take no batches until it is gone.
    pub(super) stale: BTreeSet<WorkerId>,
    /// Workers that have loaded it.
    pub(super) loaded: BTreeSet<WorkerId>,
    /// Why it cannot be loaded on a class.
    pub(super) troubles: BTreeMap<ClassId, String>,
    /// Classes on which it can be used.
    pub(super) profiles: BTreeMap<ClassId, LatencyProfile>,
    /// Workers that find out how long it takes on their class.
    pub(super) measuring: BTreeMap<ClassId, WorkerId>,
    /// Why it could not be loaded, until that is reported.
    pub(super) failed: Option<Failure>,
    /// Workers that ended while they loaded or measured it.
    pub(super) deaths: u32,
}

/// A model as the repository has it.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) definition: Arc<ModelDefinition>,
    /// Of every version.
    files: Vec<Vec<NotedFile>>,
    /// The configuration that stood in for the model's own.
    config: Option<Box<WrittenConfig>>,
}

impl Found {
    /// Reads a model. It may take long: the repository may be on a network.
    pub(super) fn read(
        repository: &Repository,
        model: &str,
        config: Option<Box<WrittenConfig>>,
    ) -> Result<Found, Failure> {
        let failed = |error: String| {
            let known = repository.models().is_ok_and(|models| models.iter().any(|known| known == model));
            Failure::new(if known { Reason::Invalid } else { Reason::Unknown }, error)
        };
        let given = config.as_ref().map(|config| (**config).clone());
        let definition = repository.read(model, given).map_err(|error| failed(error.to_string()))?;
        let note = |version: &Version| version.file.as_deref().map_or(Ok(Vec::new()), files::note_all);
        let files = definition.versions.iter().map(note).collect::<Result<_, _>>().map_err(failed)?;
        Ok(Found { definition: Arc::new(definition), files, config })
    }
}

/// A worker.
#[derive(Debug)]
pub(super) struct Staff {
    pub(super) worker: Worker,
    pub(super) class: ClassId,
    /// Whether its devices take batches.
    pub(super) joined: bool,
    /// Whether it is about to go, and takes no more.
    pub(super) leaving: bool,
    /// One for each device.
    pub(super) meters: Vec<Arc<DeviceMeter>>,
}

impl Instance {
    pub(super) fn new(found: &Found, index: usize, slo: Span, home: Option<Subcluster>) -> Instance {
        Instance {
            definition: Arc::clone(&found.definition),
            version: found.definition.versions[index].clone(),
            files: found.files[index].clone(),
            config: found.config.clone(),
            slo,
            home,
            phase: Phase::Loading,
            awaiting: BTreeSet::new(),
            stale: BTreeSet::new(),
            loaded: BTreeSet::new(),
            troubles: BTreeMap::new(),
            profiles: BTreeMap::new(),
            measuring: BTreeMap::new(),
            failed: None,
            deaths: 0,
        }
    }

    /// What a worker is told to load it, and the files that it may ask for.
    pub(super) fn load_message(
        &self,
        id: InstanceId,
        emulated: Option<&LatencyProfile>,
    ) -> (Load, Vec<NotedFile>) {
        let definition = &self.definition;
        let path = self.version.file.clone().unwrap_or_default();
        let folder = path.parent().unwrap_or(Path::new(""));
        let described = |NotedFile { path, stamp: Stamp { bytes, modified_ns } }: &NotedFile| File {
            name: path.strip_prefix(folder).unwrap_or(path).to_string_lossy().into_owned(),
            bytes: *bytes,
            modified_ns: *modified_ns,
        };
        let latencies = |profile: &LatencyProfile| {
            (1..=profile.max_batch()).map(|batch| profile.latency(batch).as_nanos()).collect()
        };
        let load = Load {
            instance: id.0,
            name: format!("{} version {}", definition.name, self.version.number),
            path: path.to_string_lossy().into_owned(),
            files: self.files.iter().map(described).collect(),
            inputs: tensors::declare(&definition.inputs),
            outputs: tensors::declare(&definition.outputs),
            input_reshapes: tensors::declare_reshapes(&definition.input_reshapes),
            output_reshapes: tensors::declare_reshapes(&definition.output_reshapes),
            max_batch: definition.max_batch,
            latency_ns: emulated.map(latencies).unwrap_or_default(),
            emulated: self.version.file.is_none(),
        };
        (load, self.files.clone())
    }
}

impl Staff {
    pub(super) fn new(worker: Worker, class: ClassId, meters: Vec<Arc<DeviceMeter>>) -> Staff {
        Staff { worker, class, joined: false, leaving: false, meters }
    }
}

/// The name that a device gets beside those that are there: its own, or that with the smallest number behind it that is
/// free. Hosts number their devices, but do not know of each other's workers.
pub(super) fn unlike(name: &Arc<str>, taken: &BTreeSet<Arc<str>>) -> Arc<str> {
    let numbered = (2..).map(|number| format!("{name}#{number}").into());
    let mut names = std::iter::once(Arc::clone(name)).chain(numbered);
    names.find(|name| !taken.contains(name)).unwrap_or_else(|| Arc::clone(name))
}

/// Names in a row, shortened where there are many.
pub(super) fn listed(names: &[&str]) -> String {
    match names {
        [first, .., last] if names.len() > 4 => format!("{first} .. {last} ({})", names.len()),
        _ => names.join(", "),
    }
}

/// Says that a model can be asked for, and what to expect of it.
pub(super) fn announce<'a>(
    definition: &ModelDefinition,
    version: u64,
    slo: Span,
    profiles: impl Iterator<Item = (&'a Pool, &'a LatencyProfile)>,
) {
    let model = &definition.name;
    let stated = if definition.slo.is_some() { "" } else { " (the default)" };
    let mut classes = Vec::new();
    for (class, profile) in profiles {
        let (one, most) = (profile.latency(1).as_millis_f64(), profile.max_batch());
        let all = profile.latency(most).as_millis_f64();
        classes.push(format!("{class}: l(1) = {one:.2} ms, l({most}) = {all:.2} ms"));
        if profile.latency(1) >= slo {
            tracing::warn!(
                model,
                "one request takes {one:.1} ms on {class}, longer than the SLO of {:.1} ms: every request will be \
                 answered as expired; set parameters {{ key: \"slo_ms\" value {{ string_value: \"...\" }} }} in config.pbtxt",
                slo.as_millis_f64()
            );
        }
    }
    tracing::info!(
        model,
        version,
        "ready; SLO {:.1} ms{stated}; {}",
        slo.as_millis_f64(),
        classes.join("; ")
    );
}
