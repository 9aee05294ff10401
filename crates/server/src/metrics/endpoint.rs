//! Where Prometheus reads.

use std::future::Future;
use std::io;
use std::sync::Arc;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use tokio::net::TcpListener;

use super::Metrics;

/// Serves the metrics until `stopped`.
pub(crate) async fn serve_metrics(
    listener: TcpListener,
    metrics: Arc<Metrics>,
    stopped: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let text = move || {
        let body = metrics.render();
        async move { ([(CONTENT_TYPE, prometheus::TEXT_FORMAT)], body) }
    };
    axum::serve(listener, Router::new().route("/metrics", get(text))).with_graceful_shutdown(stopped).await
}
