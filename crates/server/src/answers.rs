//! What the frontends ask, answered.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use downbeat_oip::proto::{ModelConfig, ModelStatistics};
use downbeat_oip::{
    Failure, InferRequest, InferResponse, Parameter, Reason, RequestedOutput, Tensor, TensorSpec, classify,
};
use downbeat_profile::Span;
use downbeat_repository::ModelDefinition;
use downbeat_scale::Decision;
use downbeat_sched::{RequestId, Time};
use tokio::sync::oneshot;

use crate::admission::Permit;
use crate::catalogue::Served;
use crate::clock::span;
use crate::control::Order;
use crate::dispatch::{Command, Completed, InstanceId, Job, Runtime};
use crate::intake::{Intake, take_in};
use crate::server::Core;
use crate::service::{IndexEntry, ModelMetadata, Service, SubclusterState};
use crate::settings::ModelControl;
use crate::subcluster::{Subcluster, SubclusterError};

impl Service for Core {
    async fn infer(
        &self,
        mut request: InferRequest,
        place: &Permit,
        timeout: Option<Duration>,
    ) -> Result<InferResponse, Failure> {
        let arrived = self.runtime.clock.now();
        let mut served = self.find(&request)?;
        loop {
            let inputs = request.inputs.clone();
            let asked = self.ask(&served, &mut request, place, timeout, arrived).await;
            let spent = |_: &Failure| served.meter.spent_on_failure(self.runtime.clock.now().since(arrived));
            if let Some(completed) = asked.inspect_err(spent)? {
                let response = respond(&served, request, &completed)?;
                place.insist(response.outputs.iter().map(|output| output.data.len() as u64).sum());
                return Ok(response);
            }
            // Between looking it up and asking it, the model was unloaded, or loaded anew: then another takes its
            // place.
            match self.catalogue.find(&request.model, &request.version) {
                Ok(other) if other.instance != served.instance => (served, request.inputs) = (other, inputs),
                _ => {
                    served.meter.failed(Reason::Unavailable);
                    return Err(Failure::new(Reason::Unavailable, "the model is being unloaded"));
                }
            }
        }
    }

    fn autoscale(&self) -> BTreeMap<String, Decision> {
        self.metrics.decisions()
    }

    fn subclusters(&self) -> BTreeMap<String, SubclusterState> {
        self.standing.borrow().subclusters.clone()
    }

    async fn move_model(&self, model: &str, to: &str) -> Result<(), Failure> {
        self.may_control()?;
        let invalid = |error: SubclusterError| Failure::new(Reason::Invalid, error.to_string());
        let to = to.parse::<Subcluster>().map_err(invalid)?;
        self.order(|reply| Order::Move { model: model.to_owned(), to, reply }).await
    }

    fn is_ready(&self) -> bool {
        let started = self.started.load(Ordering::Relaxed) && !self.draining.load(Ordering::Relaxed);
        started && self.standing.borrow().devices > 0
    }

