//! A worker that is played: real frames, but no process behind them.

use std::collections::VecDeque;

use bytes::Bytes;
use crossbeam_channel::Receiver;
use downbeat_oip::Tensor;
use downbeat_profile::Span;
use downbeat_sched::{GpuId, Time};

use crate::link::message::{Finished, FromServer, FromWorker, Run, ToServer, ToWorker};
use crate::link::{Outgoing, UnderWay, read, tensors, write, write_one};

/// A connection that is up, with the worker at its end.
pub(super) struct Connection {
    pub(super) number: u64,
    pub(super) gpus: Vec<GpuId>,
    pub(super) outgoing: Receiver<Outgoing>,
    pub(super) under_way: UnderWay,
    pub(super) devices: Vec<Device>,
    pub(super) hangs: bool,
    /// When the last message in each direction arrives: none overtakes another.
    pub(super) there_at: Time,
    pub(super) back_at: Time,
}

/// One batch at a time, in the order in which they came.
#[derive(Default)]
pub(super) struct Device {
    queue: VecDeque<(Run, Vec<Tensor>)>,
    pub(super) running: bool,
}

impl Connection {
    /// What the server has to say, as it goes over the wire.
    pub(super) fn next_outgoing(&self) -> Option<Bytes> {
        let outgoing = self.outgoing.try_recv().ok()?;
        let mut wire = Vec::new();
        write_one(&mut wire, outgoing, &self.under_way).unwrap();
        Some(wire.into())
    }

    /// The worker hears something; which device has more to do for it.
    pub(super) fn hear(&mut self, wire: &Bytes) -> usize {
        let frame = read::<ToWorker>(&mut wire.as_ref(), u64::MAX).unwrap();
        let Some(FromServer::Run(mut run)) = frame.message.body else { panic!("not a batch") };
        let inputs = tensors::tensors(std::mem::take(&mut run.inputs), frame.payload).unwrap();
        let device = run.device as usize;
        self.devices[device].queue.push_back((run, inputs));
        device
    }

    /// Begins the next batch of a device, unless it is busy or has none: its rows.
    pub(super) fn begin(&mut self, device: usize) -> Option<u32> {
        let device = &mut self.devices[device];
        if self.hangs || device.running {
            return None;
        }
        let (run, _) = device.queue.front()?;
        device.running = true;
        Some(run.rows)
    }

    /// The device is done: what the worker says. Every byte is one more than it was.
    pub(super) fn finish(&mut self, device: usize, busy: Span, fails: bool) -> Bytes {
        let (run, inputs) = self.devices[device].queue.pop_front().unwrap();
        self.devices[device].running = false;
        let outputs = inputs.into_iter().map(|input| Tensor {
            name: "y".to_owned(),
            data: input.data.iter().map(|byte| byte + 1).collect(),
            ..input
        });
        let outputs: Vec<Tensor> = if fails { Vec::new() } else { outputs.collect() };
        let finished = Finished {
            batch: run.batch,
            device: device as u32,
            outputs: outputs.iter().map(tensors::describe).collect(),
            busy_ns: busy.as_nanos(),
            trouble: if fails { "it failed".to_owned() } else { String::new() },
        };
        let message = ToServer { body: Some(FromWorker::Finished(finished)) };
        let mut wire = Vec::new();
        write(&mut wire, &message, outputs.iter().map(|output| output.data.as_ref())).unwrap();
        wire.into()
    }

    /// The server hears something of the worker.
    pub(super) fn heard(&self, wire: &Bytes) -> Option<crate::dispatch::Command> {
        let frame = read::<ToServer>(&mut wire.as_ref(), u64::MAX).unwrap();
        let Some(FromWorker::Finished(finished)) = frame.message.body else { panic!("not a result") };
        let gpu = self.gpus[finished.device as usize];
        self.under_way.finish(gpu, finished, frame.payload)
    }
}
