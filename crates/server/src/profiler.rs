//! Measures the models of a repository on a device of this machine.

use std::io;
use std::path::Path;

use downbeat_engine::measure::{MeasureSettings, Progress, measure, sizes_up_to};
use downbeat_engine::onnx::{OnnxRuntime, OnnxSettings, Provider};
use downbeat_engine::synthetic::synthetic_inputs;
use downbeat_engine::{EngineError, Model as _, WallClock, in_steps};
use downbeat_profile::{DeviceClass, Fit};
use downbeat_repository::{ModelError, Repository};

use crate::device::{DeviceKind, DeviceSpec};
use crate::profiles::{rows, save};

pub use downbeat_engine::measure::Measured;

/// Measures models on one device.
pub struct Profiler {
    repository: Repository,
    runtime: OnnxRuntime,
    settings: OnnxSettings,
    class: DeviceClass,
    open_size: u64,
}

/// The latencies of a model.
#[derive(Clone, Debug)]
pub struct ModelProfile {
    /// The model.
    pub model: String,
    /// Every size that was measured.
    pub sizes: Vec<Measured>,
}

/// Why a model was not measured.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The repository has no such model, or it is broken.
    #[error(transparent)]
    Repository(#[from] ModelError),
    /// The model does not run.
    #[error("{model}: {error}")]
    Model {
        /// The model.
        model: String,
        /// Why.
        error: EngineError,
    },
    /// There is nothing to measure.
    #[error("{0}")]
    Nothing(String),
}

impl Profiler {
    /// Makes ready to measure on a device.
    pub fn start(
        repository: &Path,
        device: &DeviceSpec,
        onnxruntime: Option<&Path>,
        threads: u32,
        open_size: u64,
    ) -> Result<Profiler, Trouble> {
        let provider = match device.kind {
            DeviceKind::Cpu => Provider::Cpu,
            DeviceKind::Cuda(number) => Provider::Cuda(number),
            DeviceKind::TensorRt(number) => Provider::TensorRt(number),
            DeviceKind::Emulated => {
                let message =
                    "an emulated device takes as long as its profile says: there is nothing to measure";
                return Err(Trouble::Nothing(message.to_owned()));
            }
        };
        let repository = Repository::open(repository)?;
        let unfit = |error: EngineError| Trouble::Nothing(error.to_string());
        let runtime = OnnxRuntime::init(onnxruntime).map_err(unfit)?;
        runtime.check(provider).map_err(unfit)?;
        let settings = OnnxSettings { intra_op_threads: threads, provider };
        Ok(Profiler { repository, runtime, settings, class: device.class.clone(), open_size })
    }

    /// The models asked for; all where none is.
    pub fn models(&self, wanted: &[String]) -> Result<Vec<String>, Trouble> {
        let names = if wanted.is_empty() { self.repository.models()? } else { wanted.to_vec() };
        if names.is_empty() {
            return Err(Trouble::Nothing("the repository has no models".to_owned()));
        }
        Ok(names)
    }

    /// Measures the newest version of a model.
    pub fn measure(&self, model: &str, progress: &mut dyn FnMut(&Progress)) -> Result<ModelProfile, Trouble> {
        let definition = self.repository.read(model, None)?;
        let file = definition.newest().and_then(|version| version.file.clone());
        let Some(file) = file else {
            return Err(Trouble::Nothing(format!("{model} is emulated: there is nothing to measure")));
        };
        let failed = |error| Trouble::Model { model: model.to_owned(), error };
        let reshapes = [definition.input_reshapes.as_slice(), &definition.output_reshapes];
        let mut loaded = self
            .runtime
            .load_for_batches(&file, &self.settings, definition.max_batch, reshapes)
            .map_err(failed)?;
        let sizes = measure(
            &mut *loaded,
            &sizes_up_to(definition.max_batch),
            &mut |rows| synthetic_inputs(&definition.inputs, rows, self.open_size, u64::from(rows)),
            &MeasureSettings::thorough(),
            &mut WallClock::start(),
            &mut || None,
            progress,
        )
        .map_err(failed)?;
        let sizes = if loaded.goes_in_steps() { in_steps(sizes) } else { sizes };
        Ok(ModelProfile { model: model.to_owned(), sizes })
    }

    /// Writes the latencies as a CSV, in one go.
    pub fn write(&self, profiles: &[ModelProfile], path: &Path) -> io::Result<()> {
        let rows = profiles
            .iter()
            .flat_map(|profile| rows(&profile.model, &self.class, &profile.points()).collect::<Vec<_>>());
        save(path, rows)
    }
}

impl ModelProfile {
    fn points(&self) -> Vec<(u32, f64)> {
        self.sizes.iter().map(|size| (size.batch, size.median_ms)).collect()
    }

    /// The line through the latencies, where there are enough.
    pub fn fit(&self) -> Option<Fit> {
        Fit::of(&self.points()).ok()
    }
}
