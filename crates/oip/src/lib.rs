//! The Open Inference Protocol, as Triton's clients speak it.
//!
//! What a request and a response are ([`InferRequest`], [`InferResponse`]), independent of how they travelled; how they
//! travel over [`rest`] and [`grpc`]; how a tensor looks on the wire ([`Tensor`]); and the one table of failures
//! ([`Reason`]).
//!
//! Everything here is a function of its arguments. Bytes from a client may be anything: what makes no sense comes back
//! as a [`Failure`] that names what is wrong, and no memory is taken that the client did not send bytes for.

mod classification;
mod compression;
pub mod config;
mod datatype;
mod failure;
pub mod grpc;
mod infer;
pub mod proto;
mod reshape;
pub mod rest;
mod room;
mod tensor;

pub use classification::classify;
pub use compression::Encoding;
pub use datatype::DataType;
pub use failure::{Failure, Reason};
pub use infer::{InferRequest, InferResponse, Parameter, RequestedOutput};
pub use reshape::Reshape;
pub use room::Room;
pub use tensor::{Elements, Tensor, TensorError, TensorSpec, Truncated};
