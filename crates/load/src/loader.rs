//! A server, what to send to it, and connections to send it over.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::arrival::ArrivalSpec;
use crate::connections::Connections;
use crate::inputs::{self, InputError, Shapes};
use crate::mix::ModelLoad;
use crate::target::{Protocol, Target};
use crate::wire::Letter;
use crate::{DataFile, LoadError, describe};

/// What a load is made of, but for its rate.
#[derive(Clone, Debug)]
pub struct Load {
    /// The server.
    pub target: Target,
    /// The models; at least one.
    pub models: Vec<ModelLoad>,
    /// When requests come.
    pub arrival: ArrivalSpec,
    /// What arrivals and content grow from.
    pub seed: u64,
    /// How long requests are sent that do not count.
    pub warmup: Duration,
    /// How long requests are sent that count, at least.
    pub duration: Duration,
    /// The run is made longer where the rarest model would have fewer requests in the mean.
    pub rarest_requests: u64,
    /// How long answers are waited for after the last request.
    pub patience: Duration,
    /// Connections: at most so many over HTTP, exactly so many over gRPC; at least one.
    pub connections: usize,
    /// Requests on their way past which no more are sent, but counted as unsent.
    pub waiting_max: u64,
    /// How tensors travel over HTTP.
    pub tensors: Tensors,
    /// How open dimensions are chosen.
    pub shapes: Shapes,
    /// Requests from files instead of random ones.
    pub data: Vec<DataFile>,
}

/// How tensors travel over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tensors {
    /// Binary where the server says that it takes that, else as JSON.
    Auto,
    /// In binary form.
    Binary,
    /// As JSON.
    Json,
}

/// A load that can be run, as often as wanted: the server was reached and said what its models take.
#[derive(Debug)]
pub struct Loader {
    pub(crate) load: Load,
    pub(crate) connections: Arc<Connections>,
    /// Per model: requests that are sent in turn.
    pub(crate) letters: Vec<Arc<[Letter]>>,
    /// What had to be guessed.
    pub(crate) notes: Vec<String>,
}

impl Loader {
    /// Asks the server what its models take and makes up requests for them.
    pub async fn prepare(load: Load) -> Result<Loader, LoadError> {
        let connections = Arc::new(Connections::new(&load.target, load.connections));
        connections.open().await?;
        let binary = match (load.target.protocol, load.tensors) {
            (Protocol::Grpc, _) | (_, Tensors::Binary) => true,
            (_, Tensors::Json) => false,
            (Protocol::Http, Tensors::Auto) => describe::takes_binary(&load.target, &connections).await?,
        };
        for name in load.data.iter().filter_map(|data| data.model.as_ref()) {
            if !load.models.iter().any(|model| model.name == *name) {
                return Err(InputError(format!("--data is for model '{name}', which is not asked")).into());
            }
        }
        let mut notes = Vec::new();
        let mut shaped = BTreeSet::new();
        let mut letters = Vec::with_capacity(load.models.len());
        for (model, index) in load.models.iter().zip(0..) {
            let is_for = |data: &&DataFile| data.model.as_ref().is_none_or(|name| *name == model.name);
            let requests = match load.data.iter().rev().find(is_for) {
                Some(data) => inputs::from_file(model, &data.file)?,
                None => {
                    let declared = describe::inputs(&load.target, &connections, model).await?;
                    shaped.extend(declared.iter().map(|input| input.name.clone()));
                    let seed = load.seed.wrapping_add(index << 32);
                    let (requests, guessed) = inputs::random(model, &declared, &load.shapes, seed)?;
                    notes.extend(guessed);
                    requests
                }
            };
            let of_model = requests.into_iter().map(|request| Letter::infer(&load.target, request, binary));
            letters.push(of_model.collect::<Result<_, String>>().map_err(LoadError::Letter)?);
        }
        if let Some(unused) = load.shapes.given.iter().find(|given| !shaped.contains(&given.input)) {
            let names: Vec<_> = shaped.iter().map(String::as_str).collect();
            let names = if names.is_empty() { "none, with --data".to_owned() } else { names.join(", ") };
            let message =
                format!("--shape is for input '{}', which no model has: there is {names}", unused.input);
            return Err(InputError(message).into());
        }
        Ok(Loader { load, connections, letters, notes })
    }

    /// How long a run at this rate measures.
    pub(crate) fn duration_at(&self, rate_rps: f64) -> Duration {
        let weights = self.load.models.iter().map(|model| model.weight);
        let rarest = weights.clone().fold(f64::INFINITY, f64::min) / weights.sum::<f64>();
        let needed_s = self.load.rarest_requests as f64 / (rate_rps * rarest);
        // A rate that is next to nothing would take for ever.
        self.load.duration.max(Duration::from_secs_f64(needed_s.min(86_400.0)))
    }

    /// What the load is made of.
    pub fn load(&self) -> &Load {
        &self.load
    }
}
