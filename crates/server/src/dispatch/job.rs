//! Requests on their way through the server.

use std::sync::Arc;

use downbeat_oip::{Failure, Tensor};
use downbeat_profile::Span;
use downbeat_sched::{BatchId, ModelId, Priority, Time};
use tokio::sync::oneshot;

use super::InstanceId;
use crate::admission::Permit;

/// A request: its tensors, when it is due, and who waits for it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) instance: InstanceId,
    /// In the order in which the model declares them. Shared with the batch on its way to a device, which may fail.
    pub(crate) inputs: Arc<[Tensor]>,
    pub(crate) rows: u32,
    pub(crate) priority: Priority,
    pub(crate) arrived: Time,
    /// When its client is to have the answer.
    pub(crate) due: Time,
    pub(crate) reply: oneshot::Sender<Result<Completed, Failure>>,
    /// Its place in the server.
    pub(crate) permit: Permit,
}

impl Job {
    pub(super) fn answer(self, result: Result<Completed, Failure>) {
        // Its place is free before its client can know; a client that went away does not care.
        drop(self.permit);
        let _ = self.reply.send(result);
    }
}

/// A request that was taken in.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) job: Job,
    /// Its stream.
    pub(super) model: ModelId,
    pub(super) running: bool,
    /// Devices that failed while they had it.
    pub(super) lost: u32,
}

/// The result of a request.
#[derive(Debug)]
pub(crate) struct Completed {
    pub(crate) outputs: Vec<Tensor>,
    /// From arrival until the device began.
    pub(crate) queue: Span,
    /// How long the device was busy with the batch.
    pub(crate) compute: Span,
    pub(crate) batch_rows: u32,
    pub(crate) device: Arc<str>,
}

/// A batch on its way to a device.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) id: BatchId,
    pub(crate) instance: InstanceId,
    pub(crate) rows: u32,
    /// How long it should take from now, with what the device does before.
    pub(crate) expected: Span,
    /// Rows and inputs of each request.
    pub(crate) requests: Vec<(u32, Arc<[Tensor]>)>,
}

/// What a device made of a batch: the outputs of each request, in the batch's order, or why the model failed.
pub(crate) type Outputs = Result<Vec<Vec<Tensor>>, String>;
