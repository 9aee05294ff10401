//! What there is to know of a model.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use downbeat_oip::{Failure, Reason, TensorSpec, config as oip_config};
use serde::{Deserialize, Serialize};

use super::server::ready_status;
use super::{App, reply};
use crate::service::Service;

/// The model and the version in a path; the version is empty where there is none.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ModelPath {
    pub(super) model: String,
    #[serde(default)]
    pub(super) version: String,
}

impl<T: Send + Sync> FromRequestParts<T> for ModelPath {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &T) -> Result<ModelPath, Response> {
        let path = Path::<ModelPath>::from_request_parts(parts, state).await;
        path.map(|Path(path)| path)
            .map_err(|error| reply::failure(&Failure::new(Reason::Invalid, error.body_text())))
    }
}

#[derive(Serialize)]
struct Metadata<'a> {
    name: &'a str,
    versions: &'a [String],
    platform: &'a str,
    inputs: Vec<TensorMetadata<'a>>,
    outputs: Vec<TensorMetadata<'a>>,
}

#[derive(Serialize)]
struct TensorMetadata<'a> {
    name: &'a str,
    datatype: &'static str,
    shape: &'a [i64],
}

impl<'a> From<&'a TensorSpec> for TensorMetadata<'a> {
    fn from(spec: &'a TensorSpec) -> TensorMetadata<'a> {
        TensorMetadata { name: &spec.name, datatype: spec.datatype.name(), shape: &spec.shape }
    }
}

pub(super) async fn metadata<S: Service>(State(app): State<Arc<App<S>>>, path: ModelPath) -> Response {
    match app.service.metadata(&path.model, &path.version) {
        Ok(model) => {
            let metadata = Metadata {
                name: &model.name,
                versions: &model.versions,
                platform: &model.platform,
                inputs: model.inputs.iter().map(TensorMetadata::from).collect(),
                outputs: model.outputs.iter().map(TensorMetadata::from).collect(),
            };
            reply::json(StatusCode::OK, &metadata)
        }
        Err(failure) => reply::failure(&failure),
    }
}

#[derive(Serialize)]
struct Ready<'a> {
    name: &'a str,
    ready: bool,
}

pub(super) async fn ready<S: Service>(State(app): State<Arc<App<S>>>, path: ModelPath) -> Response {
    match app.service.is_model_ready(&path.model, &path.version) {
        Ok(ready) => reply::json(ready_status(ready), &Ready { name: &path.model, ready }),
        Err(failure) => reply::failure(&failure),
    }
}

pub(super) async fn config<S: Service>(State(app): State<Arc<App<S>>>, path: ModelPath) -> Response {
    document(app.service.config(&path.model, &path.version).and_then(|config| oip_config::to_json(&config)))
}

pub(super) async fn statistics<S: Service>(State(app): State<Arc<App<S>>>, path: ModelPath) -> Response {
    document(app.service.statistics(&path.model, &path.version).and_then(oip_config::statistics_to_json))
}

pub(super) async fn statistics_of_all<S: Service>(State(app): State<Arc<App<S>>>) -> Response {
    document(app.service.statistics("", "").and_then(oip_config::statistics_to_json))
}

fn document(json: Result<Vec<u8>, Failure>) -> Response {
    match json {
        Ok(json) => reply::json_text(StatusCode::OK, json),
        Err(failure) => reply::failure(&failure),
    }
}
