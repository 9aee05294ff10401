//! Models and workers, as the control task knows them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use downbeat_oip::Failure;
use downbeat_profile::{LatencyProfile, Span};
use downbeat_repository::{ModelDefinition, Version};
use downbeat_sched::ClassId;

use crate::dispatch::InstanceId;
use crate::link::message::Load;
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
    pub(super) slo: Span,
    /// The sub-cluster that it is in.
    pub(super) home: Option<Subcluster>,
    pub(super) phase: Phase,
    /// Workers that were told to load it and have not answered.
    pub(super) awaiting: BTreeSet<WorkerId>,
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

/// A worker.
#[derive(Debug)]
pub(super) struct Staff {
    pub(super) worker: Worker,
    pub(super) class: ClassId,
    /// Whether its devices take batches.
    pub(super) joined: bool,
    /// One for each device.
    pub(super) meters: Vec<Arc<DeviceMeter>>,
}

impl Instance {
    pub(super) fn new(
        definition: Arc<ModelDefinition>,
        version: Version,
        slo: Span,
        home: Option<Subcluster>,
    ) -> Instance {
        Instance {
            definition,
            version,
            slo,
            home,
            phase: Phase::Loading,
            awaiting: BTreeSet::new(),
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
    ) -> (Load, Vec<PathBuf>) {
        let definition = &self.definition;
        let path = self.version.file.clone().unwrap_or_default();
        let folder = path.parent().unwrap_or(Path::new(""));
        let files = if path.as_os_str().is_empty() { Vec::new() } else { files_of(folder, &path) };
        let name = |file: &PathBuf| file.strip_prefix(folder).unwrap_or(file).to_string_lossy().into_owned();
        let latencies = |profile: &LatencyProfile| {
            (1..=profile.max_batch()).map(|batch| profile.latency(batch).as_nanos()).collect()
        };
        let load = Load {
            instance: id.0,
            name: format!("{} version {}", definition.name, self.version.number),
            path: path.to_string_lossy().into_owned(),
            files: files.iter().map(name).collect(),
            inputs: tensors::declare(&definition.inputs),
            outputs: tensors::declare(&definition.outputs),
            input_reshapes: tensors::declare_reshapes(&definition.input_reshapes),
            output_reshapes: tensors::declare_reshapes(&definition.output_reshapes),
            max_batch: definition.max_batch,
            latency_ns: emulated.map(latencies).unwrap_or_default(),
            emulated: self.version.file.is_none(),
            file_bytes: files.iter().map(|file| file.metadata().map_or(0, |it| it.len())).collect(),
        };
        (load, files)
    }
}

/// The files of a version: the model first, then whatever else is in the folder, such as weights kept apart.
fn files_of(folder: &Path, model: &Path) -> Vec<PathBuf> {
    let mut files = vec![model.to_owned()];
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path != model {
                files.push(path);
            }
        }
    }
    files
}

impl Staff {
    pub(super) fn new(worker: Worker, class: ClassId, meters: Vec<Arc<DeviceMeter>>) -> Staff {
        Staff { worker, class, joined: false, meters }
    }
}

/// The priority of a model's requests that name none.
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
