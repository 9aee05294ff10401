//! The server as a whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use downbeat_scale::Decision;
use serde::Serialize;

use super::{App, reply};
use crate::frontend::identity;
use crate::service::Service;

#[derive(Serialize)]
struct Metadata {
    name: &'static str,
    version: &'static str,
    extensions: [&'static str; identity::EXTENSIONS.len()],
}

pub(super) async fn metadata() -> Response {
    let metadata =
        Metadata { name: identity::NAME, version: identity::VERSION, extensions: identity::EXTENSIONS };
    reply::json(StatusCode::OK, &metadata)
}

/// The standard's answer; Triton's clients look at the status only.
#[derive(Serialize)]
struct Live {
    live: bool,
}

pub(super) async fn live() -> Response {
    reply::json(StatusCode::OK, &Live { live: true })
}

#[derive(Serialize)]
struct Ready {
    ready: bool,
}

pub(super) async fn ready<S: Service>(State(app): State<Arc<App<S>>>) -> Response {
    let ready = app.service.is_ready();
    reply::json(ready_status(ready), &Ready { ready })
}

/// How many devices of each class there should be, and why.
#[derive(Serialize)]
struct Autoscale {
    classes: BTreeMap<String, Decision>,
}

pub(super) async fn autoscale<S: Service>(State(app): State<Arc<App<S>>>) -> Response {
    reply::json(StatusCode::OK, &Autoscale { classes: app.service.autoscale() })
}

/// 200, or 400 as Triton and the standard have it.
pub(super) fn ready_status(ready: bool) -> StatusCode {
    if ready { StatusCode::OK } else { StatusCode::BAD_REQUEST }
}
