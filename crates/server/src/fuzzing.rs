//! What a stranger on a worker's port, or on a server's, can say. For the fuzzer, which is another crate.

use bytes::Bytes;

use crate::link::message::{Finished, FromServer, FromWorker, ToServer, ToWorker};
use crate::link::{LinkError, read, rows, tensors};

/// The longest payload that is taken here.
const PAYLOAD_MAX: u64 = 1 << 20;

/// Reads frames until one is not understood, as both ends do; where a frame holds tensors, takes them out.
pub fn link(data: &[u8]) {
    let mut from = data;
    while let Ok(frame) = read::<ToServer>(&mut from, PAYLOAD_MAX) {
        if let Some(FromWorker::Finished(Finished { outputs, .. })) = frame.message.body {
            part(outputs, frame.payload);
        }
    }
    let mut from = data;
    let error = loop {
        match read::<ToWorker>(&mut from, PAYLOAD_MAX) {
            Ok(frame) => {
                if let Some(FromServer::Run(run)) = frame.message.body {
                    drop(tensors::tensors(run.inputs, frame.payload));
                }
            }
            Err(error) => break error,
        }
    };
    assert!(from.is_empty() || !matches!(error, LinkError::Closed), "bytes were left unread");
}

/// Takes outputs apart as if two requests had made up the batch.
fn part(outputs: Vec<crate::link::message::Part>, payload: Bytes) {
    let held = payload.len();
    let Some(outputs) = tensors::tensors(outputs, payload) else { return };
    assert_eq!(outputs.iter().map(|output| output.data.len()).sum::<usize>(), held);
    // Most do not have as many rows.
    drop(rows::part(outputs, &[1, 2]));
}
