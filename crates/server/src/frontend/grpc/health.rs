//! `grpc.health.v1`: the service is serving when it is ready.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt, stream};
use tokio::time::sleep;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::Health;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use super::closing::Closing;
use crate::service::Service;

/// How long a watcher may have to wait for news.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);

/// What can be asked for: the server, or its one service.
const KNOWN: [&str; 2] = ["", "inference.GRPCInferenceService"];

pub(super) struct ServerHealth<S> {
    pub(super) service: Arc<S>,
    pub(super) closing: Closing,
}

fn serving<S: Service>(service: &S) -> ServingStatus {
    if service.is_ready() { ServingStatus::Serving } else { ServingStatus::NotServing }
}

fn answer(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}

#[tonic::async_trait]
impl<S: Service> Health for ServerHealth<S> {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        if !KNOWN.contains(&request.get_ref().service.as_str()) {
            return Err(Status::not_found("there is no such service"));
        }
        Ok(Response::new(answer(serving(&*self.service))))
    }

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let known = KNOWN.contains(&request.get_ref().service.as_str());
        let service = Arc::clone(&self.service);
        // Asked for again and again, because readiness is a question here, not an event.
        let changes = stream::unfold(None, move |last| {
            let service = Arc::clone(&service);
            async move {
                loop {
                    let now = if known { serving(&*service) } else { ServingStatus::ServiceUnknown };
                    if last != Some(now) {
                        return Some((Ok(answer(now)), Some(now)));
                    }
                    sleep(WATCH_INTERVAL).await;
                }
            }
        });
        // Nothing more will change then.
        let end = stream::once(async { Err(Closing::status()) });
        Ok(Response::new(Box::pin(changes.take_until(self.closing.clone().wait()).chain(end))))
    }
}
