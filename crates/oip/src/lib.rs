//! The Open Inference Protocol, as Triton's clients speak it.
//!
//! What a request and a response are ([`InferRequest`], [`InferResponse`]), independent of how they travelled; how a
//! tensor looks on the wire ([`Tensor`]); and the one table of failures ([`Reason`]).

mod datatype;
mod failure;
mod infer;
pub mod proto;
mod reshape;
mod tensor;

pub use datatype::DataType;
pub use failure::{Failure, Reason};
pub use infer::{InferRequest, InferResponse, Parameter, RequestedOutput};
pub use reshape::Reshape;
pub use tensor::{Tensor, TensorSpec};
