//! Both frontends over real sockets, in front of a service that does what a test wants.

mod cancellation;
mod client;
mod connections;
pub(super) mod fake;
mod grpc;
mod hostile;
mod memory;
mod rest;
mod stream;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use downbeat_oip::proto::grpc_inference_service_client::GrpcInferenceServiceClient;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::Channel;

use super::{GrpcSettings, HttpSettings, serve_grpc, serve_http};
use fake::Fake;

/// A frontend that runs.
struct Running {
    service: Arc<Fake>,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Running {
    async fn http() -> Running {
        Running::http_with(HttpSettings::default()).await
    }

    async fn http_with(settings: HttpSettings) -> Running {
        Running::start(|listener, service, stopped| serve_http(listener, service, settings, stopped)).await
    }

    async fn grpc() -> (Running, GrpcInferenceServiceClient<Channel>) {
        Running::grpc_with(GrpcSettings::default()).await
    }

    async fn grpc_with(settings: GrpcSettings) -> (Running, GrpcInferenceServiceClient<Channel>) {
        let running =
            Running::start(|listener, service, stopped| serve_grpc(listener, service, settings, stopped))
                .await;
        let client = GrpcInferenceServiceClient::new(running.channel().await);
        (running, client)
    }

    async fn start<F: Future<Output = ()> + Send + 'static>(
        serve: impl FnOnce(TcpListener, Arc<Fake>, BoxedFuture) -> F,
    ) -> Running {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = Arc::new(Fake::default());
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped: BoxedFuture = Box::pin(async move {
            let _ = stopped.await;
        });
        let task = tokio::spawn(serve(listener, Arc::clone(&service), stopped));
        Running { service, address, stop: Some(stop), task }
    }

    async fn channel(&self) -> Channel {
        Channel::from_shared(format!("http://{}", self.address)).unwrap().connect().await.unwrap()
    }

    /// Tells the frontend to shut down.
    fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Waits until the frontend has shut down.
    async fn ended(self) {
        soon(self.task).await.unwrap();
    }
}

type BoxedFuture = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// What must come to pass, if not at once. Fails instead of hanging.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), future)
        .await
        .expect("this should have come to pass long ago")
}
