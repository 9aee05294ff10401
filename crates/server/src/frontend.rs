//! The frontends: REST and gRPC in front of a [`Service`](crate::service::Service).
//!
//! A frontend reads a request, asks the service, and writes the answer. It holds no state besides its connections, and
//! everything that a client can make it hold has a limit that is a setting.

mod connections;
mod grpc;
mod http;
mod identity;
mod offload;
mod outgoing;
mod places;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use grpc::grpc_router;
pub use grpc::{GrpcSettings, serve_grpc};
#[cfg(test)]
pub(crate) use http::http_router;
pub use http::{HttpSettings, serve_http};
