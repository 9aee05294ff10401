//! Between the server and its workers: one TCP connection per worker process, framed messages both ways.
//!
//! A frame is a header (a protobuf message that says what it is) and a payload (tensors, or a piece of a file), so that
//! the bulk is never copied into a message. The inputs of a batch are written input by input, and within each request
//! by request: what the worker reads is already the batch's tensor.

mod connection;
mod frame;
mod hub;
mod liveness;
pub(crate) mod message;
pub(crate) mod rows;
mod switchboard;
pub(crate) mod tensors;

pub(crate) use connection::{Outgoing, Worker, WorkerDevice, WorkerId};
#[cfg(test)]
pub(crate) use connection::{UnderWay, write_one};
pub(crate) use frame::{Frame, LinkError, read, write};
pub(crate) use hub::{Hub, LoadTrouble, Measurement, Notice};
pub(crate) use liveness::notice_death;
pub(crate) use switchboard::Switchboard;
