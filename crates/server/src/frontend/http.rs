//! The REST frontend.

mod body;
mod compression;
mod infer;
mod model;
mod reply;
mod repository;
mod server;
mod subclusters;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::from_fn;
use axum::response::Response;
use axum::routing::{any, get, post};
use downbeat_oip::{Failure, Reason};
use tokio::net::TcpListener;

use super::connections::Connections;
use super::{identity, outgoing};
use crate::admission::Admission;
use crate::service::Service;

/// The limits of the REST frontend.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// The largest body of a request, as sent and when unpacked.
    pub body_bytes_max: usize,
    /// How long a client may take to send a body.
    pub body_timeout: Duration,
    /// How long a client may take to send a request's headers, and leave a connection idle.
    pub idle_timeout: Duration,
    /// How long a client may take nothing of an answer before its connection is closed.
    pub answer_timeout: Duration,
    /// How many connections there may be at once.
    pub connections_max: usize,
    /// How much may be in the server.
    pub admission: Admission,
}

impl Default for HttpSettings {
    fn default() -> HttpSettings {
        HttpSettings {
            body_bytes_max: 64 << 20,
            body_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(60),
            answer_timeout: Duration::from_secs(60),
            connections_max: 4096,
            admission: Admission::new(u64::MAX),
        }
    }
}

/// What every handler needs.
struct App<S> {
    service: Arc<S>,
    settings: HttpSettings,
}

/// Serves the REST protocol until `shutdown` is over and every request that was begun is answered. Dropping the future
/// ends all connections at once.
pub async fn serve_http<S: Service>(
    listener: TcpListener,
    service: Arc<S>,
    settings: HttpSettings,
    shutdown: impl Future<Output = ()>,
) {
    let connections = Connections {
        max: settings.connections_max,
        idle_timeout: settings.idle_timeout,
        answer_timeout: settings.answer_timeout,
        http1: true,
    };
    connections.serve(listener, http_router(service, settings), shutdown).await;
}

/// All that the frontend answers.
pub(crate) fn http_router<S: Service>(service: Arc<S>, settings: HttpSettings) -> Router {
    let app = Arc::new(App { service, settings });
    let mut router = Router::new()
        .route("/v2", get(server::metadata))
        .route("/v2/", get(server::metadata))
        .route("/v2/health/live", get(server::live))
        .route("/v2/health/ready", get(server::ready::<S>))
        .route("/v2/downbeat/autoscale", get(server::autoscale::<S>))
        .route("/v2/downbeat/subclusters", get(subclusters::list::<S>))
        .route("/v2/downbeat/models/{model}/move", post(subclusters::move_model::<S>))
        .route("/v2/models/stats", get(model::statistics_of_all::<S>))
        .route("/v2/repository/index", post(repository::index::<S>))
        .route("/v2/repository/models/{model}/load", post(repository::load::<S>))
        .route("/v2/repository/models/{model}/unload", post(repository::unload::<S>))
        .route("/v2/systemsharedmemory/{*any}", any(no_shared_memory))
        .route("/v2/cudasharedmemory/{*any}", any(no_shared_memory))
        .route("/v2/trace/setting", any(no_tracing))
        .route("/v2/logging", any(no_logging));
    for model in ["/v2/models/{model}", "/v2/models/{model}/versions/{version}"] {
        router = router
            .route(model, get(model::metadata::<S>))
            .route(&format!("{model}/ready"), get(model::ready::<S>))
            .route(&format!("{model}/config"), get(model::config::<S>))
            .route(&format!("{model}/stats"), get(model::statistics::<S>))
            .route(&format!("{model}/infer"), post(infer::infer::<S>))
            .route(&format!("{model}/generate"), any(no_generation))
            .route(&format!("{model}/generate_stream"), any(no_generation))
            .route(&format!("{model}/trace/setting"), any(no_tracing));
    }
    router
        .fallback(no_such_path)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn(compression::compress))
        .layer(from_fn(outgoing::hold))
        .with_state(app)
}

async fn no_such_path(uri: Uri) -> Response {
    reply::error(StatusCode::NOT_FOUND, &format!("there is nothing at {}", uri.path()))
}

async fn wrong_method(method: Method, uri: Uri) -> Response {
    reply::error(StatusCode::METHOD_NOT_ALLOWED, &format!("{method} is not for {}", uri.path()))
}

async fn no_shared_memory() -> Response {
    unimplemented(identity::NO_SHARED_MEMORY)
}

async fn no_tracing() -> Response {
    unimplemented(identity::NO_TRACING)
}

async fn no_logging() -> Response {
    unimplemented(identity::NO_LOGGING)
}

async fn no_generation() -> Response {
    unimplemented("Downbeat does not support the generate endpoints: use infer")
}

fn unimplemented(sentence: &str) -> Response {
    reply::failure(&Failure::new(Reason::Unimplemented, sentence))
}
