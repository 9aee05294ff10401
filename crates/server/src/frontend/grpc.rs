//! The gRPC frontend.

mod calls;
mod closing;
mod health;
mod limits;
mod messages;
mod patience;
mod status;
mod stream;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use downbeat_oip::proto::grpc_inference_service_server::GrpcInferenceServiceServer;
use tokio::net::TcpListener;
use tonic::Status;
use tonic::codec::CompressionEncoding;
use tonic::service::Routes;
use tonic_health::pb::health_server::HealthServer;

use closing::Closing;

use super::connections::Connections;
use super::outgoing;
use crate::admission::Admission;
use crate::service::Service;

/// The limits of the gRPC frontend.
#[derive(Clone, Debug)]
pub struct GrpcSettings {
    /// The largest message of a client, as sent and when unpacked.
    pub message_bytes_max: usize,
    /// How long a client may take to send the message of a call; streams may take their time.
    pub message_timeout: Duration,
    /// How long a new connection may take to say that it speaks HTTP/2.
    pub idle_timeout: Duration,
    /// How long a client may take nothing of its answers before its connection is closed.
    pub answer_timeout: Duration,
    /// How many connections there may be at once.
    pub connections_max: usize,
    /// How much may be in the server.
    pub admission: Admission,
}

impl Default for GrpcSettings {
    fn default() -> GrpcSettings {
        GrpcSettings {
            message_bytes_max: 64 << 20,
            message_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(60),
            answer_timeout: Duration::from_secs(60),
            connections_max: 4096,
            admission: Admission::new(u64::MAX),
        }
    }
}

/// Serves the gRPC protocol until `shutdown` is over and every call that was begun is answered. Dropping the future
/// ends all connections at once.
pub async fn serve_grpc<S: Service>(
    listener: TcpListener,
    service: Arc<S>,
    settings: GrpcSettings,
    shutdown: impl Future<Output = ()>,
) {
    let connections = Connections {
        max: settings.connections_max,
        idle_timeout: settings.idle_timeout,
        answer_timeout: settings.answer_timeout,
        http1: false,
    };
    let (close, closing) = Closing::channel();
    let shutdown = async move {
        shutdown.await;
        close.send_replace(true);
    };
    connections.serve(listener, router(service, &settings, closing), shutdown).await;
}

/// All that the frontend answers, for as long as it is there.
#[cfg(test)]
pub(crate) fn grpc_router<S: Service>(service: Arc<S>, settings: &GrpcSettings) -> Router {
    router(service, settings, Closing::channel().1)
}

/// All that the frontend answers.
fn router<S: Service>(service: Arc<S>, settings: &GrpcSettings, closing: Closing) -> Router {
    let calls = calls::Calls { service: Arc::clone(&service), closing: closing.clone() };
    let inference = GrpcInferenceServiceServer::new(calls)
        .accept_compressed(CompressionEncoding::Gzip)
        .accept_compressed(CompressionEncoding::Deflate)
        .send_compressed(CompressionEncoding::Gzip)
        .send_compressed(CompressionEncoding::Deflate)
        .max_decoding_message_size(settings.message_bytes_max);
    let health = HealthServer::new(health::ServerHealth { service: Arc::clone(&service), closing });
    let (message_bytes_max, admission) = (settings.message_bytes_max, settings.admission.clone());
    let limits = Arc::new(limits::Limits { service, message_bytes_max, admission });
    Routes::new(inference)
        .add_service(health)
        .into_axum_router()
        .fallback(|| async {
            Status::unimplemented("the server has no such method").into_http::<axum::body::Body>()
        })
        .layer(from_fn_with_state(Arc::clone(&limits), limits::explain_undecodable))
        .layer(from_fn_with_state(limits, messages::take_in))
        .layer(from_fn_with_state(settings.message_timeout, patience::limit))
        .layer(from_fn(limits::answer_in_kind))
        .layer(from_fn(outgoing::hold))
}
