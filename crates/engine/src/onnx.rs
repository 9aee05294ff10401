//! Models in ONNX files, run by ONNX Runtime.
//!
//! The runtime is a library that is loaded when the program starts: the one for CPUs or one with providers for GPUs,
//! whichever is there. [`OnnxRuntime::init`] finds it, by the setting, the environment or where set-up put it.

mod dear;
mod library;
mod values;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use downbeat_oip::{Reshape, Tensor, TensorSpec};
use ort::environment::Environment;
use ort::ep::ExecutionProvider as _;
use ort::logging::LogLevel;
use ort::session::{Session, SessionInputValue};
use ort::value::{Outlet, ValueType};
use ort::{LoadDynamicError, ep};

use crate::measure::sizes_up_to;
use crate::{EngineError, Model, Padded, Reshaped, Signature};

pub use library::LIBRARY_VARIABLE;
pub use values::check_strings;

/// The library of ONNX Runtime, loaded.
#[derive(Clone)]
pub struct OnnxRuntime {
    environment: Environment,
    library: PathBuf,
}

/// How a model is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OnnxSettings {
    /// Threads that share the work of one operator; 0 for one per core.
    pub intra_op_threads: u32,
    /// What runs it.
    pub provider: Provider,
}

/// What runs a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Provider {
    /// The CPU.
    #[default]
    Cpu,
    /// The GPU with this number, by CUDA.
    Cuda(u32),
    /// The GPU with this number, by TensorRT, and by CUDA what TensorRT cannot do.
    TensorRt(u32),
}

/// A model in an ONNX file, loaded.
#[derive(Debug)]
pub struct OnnxModel {
    session: Session,
    signature: Signature,
}

/// A process can load one runtime, once.
static LOADED: Mutex<Option<OnnxRuntime>> = Mutex::new(None);

impl OnnxRuntime {
    /// Loads the library: the one named here, else by `ORT_DYLIB_PATH`, else where set-up put it. Loading it again
    /// gives the one that is loaded.
    pub fn init(library: Option<&Path>) -> Result<OnnxRuntime, EngineError> {
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        let library = library::find(library)?;
        if let Some(runtime) = &*loaded {
            return if runtime.library == library {
                Ok(runtime.clone())
            } else {
                Err(EngineError(format!(
                    "ONNX Runtime is already loaded from {}; {} needs another process",
                    runtime.library.display(),
                    library.display()
                )))
            };
        }
        let environment = ort::init_from(&library)
            .map_err(|error| not_loaded(&library, &error))?
            .with_name("downbeat")
            .with_telemetry(false)
            .build()
            .map_err(|error| EngineError(format!("ONNX Runtime does not start: {}", one_line(&error))))?;
        // What the runtime logs as an error, its caller gets as one; only those who debug it want to see it twice.
        if std::env::var_os("ORT_LOG").is_none() {
            environment.set_log_level(LogLevel::Fatal);
        }
        Ok(loaded.insert(OnnxRuntime { environment, library }).clone())
    }

    /// The library that was loaded.
    pub fn library(&self) -> &Path {
        &self.library
    }

    /// Whether the library can run models by this provider.
    pub fn check(&self, provider: Provider) -> Result<(), EngineError> {
        let (name, available) = match provider {
            Provider::Cpu => return Ok(()),
            Provider::Cuda(_) => ("CUDA", ep::CUDA::is_available()),
            Provider::TensorRt(_) => ("TensorRT", ep::TensorRT::is_available()),
        };
        if available.unwrap_or(false) {
            return Ok(());
        }
        Err(EngineError(format!(
            "the ONNX Runtime library {} has no {name} provider; name the one of the package onnxruntime-gpu in \
             {LIBRARY_VARIABLE}, or choose the device cpu",
            self.library.display()
        )))
    }

    /// Loads a model as a device runs it: behind its reshapes, and where changes of size are dear, in a copy for each
    /// size.
    pub fn load_for_batches(
        &self,
        path: &Path,
        settings: &OnnxSettings,
        max_batch: u32,
        [inputs, outputs]: [&[Reshape]; 2],
    ) -> Result<Box<dyn Model>, EngineError> {
        let reshaped = |model| Reshaped::new(model, inputs.to_vec(), outputs.to_vec());
        let mut model = self.load(path, settings)?;
        if settings.provider == Provider::Cpu || max_batch <= 1 || !dear::changes_of_size(&mut model)? {
            return Ok(Box::new(reshaped(model)));
        }
        let mut first = Some(model);
        let next = || first.take().map_or_else(|| self.load(path, settings), Ok).map(reshaped);
        Ok(Box::new(Padded::load(&sizes_up_to(max_batch), next)?))
    }

