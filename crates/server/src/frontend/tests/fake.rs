//! A service that does what the name of the model says.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use downbeat_oip::proto::{ModelConfig, ModelStatistics};
use downbeat_oip::{DataType, Failure, InferRequest, InferResponse, Parameter, Reason, Tensor, TensorSpec};
use downbeat_scale::{Autoscaler, Decision, Settings, Signals};
use downbeat_sched::{Span, Time};
use tokio::sync::Semaphore;

use crate::admission::Permit;
use crate::service::{IndexEntry, ModelMetadata, Service};

/// What the model `large` answers.
pub(super) const LARGE_BYTES: usize = 20 << 20;

#[derive(Debug)]
pub(in crate::frontend) struct Fake {
    pub(super) unready: AtomicBool,
    /// Requests that reached the service, with their timeouts.
    pub(super) seen: Mutex<Vec<(InferRequest, Option<Duration>)>>,
    /// What the frontends refused.
    pub(super) rejected: Mutex<Vec<(String, Reason)>>,
    /// Models that were loaded, with their configurations, or unloaded.
    pub(super) changes: Mutex<Vec<String>>,
    /// One permit for each request that has begun.
    pub(super) begun: Semaphore,
    /// One permit for each request that was dropped before its end.
    pub(super) cancelled: Semaphore,
    /// One permit for each request to `gate` that may end.
    pub(super) gate: Semaphore,
}

impl Default for Fake {
    fn default() -> Fake {
        Fake {
            unready: AtomicBool::default(),
            seen: Mutex::default(),
            rejected: Mutex::default(),
            changes: Mutex::default(),
            begun: Semaphore::new(0),
            cancelled: Semaphore::new(0),
            gate: Semaphore::new(0),
        }
    }
}

impl Fake {
    /// Waits until a request has begun.
    pub(super) async fn one_begun(&self) {
        super::soon(self.begun.acquire()).await.unwrap().forget();
    }

    pub(in crate::frontend) fn rejections(&self) -> Vec<(String, Reason)> {
        self.rejected.lock().unwrap().clone()
    }

    fn known(model: &str) -> Result<(), Failure> {
        if model == "missing" {
            return Err(Failure::new(Reason::Unknown, "there is no model 'missing'"));
        }
        Ok(())
    }
}

/// Notes that a request was dropped, unless it came to its end.
struct Attempt<'a> {
    cancelled: &'a Semaphore,
    ended: bool,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.cancelled.add_permits(1);
        }
    }
}

impl Service for Fake {
    async fn infer(
        &self,
        request: InferRequest,
        place: &Permit,
        timeout: Option<Duration>,
    ) -> Result<InferResponse, Failure> {
        let mut attempt = Attempt { cancelled: &self.cancelled, ended: false };
        self.seen.lock().unwrap().push((request.clone(), timeout));
        self.begun.add_permits(1);
        let result = match request.model.as_str() {
            "gate" => {
                self.gate.acquire().await.unwrap().forget();
                Ok(())
            }
            "never" => std::future::pending().await,
            "full" => Err(Failure::new(Reason::Overloaded, "the queue of model 'full' is full")),
            "late" => Err(Failure::new(Reason::Expired, "the deadline cannot be met")),
            model => Fake::known(model),
        };
        attempt.ended = true;
        result?;
        let mut outputs = request.inputs;
        if request.model == "nan" {
            let data = f32::NAN.to_le_bytes().to_vec().into();
            outputs = vec![Tensor::new("x", DataType::Fp32, vec![1], data)?];
        }
        if request.model == "large" {
            let data = vec![7; LARGE_BYTES];
            outputs = vec![Tensor::new("x", DataType::Uint8, vec![LARGE_BYTES as u64], data.into())?];
        }
        place.insist(outputs.iter().map(|output| output.data.len() as u64).sum());
        Ok(InferResponse {
            model: request.model,
            version: "1".into(),
            id: request.id,
            parameters: [("downbeat_queue_us".to_owned(), Parameter::Uint(5))].into(),
            outputs,
        })
    }

    fn rejected(&self, model: &str, reason: Reason) {
        self.rejected.lock().unwrap().push((model.to_owned(), reason));
    }

    fn autoscale(&self) -> BTreeMap<String, Decision> {
        let mut autoscaler = Autoscaler::new(Settings::between(1, 8).unwrap());
        let over = Span::from_millis(15_000);
        let decision = autoscaler.observe(&Signals {
            now: Time::ZERO + over,
            over,
            gpus: 2,
            coming: 0,
            arrivals: 0,
            answered: 0,
            bad: 0,
            batches: 0,
            rows: 0,
            waiting: 0,
            needed: 2.5,
            deviation: 0.0,
            busy: vec![1.0; 2],
        });
        [("gpu".to_owned(), decision)].into()
    }

    fn is_ready(&self) -> bool {
        !self.unready.load(Ordering::SeqCst)
    }

    fn is_model_ready(&self, model: &str, version: &str) -> Result<bool, Failure> {
        Fake::known(model)?;
        Ok(self.is_ready() && version != "2")
    }

    fn metadata(&self, model: &str, version: &str) -> Result<ModelMetadata, Failure> {
        Fake::known(model)?;
        let tensor = TensorSpec { name: "x".into(), datatype: DataType::Fp32, shape: vec![-1, 2] };
        Ok(ModelMetadata {
            name: model.into(),
            versions: vec![if version.is_empty() { "1" } else { version }.into()],
            platform: "onnxruntime_onnx".into(),
            inputs: vec![tensor.clone()],
            outputs: vec![tensor],
        })
    }

    fn config(&self, model: &str, _: &str) -> Result<ModelConfig, Failure> {
        Fake::known(model)?;
        Ok(ModelConfig { name: model.into(), max_batch_size: 8, ..ModelConfig::default() })
    }

    fn statistics(&self, model: &str, _: &str) -> Result<Vec<ModelStatistics>, Failure> {
        Fake::known(model)?;
        let statistics = |name: &str| ModelStatistics {
            name: name.into(),
            version: "1".into(),
            inference_count: 3,
            ..ModelStatistics::default()
        };
        Ok(if model.is_empty() { vec![statistics("a"), statistics("b")] } else { vec![statistics(model)] })
    }

    fn index(&self, ready_only: bool) -> Vec<IndexEntry> {
        let entry = |name: &str, version: &str, state: &str, reason: &str| IndexEntry {
            name: name.into(),
            version: version.into(),
            state: state.into(),
            reason: reason.into(),
        };
        let mut entries = vec![entry("a", "1", "READY", "")];
        if !ready_only {
            entries.push(entry("b", "", "", ""));
            entries.push(entry("c", "1", "UNAVAILABLE", "unloaded"));
        }
        entries
    }

    async fn load(&self, model: &str, config: Option<String>) -> Result<(), Failure> {
        Fake::known(model)?;
        self.changes.lock().unwrap().push(format!("load {model} {}", config.unwrap_or_default()));
        Ok(())
    }

    async fn unload(&self, model: &str) -> Result<(), Failure> {
        Fake::known(model)?;
        self.changes.lock().unwrap().push(format!("unload {model}"));
        Ok(())
    }
}
