//! The model repository: what is there, load, unload.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use downbeat_oip::{Failure, Reason};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::model::ModelPath;
use super::{App, body, reply};
use crate::service::Service;

#[derive(Deserialize, Default)]
struct IndexRequest {
    #[serde(default)]
    ready: bool,
}

#[derive(Serialize)]
struct Entry<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    state: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
}

pub(super) async fn index<S: Service>(
    State(app): State<Arc<App<S>>>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let request: IndexRequest = match read(&app, &headers, body).await {
        Ok(request) => request,
        Err(failure) => return reply::failure(&failure),
    };
    let models = app.service.index(request.ready);
    let entries: Vec<_> = models
        .iter()
        .map(|model| Entry {
            name: &model.name,
            version: &model.version,
            state: &model.state,
            reason: &model.reason,
        })
        .collect();
    reply::json(StatusCode::OK, &entries)
}

#[derive(Deserialize, Default)]
struct ChangeRequest {
    #[serde(default)]
    parameters: BTreeMap<String, Value>,
}

pub(super) async fn load<S: Service>(
    State(app): State<Arc<App<S>>>,
    path: ModelPath,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let result = async {
        let request: ChangeRequest = read(&app, &headers, body).await?;
        app.service.load(&path.model, configuration(request)?).await
    };
    done(result.await)
}

pub(super) async fn unload<S: Service>(
    State(app): State<Arc<App<S>>>,
    path: ModelPath,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let result = async {
        // `unload_dependents` concerns ensembles, of which there are none: read to be checked, and ignored.
        let _: ChangeRequest = read(&app, &headers, body).await?;
        app.service.unload(&path.model).await
    };
    done(result.await)
}

/// The configuration that a load request brings along.
fn configuration(mut request: ChangeRequest) -> Result<Option<String>, Failure> {
    if let Some(file) = request.parameters.keys().find(|name| name.starts_with("file:")) {
        return Err(Failure::new(
            Reason::Unimplemented,
            format!(
                "Downbeat does not load model files from requests ('{file}'): put them into the repository"
            ),
        ));
    }
    match request.parameters.remove("config") {
        None => Ok(None),
        Some(Value::String(config)) => Ok(Some(config)),
        Some(_) => Err(Failure::new(Reason::Invalid, "parameter 'config' must be a string that holds JSON")),
    }
}

/// A body that may be absent.
pub(super) async fn read<S: Service, T: DeserializeOwned + Default>(
    app: &App<S>,
    headers: &HeaderMap,
    body: Body,
) -> Result<T, Failure> {
    let place = app.settings.admission.permit();
    let body = body::read(headers, body, &app.settings, &place).await?;
    if body.is_empty() {
        return Ok(T::default());
    }
    place.hold_more(JSON_FACTOR * body.len() as u64)?;
    serde_json::from_slice(&body)
        .map_err(|error| Failure::new(Reason::Invalid, format!("the request's JSON is wrong: {error}")))
}

/// How much more than its text JSON can take once it is read: a digit and a comma become a value in a list that
/// doubles.
const JSON_FACTOR: u64 = 32;

pub(super) fn done(result: Result<(), Failure>) -> Response {
    match result {
        Ok(()) => StatusCode::OK.into_response(),
        Err(failure) => reply::failure(&failure),
    }
}
