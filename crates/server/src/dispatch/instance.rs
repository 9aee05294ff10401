//! Loaded models, each with its requests and streams behind one lock.

#![allow(clippy::disallowed_types, reason = "jobs are looked up by id and never walked through")]

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use downbeat_profile::{LatencyProfile, Span};
use downbeat_sched::{ClassId, ModelId, Priority, RequestId};
use tokio::sync::oneshot;

use super::job::Held;
use super::stream::{Shape, Stream};
use crate::metrics::ModelMeter;

/// A version of a model as it was loaded once; loaded again, it is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct InstanceId(pub(crate) u32);

/// Shapes of one model that have streams at once. A model with open dimensions has one for every shape that is asked
/// for, until more come than these: then the shape that was longest unused gives way, and while none is unused, a
/// request of a further shape runs alone.
const SHAPES_MAX: usize = 256;

/// What the dispatcher must know of a model.
#[derive(Debug)]
pub(crate) struct InstanceSpec {
    /// l(b) on each class of devices that has loaded it.
    pub(crate) profiles: Vec<(ClassId, LatencyProfile)>,
    /// Whether shapes differ in more than rows. Then the profiles are those of one shape, and say little of the others.
    pub(crate) open: bool,
    /// Requests of one priority that may wait at once.
    pub(crate) queue_limit: usize,
    /// How long a batch is held back for more requests at most.
    pub(crate) max_wait: Span,
    pub(crate) meter: Arc<ModelMeter>,
}

/// A loaded model. Frontends, shards and links meet at its lock, each for a moment: nobody waits for anything while
/// they hold it, nor for another instance's.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) id: InstanceId,
    pub(super) open: bool,
    pub(super) queue_limit: usize,
    pub(super) max_wait: Span,
    pub(super) meter: Arc<ModelMeter>,
    state: Mutex<State>,
}

/// What of an instance changes.
#[derive(Debug)]
pub(super) struct State {
    pub(super) profiles: Vec<(ClassId, LatencyProfile)>,
    /// Requests that are in the server.
    pub(super) jobs: HashMap<RequestId, Held>,
    pub(super) streams: BTreeMap<ModelId, Stream>,
    /// To which stream the requests of a shape go.
    pub(super) led: BTreeMap<Shape, ModelId>,
    /// Those of them that outlive their requests.
    shapes: usize,
    /// Requests that wait for a device, by priority.
    waiting: BTreeMap<Priority, usize>,
    pub(super) phase: Phase,
}

#[derive(Debug)]
pub(super) enum Phase {
    Serving,
    /// No more requests come; to be told when the last one has left.
    Withdrawn(oneshot::Sender<()>),
    Gone,
}

impl Instance {
    pub(super) fn new(id: InstanceId, spec: InstanceSpec) -> Instance {
        let InstanceSpec { profiles, open, queue_limit, max_wait, meter } = spec;
        let state = State {
            profiles,
            jobs: HashMap::new(),
            streams: BTreeMap::new(),
            led: BTreeMap::new(),
            shapes: 0,
            waiting: BTreeMap::new(),
            phase: Phase::Serving,
        };
        Instance { id, open, queue_limit, max_wait, meter, state: Mutex::new(state) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request begins to wait.
    pub(super) fn waits(&self, state: &mut State, priority: Priority) {
        *state.waiting.entry(priority).or_default() += 1;
        self.meter.waiting(state.waiting());
    }

    /// A request waits no longer.
    pub(super) fn waits_no_longer(&self, state: &mut State, priority: Priority) {
        if let Some(waiting) = state.waiting.get_mut(&priority) {
            *waiting -= 1;
            if *waiting == 0 {
                state.waiting.remove(&priority);
            }
        }
        self.meter.waiting(state.waiting());
    }
}

impl State {
    /// A request as one of a stream. Word of the stream in which it was before, late and from another thread, is none
    /// of it.
    pub(super) fn held(&mut self, id: RequestId, model: ModelId) -> Option<&mut Held> {
        self.jobs.get_mut(&id).filter(|held| held.model == model)
    }

    /// Requests that wait for a device.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.values().sum()
    }

    pub(super) fn waiting_at(&self, priority: Priority) -> usize {
        self.waiting.get(&priority).copied().unwrap_or(0)
    }

    pub(super) fn takes_another_shape(&self) -> bool {
        self.shapes < SHAPES_MAX
    }

    /// Leads the requests of a shape to a stream from now on.
    pub(super) fn lead(&mut self, shape: Shape, model: ModelId) {
        let alone = shape.is_alone();
        if self.led.insert(shape, model).is_none() && !alone {
            self.shapes += 1;
        }
    }

    /// Forgets a stream, unless its shape has another by now.
    pub(super) fn forget(&mut self, shape: &Shape, model: ModelId) {
        if self.leads(shape, model) {
            self.led.remove(shape);
            self.shapes -= usize::from(!shape.is_alone());
        }
    }

    /// Whether requests of a shape go to this stream.
    pub(super) fn leads(&self, shape: &Shape, model: ModelId) -> bool {
        self.led.get(shape) == Some(&model)
    }

    pub(super) fn profile(&self, class: ClassId) -> Option<&LatencyProfile> {
        self.profiles.iter().find(|(of, _)| *of == class).map(|(_, profile)| profile)
    }

    pub(super) fn classes(&self) -> impl Iterator<Item = ClassId> + '_ {
        self.profiles.iter().map(|(class, _)| *class)
    }
}
