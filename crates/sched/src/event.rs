//! What the scheduler is told, and what it answers.

use std::ops::Range;

use downbeat_profile::{LatencyProfile, Span};

use crate::{Rule, Time};

/// A model, numbered by the caller. Numbers should be small and dense: tables are indexed by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModelId(pub u32);

/// A GPU, MIG slice or CPU share: something that runs one batch at a time. Small and dense, like [`ModelId`].
///
/// The order of the numbers matters: where a policy gathers load, it gathers it on the smallest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GpuId(pub u32);

/// A class of interchangeable devices (a whole H200, a 3g slice). Small and dense, like [`ModelId`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub u16);

/// A request. The caller never uses a number twice, and counts up: requests with equal deadlines are served in the
/// order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A batch that was started. The scheduler counts them up from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchId(pub u64);

/// A priority as Triton numbers them: 1 is the highest, larger numbers are lower, 0 means the model's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub u8);

/// What the scheduler knows of a request: never its tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its number.
    pub id: RequestId,
    /// The model it is for.
    pub model: ModelId,
    /// When its batch must have finished: arrival + SLO - what is kept for the way back.
    pub deadline: Time,
    /// Its priority.
    pub priority: Priority,
    /// How much of a batch it is: the size of its batch dimension. 0 counts as 1. A request runs whole, in one batch.
    pub rows: u32,
}

/// What the scheduler knows of a model.
#[derive(Clone, Debug)]
pub struct ModelSpec {
    /// l(b) on every class of device the model is deployed on.
    pub profiles: Vec<(ClassId, LatencyProfile)>,
    /// What [`Priority`] 0 stands for.
    pub default_priority: Priority,
    /// Requests that may wait at once; one more is answered [`Outcome::Overloaded`].
    pub queue_limit: usize,
    /// How long a batch is held back for more requests at most, from when the request came in that is due first.
    /// [`Span::MAX`], unless deadlines leave more time than a batch is worth holding back for.
    pub max_wait: Span,
}

impl ModelSpec {
    /// A model with these profiles, default priority 1, and a queue without limit.
    pub fn new(profiles: impl IntoIterator<Item = (ClassId, LatencyProfile)>) -> ModelSpec {
        ModelSpec {
            profiles: profiles.into_iter().collect(),
            default_priority: Priority(1),
            queue_limit: usize::MAX,
            max_wait: Span::MAX,
        }
    }
}

/// What passes between deciding to start a batch and the device being able to start it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// From the scheduler to the device, once per batch.
    pub control: Span,
    /// To bring one row's tensors to the device; a batch of b rows takes b times this.
    pub data: Span,
}

impl Delays {
    /// How long before its start a batch of `rows` must be sent.
    pub fn lead(&self, rows: u32) -> Span {
        self.control + self.data * u64::from(rows)
    }
}

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// A request came in.
    Arrived(Request),
    /// A client went away. Carries the request exactly as it arrived. A request that already runs is let finish, and
    /// the caller discards its result; if its device fails, it is answered [`Outcome::Cancelled`] and not run again.
    Cancelled(Request),
    /// A device finished a batch.
    BatchFinished {
        /// The device.
        gpu: GpuId,
        /// The batch, as [`Start`] named it.
        batch: BatchId,
    },
    /// A device will be done with all it was sent at another time than predicted.
    GpuLate {
        /// The device.
        gpu: GpuId,
        /// When it is now expected to be free.
        free_at: Time,
    },
    /// A device is ready for work.
    GpuJoined {
        /// The device.
        gpu: GpuId,
        /// Its class.
        class: ClassId,
    },
    /// A device takes no more batches; what it runs, it finishes.
    GpuLeft {
        /// The device.
        gpu: GpuId,
    },
    /// A device is gone, with all it ran; its requests go back into their queues.
    GpuFailed {
        /// The device.
        gpu: GpuId,
    },
    /// A model can be asked for from now on.
    ModelAdded {
        /// The model.
        model: ModelId,
        /// What it is.
        spec: ModelSpec,
    },
    /// A model is gone; its waiting requests are answered [`Outcome::Removed`]. What runs, finishes.
    ModelRemoved {
        /// The model.
        model: ModelId,
    },
    /// No more requests come for a model, so that what waits has nothing to wait for. Until it is removed, or added
    /// anew.
    ModelDraining {
        /// The model.
        model: ModelId,
    },
    /// A model takes another time on a class of devices than was known.
    ProfileChanged {
        /// The model.
        model: ModelId,
        /// The class of devices; a class the model was not deployed on is added.
        class: ClassId,
        /// The new l(b).
        profile: LatencyProfile,
    },
    /// Another rule is to be followed on a class of devices, with the same order of devices and the same margin.
    RuleChanged {
        /// The class.
        class: ClassId,
        /// The rule.
        rule: Rule,
    },
    /// The time asked for by [`Action::ArmTimer`] has come.
    Timer,
}

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Run a batch.
    Start(Start),
    /// Answer a request that will not run.
    Answer {
        /// The model that it was for.
        model: ModelId,
        /// The request.
        request: RequestId,
        /// Why it will not run.
        outcome: Outcome,
    },
    /// Send [`Event::Timer`] at this time. Replaces the time asked for before; [`Time::NEVER`] disarms.
    ArmTimer {
        /// When.
        at: Time,
    },
}

