//! The simulated devices: each runs what it was sent, one batch after the other.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use downbeat_sched::{BatchId, Delays, GpuId, LatencyProfile, RequestId, Span, Start, Time};
use rand_distr::{Distribution, LogNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::Quantiles;
use crate::scenario::Jitter;
use crate::workload::{JITTER, random_stream};

/// The devices of a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Devices {
    devices: Vec<Device>,
    delays: Delays,
    jitter: Option<(Noise, Xoshiro256PlusPlus)>,
    /// When what runs now will finish. Entries of preempted batches stay and are skipped.
    finishes: BinaryHeap<Reverse<(Time, GpuId, BatchId)>>,
    /// Emptied request lists, kept to be filled again.
    spare: Vec<Vec<RequestId>>,
}

/// What makes a batch take longer or shorter than its profile says.
#[derive(Clone, Debug)]
enum Noise {
    Factor(LogNormal<f64>),
    Added(Quantiles),
}

impl Noise {
    fn disturb(&self, latency: Span, random: &mut Xoshiro256PlusPlus) -> Span {
        match self {
            Noise::Factor(factor) => Span::from_millis_f64(latency.as_millis_f64() * factor.sample(random)),
            Noise::Added(added) => latency + added.draw(random),
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Device {
    /// The first one runs; the others wait for it.
    sent: VecDeque<Job>,
    running: Option<Running>,
    /// What it is sent from now on is lost.
    failed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    start: Time,
    finish: Time,
}

#[derive(Clone, Debug)]
struct Job {
    batch: BatchId,
    model: u32,
    requests: Vec<RequestId>,
    /// When it can begin, as far as the way to the device is concerned.
    ready_at: Time,
    latency: Span,
}

/// A batch that has run, or was stopped.
#[derive(Debug)]
pub(crate) struct Executed {
    pub(crate) gpu: GpuId,
    pub(crate) batch: BatchId,
    pub(crate) model: u32,
    pub(crate) requests: Vec<RequestId>,
    pub(crate) start: Time,
    pub(crate) finish: Time,
}

impl Devices {
    pub(crate) fn new(count: usize, delays: Delays, jitter: &Jitter, seed: u64) -> Devices {
        let noise = match jitter {
            Jitter::None => None,
            Jitter::Lognormal { sigma } => LogNormal::new(0.0, *sigma).ok().map(Noise::Factor),
            Jitter::Added(added) => Some(Noise::Added(added.clone())),
        };
        Devices {
            devices: (0..count).map(|_| Device::default()).collect(),
            delays,
            jitter: noise.map(|noise| (noise, random_stream(seed, 0, JITTER))),
            finishes: BinaryHeap::new(),
            spare: Vec::new(),
        }
    }

    /// A further device.
    pub(crate) fn add(&mut self) -> GpuId {
        self.devices.push(Device::default());
        GpuId(self.devices.len() as u32 - 1)
    }

    /// Sends a batch to its device.
    pub(crate) fn send(
        &mut self,
        now: Time,
        start: &Start,
        requests: &[RequestId],
        profile: &LatencyProfile,
    ) {
        if self.devices[start.gpu.0 as usize].failed {
            return;
        }
        let mut list = self.spare.pop().unwrap_or_default();
        list.extend_from_slice(requests);
        let mut latency = profile.latency(start.rows);
        if let Some((noise, random)) = &mut self.jitter {
            latency = noise.disturb(latency, random);
        }
        let job = Job {
            batch: start.batch,
            model: start.model.0,
            requests: list,
            ready_at: (now + self.delays.lead(start.rows)).max(start.start_at),
            latency,
        };
        self.devices[start.gpu.0 as usize].sent.push_back(job);
        self.begin(now, start.gpu);
    }

    /// When the next batch finishes.
    pub(crate) fn next_finish(&mut self) -> Time {
        while let Some(&Reverse((at, gpu, batch))) = self.finishes.peek() {
            let device = &self.devices[gpu.0 as usize];
            if device.running.is_some() && device.sent.front().is_some_and(|job| job.batch == batch) {
                return at;
            }
            self.finishes.pop();
        }
        Time::NEVER
    }

    /// Finishes the batch that finishes next, and begins the one behind it.
    pub(crate) fn finish(&mut self) -> Option<Executed> {
        let Reverse((now, gpu, _)) = self.finishes.pop()?;
        let executed = self.pop_running(gpu, now)?;
        self.begin(now, gpu);
        Some(executed)
    }

    /// Stops a device: what it was sent is forgotten. Returns the batch that ran until now, if one did.
    pub(crate) fn preempt(&mut self, now: Time, gpu: GpuId) -> Option<Executed> {
        let ran = self.pop_running(gpu, now).filter(|executed| executed.start < now);
        let device = &mut self.devices[gpu.0 as usize];
        device.running = None;
        for job in device.sent.drain(..) {
            let mut requests = job.requests;
            requests.clear();
            self.spare.push(requests);
        }
        ran
    }

    /// Loses all that a device is sent from now on.
    pub(crate) fn fail(&mut self, gpu: GpuId) {
        self.devices[gpu.0 as usize].failed = true;
    }

    /// Lets a device run what it is sent from now on.
    pub(crate) fn repair(&mut self, gpu: GpuId) {
        self.devices[gpu.0 as usize].failed = false;
    }

    pub(crate) fn has_failed(&self, gpu: GpuId) -> bool {
        self.devices[gpu.0 as usize].failed
    }

    /// Takes back the list of a batch that has been accounted for.
    pub(crate) fn recycle(&mut self, mut requests: Vec<RequestId>) {
        requests.clear();
        self.spare.push(requests);
    }

    fn pop_running(&mut self, gpu: GpuId, now: Time) -> Option<Executed> {
        let device = &mut self.devices[gpu.0 as usize];
        let Running { start, finish } = device.running.take()?;
        let job = device.sent.pop_front()?;
        let finish = finish.min(now);
        Some(Executed { gpu, batch: job.batch, model: job.model, requests: job.requests, start, finish })
    }

    /// Begins the first batch that was sent, if nothing runs.
    fn begin(&mut self, now: Time, gpu: GpuId) {
        let device = &mut self.devices[gpu.0 as usize];
        if device.running.is_none()
            && let Some(job) = device.sent.front()
        {
            let start = job.ready_at.max(now);
            let finish = start + job.latency;
            device.running = Some(Running { start, finish });
            self.finishes.push(Reverse((finish, gpu, job.batch)));
        }
    }
}
