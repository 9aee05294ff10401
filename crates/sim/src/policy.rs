//! What the simulated cluster asks of a scheduling policy.

use downbeat_sched::{Actions, Delays, Event, GpuId, LatencyProfile, ModelId, Span, Time};

/// A scheduler, as the simulated cluster sees it: told of events, it answers with actions.
///
/// Downbeat's own scheduler and every rival implement this, over the same events and actions.
pub trait Policy {
    /// Reacts to one event at `now`; `now` never goes back.
    fn handle(&mut self, now: Time, event: Event, out: &mut Outbox);
}

/// What a policy wants done.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    /// Batches to start, requests to answer, the timer to arm.
    pub actions: Actions,
    /// Devices to stop in the middle of a batch, before any of `actions` is carried out: the work is lost, all that
    /// the device was sent is forgotten, and the policy has the requests back. Only shepherd preempts.
    pub preempt: Vec<GpuId>,
}

/// What a policy may know of the cluster before the first request.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The class of each device, by [`GpuId`].
    pub gpus: Vec<downbeat_sched::ClassId>,
    /// The models, by [`ModelId`].
    pub models: Vec<ModelFacts>,
    /// What a start costs before the device can begin.
    pub delays: Delays,
}

/// What a policy may know of one model.
#[derive(Clone, Debug)]
pub struct ModelFacts {
    /// l(b) by class of device; `None` where the model is not deployed on that class. Indexed by
    /// [`ClassId`](downbeat_sched::ClassId).
    pub profiles: Vec<Option<LatencyProfile>>,
    /// Arrival to deadline, less what is kept for the way back.
    pub slo: Span,
    /// The mean arrival rate that is announced beforehand, for policies that plan.
    pub rate_rps: f64,
}

impl Cluster {
    /// l(b) of `model` on the device `gpu`; `None` where it cannot run there.
    pub fn profile(&self, model: ModelId, gpu: GpuId) -> Option<&LatencyProfile> {
        let class = self.gpus.get(gpu.0 as usize)?;
        self.models.get(model.0 as usize)?.profiles.get(class.0 as usize)?.as_ref()
    }
}
