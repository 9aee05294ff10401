//! Streams: requests of one model that can share a batch.

use downbeat_oip::Tensor;
use downbeat_profile::{LatencyProfile, Span};
use downbeat_sched::{ClassId, ModelSpec, RequestId, Time};
use downbeat_shards::CLASSES_PER_MODEL;

use super::correction::{Correction, Trial};
use crate::intake::DEFAULT_PRIORITY;

/// Requests of one model that can share a batch: to the scheduler, a model.
///
/// Tensors are joined along their first dimension, so all others must agree. Most models declare them all and have one
/// stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) shape: Shape,
    pub(super) jobs: usize,
    pub(super) used_at: Time,
    /// How long its batches take is not known yet: none waits for company. Learned, the stream gives way to one that
    /// does.
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

impl Stream {
    pub(super) fn new(shape: Shape, now: Time) -> Stream {
        Stream { shape, jobs: 0, used_at: now, trial: None, expired: 0, corrections: Vec::new() }
    }

    /// What the scheduler is to know of it.
    pub(super) fn spec(&self, profiles: &[(ClassId, LatencyProfile)], max_wait: Span) -> ModelSpec {
        let corrected = |(class, profile): &(ClassId, LatencyProfile)| {
            (*class, profile.scaled(self.factor(*class)).unwrap_or_else(|_| profile.clone()))
        };
        ModelSpec {
            // On further ones it does not run; the log says so.
            profiles: profiles.iter().map(corrected).take(CLASSES_PER_MODEL).collect(),
            default_priority: DEFAULT_PRIORITY,
            // The limit is the model's, over all its streams, and kept by it.
            queue_limit: usize::MAX,
            // Nobody will join one that must be alone; and how long another may wait must be known.
            max_wait: if self.starts_at_once() { Span::ZERO } else { max_wait },
        }
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