    /// Loads a model file.
    pub fn load(&self, path: &Path, settings: &OnnxSettings) -> Result<OnnxModel, EngineError> {
        self.check(settings.provider)?;
        // The binding panics on types that it does not know. A model file is the user's: it must not stop a server.
        let session = catch_unwind(AssertUnwindSafe(|| self.session(path, settings)))
            .unwrap_or_else(|_| Err(ort::Error::new("it uses a type that is not supported")))
            .map_err(|error| {
                EngineError(format!("{} cannot be loaded: {}", path.display(), one_line(&error)))
            })?;
        let signature = Signature {
            inputs: session
                .inputs()
                .iter()
                .map(|input| spec(path, "input", input))
                .collect::<Result<_, _>>()?,
            outputs: session
                .outputs()
                .iter()
                .map(|output| spec(path, "output", output))
                .collect::<Result<_, _>>()?,
        };
        Ok(OnnxModel { session, signature })
    }

    fn session(&self, path: &Path, settings: &OnnxSettings) -> ort::Result<Session> {
        Session::builder(&self.environment)?
            .with_intra_threads(settings.intra_op_threads as usize)?
            // A server has many models, each with its own threads: those that wait must not take the cores of those
            // that work.
            .with_intra_op_spinning(false)?
            .with_execution_providers(providers(settings.provider))?
            .commit_from_file(path)
    }
}

impl OnnxModel {
    /// What the model takes and gives, as its file says; -1 where any size is allowed.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }
}

impl Model for OnnxModel {
    fn run(&mut self, inputs: &[Tensor], _rows: u32) -> Result<Vec<Tensor>, EngineError> {
        let inputs = inputs
            .iter()
            .map(|tensor| Ok((tensor.name.as_str(), values::to_runtime(tensor)?)))
            .collect::<Result<Vec<(&str, SessionInputValue<'_>)>, EngineError>>()?;
        let outputs = self
            .session
            .run(inputs)
            .map_err(|error| EngineError(format!("the model failed: {}", one_line(&error))))?;
        outputs.iter().map(|(name, value)| values::from_runtime(name, &value)).collect()
    }
}

impl std::fmt::Debug for OnnxRuntime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OnnxRuntime").field("library", &self.library).finish_non_exhaustive()
    }
}

fn providers(provider: Provider) -> Vec<ep::ExecutionProviderDispatch> {
    let cuda = |gpu: u32| {
        // A model has several copies, each with memory of its own: none is to keep more than it has needed.
        ep::CUDA::default()
            .with_device_id(gpu as i32)
            .with_arena_extend_strategy(ep::ArenaExtendStrategy::SameAsRequested)
            .build()
            .error_on_failure()
    };
    match provider {
        Provider::Cpu => Vec::new(),
        Provider::Cuda(gpu) => vec![cuda(gpu)],
        Provider::TensorRt(gpu) => {
            vec![ep::TensorRT::default().with_device_id(gpu as i32).build().error_on_failure(), cuda(gpu)]
        }
    }
}

fn spec(path: &Path, role: &str, outlet: &Outlet) -> Result<TensorSpec, EngineError> {
    let unsupported = || {
        EngineError(format!(
            "{} cannot be served: its {role} {:?} is a {}; only tensors of the protocol's types can be sent",
            path.display(),
            outlet.name(),
            outlet.dtype()
        ))
    };
    let ValueType::Tensor { ty, shape, .. } = outlet.dtype() else { return Err(unsupported()) };
    let datatype = values::datatype_of(*ty).ok_or_else(unsupported)?;
    Ok(TensorSpec { name: outlet.name().to_owned(), datatype, shape: shape.to_vec() })
}

fn not_loaded(library: &Path, error: &LoadDynamicError) -> EngineError {
    EngineError(match error {
        LoadDynamicError::BadVersion { version_str, .. } => format!(
            "{} is ONNX Runtime {version_str}, which is too old: take 1.{} or newer, or run `make setup-runtime`",
            library.display(),
            ort::MINOR_VERSION
        ),
        LoadDynamicError::MissingApi { .. } | LoadDynamicError::InvalidVersionString => {
            format!(
                "{} is not ONNX Runtime; run `make setup-runtime`, or name libonnxruntime.so",
                library.display()
            )
        }
        LoadDynamicError::Dlopen { error, .. } => {
            format!("the ONNX Runtime library {} cannot be loaded: {}", library.display(), one_line(error))
        }
    })
}

/// The runtime's messages run over several lines.
fn one_line(error: &dyn std::error::Error) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
