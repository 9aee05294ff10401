//! Loaded models, and the streams of requests that can share a batch.

use std::collections::BTreeMap;
use std::sync::Arc;

use downbeat_oip::Tensor;
use downbeat_profile::{LatencyProfile, Span};
use downbeat_sched::{ClassId, ModelId, ModelSpec, Priority, RequestId, Time};
use tokio::sync::oneshot;

use super::correction::{Correction, Trial};
use crate::intake::DEFAULT_PRIORITY;
use crate::metrics::ModelMeter;

/// A version of a model as it was loaded once; loaded again, it is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct InstanceId(pub(crate) u32);

/// Shapes of one model that have streams at once. A model with open dimensions has one for every shape that is asked for,
/// until more come than these: then the shape that was longest unused gives way, and while none is unused, a request of a
/// further shape runs alone.
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

#[derive(Debug)]
pub(super) struct Instance {
    pub(super) spec: InstanceSpec,
    pub(super) streams: BTreeMap<Shape, ModelId>,
    /// Those of them that outlive their requests.
    shapes: usize,
    /// Requests that are in the server.
    pub(super) jobs: usize,
    /// Requests that wait for a device, by priority.
    waiting: BTreeMap<Priority, usize>,
    /// To be told when the last request has left.
    pub(super) withdrawn: Option<oneshot::Sender<()>>,
}

/// Requests of one model that can share a batch: to the scheduler, a model.
///
/// Tensors are joined along their first dimension, so all others must agree. Most models declare them all and have one
/// stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) instance: InstanceId,
    pub(super) shape: Shape,
    pub(super) jobs: usize,
    pub(super) used_at: Time,
    /// How long its batches take is not known yet: none waits for company. Learned, the stream gives way to one that does.
    pub(super) trial: Option<Trial>,
    /// Requests in a row that were too late to run.
    pub(super) expired: u32,
    pub(super) corrections: Vec<(ClassId, Correction)>,
}

/// All dimensions of all inputs but the first of each.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shape(Box<[u64]>);

impl Shape {
    pub(super) fn of(inputs: &[Tensor]) -> Shape {
        // Every input's rank goes in front of its dimensions, so that no two lists of shapes look alike.
        let dimensions = |tensor: &Tensor| {
            let rest = tensor.shape.get(1..).unwrap_or_default().to_vec();
            std::iter::once(tensor.shape.len() as u64).chain(rest)
        };
        Shape(inputs.iter().flat_map(dimensions).collect())
    }

    /// The shape of a request that must not share its batch, whatever its tensors look like: no tensor has such a rank.
    pub(super) fn alone(request: RequestId) -> Shape {
        Shape([u64::MAX, request.0].into())
    }

    pub(super) fn is_alone(&self) -> bool {
        self.0.first() == Some(&u64::MAX)
    }
}

impl Instance {
    pub(super) fn new(spec: InstanceSpec) -> Instance {
        Instance {
            spec,
            streams: BTreeMap::new(),
            shapes: 0,
            jobs: 0,
            waiting: BTreeMap::new(),
            withdrawn: None,
        }
    }

    /// Requests that wait for a device.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.values().sum()
    }

    /// Whether as many requests of a priority wait as may.
    pub(super) fn is_full(&self, priority: Priority) -> bool {
        self.waiting.get(&priority).copied().unwrap_or(0) >= self.spec.queue_limit
    }

    /// A request begins to wait.
    pub(super) fn waits(&mut self, priority: Priority) {
        *self.waiting.entry(priority).or_default() += 1;
        self.spec.meter.waiting(self.waiting());
    }

    /// A request waits no longer.
    pub(super) fn waits_no_longer(&mut self, priority: Priority) {
        if let Some(waiting) = self.waiting.get_mut(&priority) {
            *waiting -= 1;
            if *waiting == 0 {
                self.waiting.remove(&priority);
            }
        }
        self.spec.meter.waiting(self.waiting());
    }

    pub(super) fn takes_another_shape(&self) -> bool {
        self.shapes < SHAPES_MAX
    }

    /// Leads the requests of a shape to a stream from now on.
    pub(super) fn lead(&mut self, shape: Shape, model: ModelId) {
        let alone = shape.is_alone();
        if self.streams.insert(shape, model).is_none() && !alone {
            self.shapes += 1;
        }
    }

    /// Forgets a stream, unless its shape has another by now.
    pub(super) fn forget(&mut self, shape: &Shape, model: ModelId) {
        if self.streams.get(shape) == Some(&model) {
            self.streams.remove(shape);
            self.shapes -= usize::from(!shape.is_alone());
        }
    }

    /// What the scheduler is to know of a stream.
    pub(super) fn model_spec(&self, stream: &Stream) -> ModelSpec {
        let corrected = |(class, profile): &(ClassId, LatencyProfile)| {
            (*class, profile.scaled(stream.factor(*class)).unwrap_or_else(|_| profile.clone()))
        };
        ModelSpec {
            profiles: self.spec.profiles.iter().map(corrected).collect(),
            default_priority: DEFAULT_PRIORITY,
            // The limit is the model's, over all its streams, and kept here.
            queue_limit: usize::MAX,
            // Nobody will join one that must be alone; and how long another may wait must be known.
            max_wait: if stream.starts_at_once() { Span::ZERO } else { self.spec.max_wait },
        }
    }

    pub(super) fn profile(&self, class: ClassId) -> Option<&LatencyProfile> {
        self.spec.profiles.iter().find(|(of, _)| *of == class).map(|(_, profile)| profile)
    }
}

impl Stream {
    pub(super) fn new(instance: InstanceId, shape: Shape, now: Time) -> Stream {
        let corrections = Vec::new();
        Stream { instance, shape, jobs: 0, used_at: now, trial: None, expired: 0, corrections }
    }

    pub(super) fn correction(&mut self, class: ClassId) -> &mut Correction {
        let at = self.corrections.iter().position(|(of, _)| *of == class).unwrap_or_else(|| {
            self.corrections.push((class, Correction::default()));
            self.corrections.len() - 1
        });
        &mut self.corrections[at].1
    }

    fn starts_at_once(&self) -> bool {
        self.shape.is_alone() || self.trial.is_some()
    }

    /// How much longer than the profile says its batches take on a class, as far as is known: where nothing is, as on
    /// another.
    fn factor(&self, class: ClassId) -> f64 {
        let of_class = self.corrections.iter().find(|(of, _)| *of == class);
        of_class.or(self.corrections.first()).map_or(1.0, |(_, correction)| correction.applied())
    }
}