    fn is_model_ready(&self, model: &str, version: &str) -> Result<bool, Failure> {
        match self.catalogue.find(model, version) {
            Ok(served) => Ok(self.standing.borrow().runnable.contains(&served.instance)),
            Err(failure) if failure.reason == Reason::Unavailable => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    fn metadata(&self, model: &str, version: &str) -> Result<ModelMetadata, Failure> {
        let served = self.catalogue.find(model, version)?;
        let versions = self.catalogue.served(model);
        let definition = &served.definition;
        Ok(ModelMetadata {
            name: definition.name.clone(),
            versions: versions.iter().map(|served| served.version.to_string()).collect(),
            platform: definition.config.platform.clone(),
            inputs: definition.inputs.clone(),
            outputs: definition.outputs.clone(),
        })
    }

    fn config(&self, model: &str, version: &str) -> Result<ModelConfig, Failure> {
        Ok(self.catalogue.find(model, version)?.definition.config.clone())
    }

    fn statistics(&self, model: &str, version: &str) -> Result<Vec<ModelStatistics>, Failure> {
        if model.is_empty() {
            let all = self.catalogue.names().into_iter().flat_map(|name| self.catalogue.served(&name));
            return Ok(all.map(|served| served.meter.statistics()).collect());
        }
        let found = self.catalogue.find(model, version)?;
        let served = if version.is_empty() { self.catalogue.served(model) } else { vec![found] };
        Ok(served.iter().map(|served| served.meter.statistics()).collect())
    }

    fn index(&self, ready_only: bool) -> Vec<IndexEntry> {
        let mut names = self.repository.models().unwrap_or_default();
        names.extend(self.catalogue.names());
        names.sort();
        names.dedup();
        let entries = names.into_iter().flat_map(|name| {
            let versions = self.catalogue.versions(&name);
            let never =
                versions.is_empty().then(|| IndexEntry { name: name.clone(), ..IndexEntry::default() });
            let entry = move |(number, version): (u64, crate::catalogue::Version)| IndexEntry {
                name: name.clone(),
                version: if number > 0 { number.to_string() } else { String::new() },
                state: version.state.to_string(),
                reason: version.reason,
            };
            never.into_iter().chain(versions.into_iter().map(entry))
        });
        entries.filter(|entry| !ready_only || entry.state == "READY").collect()
    }

    async fn load(&self, model: &str, config: Option<String>) -> Result<(), Failure> {
        let named =
            |failure: Failure| Failure::new(failure.reason, format!("failed to load {model:?}: {failure}"));
        self.may_control().map_err(named)?;
        let config = config.map(|json| downbeat_oip::config::from_json(&json)).transpose().map_err(named)?;
        self.order(|reply| Order::Load { model: model.to_owned(), config: config.map(Box::new), reply }).await
    }

    async fn unload(&self, model: &str) -> Result<(), Failure> {
        self.may_control().map_err(|failure| {
            Failure::new(failure.reason, format!("failed to unload {model:?}: {failure}"))
        })?;
        self.order(|reply| Order::Unload { model: model.to_owned(), reply }).await
    }

    fn rejected(&self, model: &str, reason: Reason) {
        match self.catalogue.find(model, "") {
            Ok(served) => served.meter.failed(reason),
            // What a client calls a model that does not exist must not become a label.
            Err(_) => self.metrics.rejected(reason),
        }
    }
}

impl Core {
    fn find(&self, request: &InferRequest) -> Result<Arc<Served>, Failure> {
        let found = self.catalogue.find(&request.model, &request.version);
        found.inspect_err(|failure| self.metrics.rejected(failure.reason))
    }

    /// Has a version of a model run a request, of which it takes the inputs. `None` where the model was withdrawn
    /// before the request could come in.
    async fn ask(
        &self,
        served: &Served,
        request: &mut InferRequest,
        place: &Permit,
        timeout: Option<Duration>,
        arrived: Time,
    ) -> Result<Option<Completed>, Failure> {
        let refused = |failure: &Failure| served.meter.failed(failure.reason);
        let intake = take_in(&served.definition, request).inspect_err(refused)?;
        let Intake { inputs, rows, priority, timeout: asked } = intake;
        let (reply, answer) = oneshot::channel();
        let job = Job {
            instance: served.instance,
            inputs: inputs.into(),
            rows,
            priority,
            arrived,
            due: due(arrived, served.slo, [asked, timeout]),
            reply,
            // The dispatcher may hold it longer than its client waits.
            permit: place.share(),
        };
        let id = self.runtime.next_request();
        self.runtime.send(Command::Submit { id, job });
        let instance = served.instance;
        let mut watch = ClientWatch { runtime: &self.runtime, instance, id, answered: false };
        let answer = answer.await;
        watch.answered = true;
        answer.ok().transpose()
    }

    /// Whether models may be loaded and unloaded through the API, as in Triton.
    fn may_control(&self) -> Result<(), Failure> {
        match self.model_control {
            ModelControl::Explicit => Ok(()),
            ModelControl::None => Err(Failure::new(
                Reason::Unavailable,
                "explicit model load / unload is not allowed; the server must be started with \
                 --model-control-mode explicit",
            )),
        }
    }

    async fn order(
        &self,
        order: impl FnOnce(oneshot::Sender<Result<(), Failure>>) -> Order,
    ) -> Result<(), Failure> {
        let stopping = || Failure::new(Reason::Unavailable, "the server stops");
        let (reply, done) = oneshot::channel();
        self.orders.send(order(reply)).await.map_err(|_| stopping())?;
        done.await.unwrap_or_else(|_| Err(stopping()))
    }
}

/// When a request is due: the shortest of what its model, its client and its transport allow binds.
pub(crate) fn due(arrived: Time, slo: Span, timeouts: [Option<Duration>; 2]) -> Time {
    arrived + timeouts.into_iter().flatten().map(span).fold(slo, Span::min)
}

/// Dropped before the answer came, the client has gone: the request leaves the queue.
struct ClientWatch<'a> {
    runtime: &'a Runtime,
    instance: InstanceId,
    id: RequestId,
    answered: bool,
}

impl Drop for ClientWatch<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.runtime.send(Command::Cancel { instance: self.instance, id: self.id });
        }
    }
}

fn respond(
    served: &Arc<Served>,
    request: InferRequest,
    completed: &Completed,
) -> Result<InferResponse, Failure> {
    let us = |span: Span| Parameter::Uint(span.as_nanos() / 1_000);
    let parameters = [
        ("downbeat_queue_us", us(completed.queue)),
        ("downbeat_compute_us", us(completed.compute)),
        ("downbeat_batch_size", Parameter::Uint(completed.batch_rows.into())),
        ("downbeat_device", Parameter::String(completed.device.as_ref().to_owned())),
    ];
    let all = |spec: &TensorSpec| RequestedOutput { name: spec.name.clone(), classes: 0 };
    let requested = match request.outputs.as_slice() {
        [] => served.definition.outputs.iter().map(all).collect(),
        requested => requested.to_vec(),
    };
    let wanted = |output| wanted(&served.definition, completed, output);
    let outputs = requested.iter().map(wanted).collect::<Result<_, _>>()?;
    Ok(InferResponse {
        model: request.model,
        version: served.version.to_string(),
        id: request.id,
        parameters: parameters.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
        outputs,
    })
}

/// An output as the request wants it: the tensor, or its most likely classes.
fn wanted(
    definition: &ModelDefinition,
    completed: &Completed,
    wanted: &RequestedOutput,
) -> Result<Tensor, Failure> {
    let RequestedOutput { name, classes } = wanted;
    let output = completed.outputs.iter().find(|output| output.name == *name);
    let missing = || Failure::new(Reason::Failed, format!("the model gave no output {name:?}"));
    let output = output.ok_or_else(missing)?;
    if *classes == 0 {
        // Cut out of the whole batch's, which one client that is slow to read would keep alive.
        let is_all = definition.max_batch == 0 || output.shape.first() == Some(&completed.batch_rows.into());
        let data = if is_all { output.data.clone() } else { Bytes::copy_from_slice(&output.data) };
        return Ok(Tensor { data, ..output.clone() });
    }
    let labels = definition.labels.get(name).map(Vec::as_slice).unwrap_or_default();
    classify(output, *classes, labels, definition.max_batch > 0)
}
