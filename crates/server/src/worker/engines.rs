//! What a worker loads models with.

use std::path::Path;

use downbeat_engine::emulated::EmulatedModel;
use downbeat_engine::measure::{MeasureSettings, Measured, measure, sizes_up_to};
use downbeat_engine::onnx::{OnnxRuntime, OnnxSettings, Provider};
use downbeat_engine::synthetic::synthetic_inputs;
use downbeat_engine::{EngineError, Model, WallClock, in_steps};
use downbeat_oip::TensorSpec;
use downbeat_profile::{Beyond, LatencyProfile, Span};

use super::WorkerSettings;
use crate::device::DeviceKind;
use crate::link::message::{Load, Measure, Point};
use crate::link::tensors;

/// The engine of a worker's devices.
pub(super) enum Engines {
    Onnx(OnnxRuntime, OnnxSettings),
    Emulated,
}

/// A model on a device.
pub(super) struct Loaded {
    pub(super) model: Box<dyn Model>,
    inputs: Vec<TensorSpec>,
    max_batch: u32,
    /// Whether the first batch of each size takes far longer than those after it.
    starts_slowly: bool,
}

impl Engines {
    /// Makes ready what the worker's devices need, or says why it cannot.
    pub(super) fn start(settings: &WorkerSettings) -> Result<Engines, String> {
        let provider = match settings.devices.kind {
            DeviceKind::Emulated => return Ok(Engines::Emulated),
            DeviceKind::Cpu => Provider::Cpu,
            DeviceKind::Cuda(number) => Provider::Cuda(number),
            DeviceKind::TensorRt(number) => Provider::TensorRt(number),
        };
        let start = || {
            let runtime = OnnxRuntime::init(settings.onnxruntime.as_deref())?;
            runtime.check(provider)?;
            Ok(Engines::Onnx(runtime, OnnxSettings { intra_op_threads: settings.threads, provider }))
        };
        start().map_err(|error: EngineError| error.to_string())
    }

    /// Loads a model for one device.
    pub(super) fn load(&self, load: &Load, path: &Path) -> Result<Loaded, String> {
        let declared = |specs: &[_]| tensors::declared(specs.to_vec()).ok_or("a tensor of an unknown type");
        let (inputs, outputs) = (declared(&load.inputs)?, declared(&load.outputs)?);
        let model: Box<dyn Model> = match self {
            Engines::Onnx(..) if load.emulated => {
                return Err(
                    "the model has the backend \"emulated\" and runs on emulated devices only".to_owned()
                );
            }
            Engines::Onnx(runtime, settings) => {
                let reshapes = [&load.input_reshapes, &load.output_reshapes]
                    .map(|reshapes| tensors::declared_reshapes(reshapes));
                runtime
                    .load_for_batches(path, settings, load.max_batch, reshapes.each_ref().map(Vec::as_slice))
                    .map_err(|error| error.to_string())?
            }
            Engines::Emulated => Box::new(EmulatedModel::new(profile(load)?, outputs)),
        };
        let starts_slowly = matches!(self, Engines::Onnx(_, settings) if settings.provider != Provider::Cpu);
        let mut loaded = Loaded { model, inputs, max_batch: load.max_batch, starts_slowly };
        loaded.warm_up(&mut || {}).map_err(|error| error.to_string())?;
        Ok(loaded)
    }
}

fn profile(load: &Load) -> Result<LatencyProfile, String> {
    let point = |(index, &ns): (usize, &u64)| (index as u32 + 1, ns as f64 / 1e6);
    let points: Vec<(u32, f64)> = load.latency_ns.iter().enumerate().map(point).collect();
    LatencyProfile::from_points(&points, load.max_batch.max(1), Beyond::Extrapolate)
        .map_err(|error| format!("no profile to emulate: {error}"))
}

impl Loaded {
    #[cfg(test)]
    pub(super) fn of(model: impl Model + 'static, max_batch: u32, starts_slowly: bool) -> Loaded {
        Loaded { model: Box::new(model), inputs: Vec::new(), max_batch, starts_slowly }
    }

    /// Runs a batch of each size where that takes far longer the first time. Calls `between` before each.
    pub(super) fn warm_up(&mut self, between: &mut dyn FnMut()) -> Result<(), EngineError> {
        let sizes = if self.starts_slowly { sizes_up_to(self.max_batch) } else { Vec::new() };
        for rows in sizes {
            between();
            self.model.run(&synthetic_inputs(&self.inputs, rows, 1, u64::from(rows)), rows)?;
        }
        Ok(())
    }

    /// Finds out how long the model takes, quickly, as `order` says. `between` is
    /// asked before every run how long others can do without the device.
    pub(super) fn measure(
        &mut self,
        order: &Measure,
        between: &mut dyn FnMut() -> Option<Span>,
    ) -> Result<Vec<Point>, EngineError> {
        let sizes = sizes_up_to(self.max_batch);
        let latency_max = Span::from_nanos(order.latency_max_ns);
        let open_size = order.open_size.max(1);
        let mut make_inputs = |rows| synthetic_inputs(&self.inputs, rows, open_size, u64::from(rows));
        let measured = measure(
            &mut *self.model,
            &sizes,
            &mut make_inputs,
            &MeasureSettings { latency_max: Some(latency_max), ..MeasureSettings::short() },
            &mut WallClock::start(),
            between,
            &mut |_| {},
        )?;
        let measured = if self.model.goes_in_steps() { in_steps(measured) } else { measured };
        let point = |size: Measured| Point { batch: size.batch, latency_ms: size.median_ms };
        Ok(measured.into_iter().map(point).collect())
    }
}
