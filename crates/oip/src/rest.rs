//! Inference over REST: JSON, and tensors in binary form behind it.
//!
//! A body is a JSON object; where the header `Inference-Header-Content-Length` gives the object's length, the content
//! of tensors follows it, one after the other in the order of the JSON. Each tensor is either in the JSON (`data`) or
//! behind it (`binary_data_size`).
//!
//! What JSON cannot say is refused with advice to use the binary form: FP16 and BF16 (as Triton does), NaN and infinity
//! in either direction, and BYTES in an answer that are not UTF-8.

mod ask;
mod data;
mod raw;
mod request;
mod response;
mod skim;
#[cfg(test)]
mod tests;

pub use ask::encode_request;
pub use raw::decode_raw;
pub use request::{OutputForms, decode, decode_within};
pub(crate) use request::{refuse_shared_memory, requested_classes};
pub use response::{Encoded, encode};