/// A batch to run on a device after whatever that device was sent before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The batch's number.
    pub batch: BatchId,
    /// The model to run.
    pub model: ModelId,
    /// The device to run it on.
    pub gpu: GpuId,
    /// When the device is expected to start it.
    pub start_at: Time,
    /// When the device is expected to finish it.
    pub finish_at: Time,
    /// Why it starts now.
    pub reason: Release,
    /// The rows of all its requests.
    pub rows: u32,
    /// Which requests: a range of [`Actions::requests`].
    pub requests: Range<usize>,
}

/// Why a batch was started when it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Release {
    /// Its window opened: one more request could no longer join for free.
    Window,
    /// As many rows wait as the model allows in a batch.
    Full,
    /// No more requests come for the model.
    Drain,
    /// The rule opened the window early because of the work waiting elsewhere.
    Guard,
    /// Devices were spare.
    Early,
    /// The rule starts whatever waits as soon as a device is free.
    Eager,
}

impl Release {
    /// All of them.
    pub const ALL: [Release; 6] =
        [Release::Window, Release::Full, Release::Drain, Release::Guard, Release::Early, Release::Eager];
}

/// How a request left without running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// It could no longer meet its deadline.
    Expired,
    /// Its client went away.
    Cancelled,
    /// The model's queue was full.
    Overloaded,
    /// The model is not known.
    UnknownModel,
    /// The model was removed while the request waited.
    Removed,
    /// It has more rows than the model's largest batch on any class of devices.
    TooLarge,
}

/// The actions of one or more events, in order. Reused from event to event, so that a decision allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct Actions {
    list: Vec<Action>,
    requests: Vec<RequestId>,
}

impl Actions {
    /// An empty list.
    pub fn new() -> Actions {
        Actions::default()
    }

    /// Forgets all actions and keeps the memory.
    pub fn clear(&mut self) {
        self.list.clear();
        self.requests.clear();
    }

    /// The actions, oldest first.
    pub fn list(&self) -> &[Action] {
        &self.list
    }

    /// The requests of a batch, in deadline order within each priority.
    pub fn requests(&self, start: &Start) -> &[RequestId] {
        &self.requests[start.requests.clone()]
    }

    /// Adds an action other than a start.
    pub fn push(&mut self, action: Action) {
        self.list.push(action);
    }

    /// Adds the start of a batch of `requests`; `start.requests` is filled in.
    pub fn start(&mut self, mut start: Start, requests: impl IntoIterator<Item = RequestId>) {
        let first = self.requests.len();
        self.requests.extend(requests);
        start.requests = first..self.requests.len();
        self.list.push(Action::Start(start));
    }
}
