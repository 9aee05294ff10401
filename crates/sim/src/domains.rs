//! Several scheduling domains side by side: one policy per sub-cluster, none of which knows the others.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use downbeat_sched::{Action, ClassId, Event, GpuId, ModelId, ModelSpec, Request, Start, Time};

use crate::policy::{Cluster, Outbox, Policy};
use crate::report::RunReport;
use crate::scenario::{Part, Scenario};
use crate::simulation::{Until, simulate};

/// Runs a scenario with the policy that `build` makes: one for all of it, or one for each of its sub-clusters.
pub(crate) fn run<P: Policy, E>(
    scenario: &Scenario,
    seed: u64,
    name: String,
    until: Until,
    build: impl Fn(&Cluster) -> Result<P, E>,
) -> Result<RunReport, E> {
    if scenario.subclusters.is_empty() {
        return Ok(simulate(scenario, seed, name, &mut build(&scenario.cluster())?, until));
    }
    let mut domains = Domains::new(scenario, build)?;
    Ok(simulate(scenario, seed, name, &mut domains, until))
}

/// One policy per sub-cluster. Each knows its own models and devices, numbered from 0; what nobody owns is never used.
struct Domains<P> {
    domains: Vec<Domain<P>>,
    /// By the scenario's number: whose it is, and its number there.
    models: Vec<Option<(usize, ModelId)>>,
    gpus: Vec<Option<(usize, GpuId)>>,
    /// The timers that are armed.
    timers: BTreeSet<(Time, usize)>,
    out: Outbox,
}

struct Domain<P> {
    policy: P,
    cluster: Cluster,
    /// The scenario's numbers of its models and devices.
    models: Vec<ModelId>,
    gpus: Vec<GpuId>,
    timer: Time,
}

impl<P: Policy> Domains<P> {
    fn new<E>(scenario: &Scenario, build: impl Fn(&Cluster) -> Result<P, E>) -> Result<Domains<P>, E> {
        let mut domains = Vec::new();
        let mut models = vec![None; scenario.models.len()];
        let mut gpus = vec![None; scenario.classes.iter().map(|class| class.count as usize).sum()];
        for (index, Part { scenario, gpus: own_gpus, models: own_models }) in
            scenario.parts().into_iter().enumerate()
        {
            for (local, gpu) in (0..).map(GpuId).zip(&own_gpus) {
                gpus[gpu.0 as usize] = Some((index, local));
            }
            for (local, model) in (0..).map(ModelId).zip(&own_models) {
                models[model.0 as usize] = Some((index, local));
            }
            let cluster = scenario.cluster();
            let policy = build(&cluster)?;
            domains.push(Domain { policy, cluster, models: own_models, gpus: own_gpus, timer: Time::NEVER });
        }
        Ok(Domains { domains, models, gpus, timers: BTreeSet::new(), out: Outbox::default() })
    }

    fn of_model(&self, model: ModelId) -> Option<(usize, ModelId)> {
        *self.models.get(model.0 as usize)?
    }

    fn of_gpu(&self, gpu: GpuId) -> Option<(usize, GpuId)> {
        *self.gpus.get(gpu.0 as usize)?
    }

    /// Whom an event is for, in that domain's numbers; `None` where it is nobody's. Timers are not asked for here.
    fn addressed(&self, event: Event) -> Option<(usize, Event)> {
        let addressed = |request: Request| {
            let (domain, model) = self.of_model(request.model)?;
            Some((domain, Request { model, ..request }))
        };
        Some(match event {
            Event::Arrived(request) => {
                let (domain, request) = addressed(request)?;
                (domain, Event::Arrived(request))
            }
            Event::Cancelled(request) => {
                let (domain, request) = addressed(request)?;
                (domain, Event::Cancelled(request))
            }
            Event::BatchFinished { gpu, batch } => {
                let (domain, gpu) = self.of_gpu(gpu)?;
                (domain, Event::BatchFinished { gpu, batch })
            }
            Event::GpuLate { gpu, free_at } => {
                let (domain, gpu) = self.of_gpu(gpu)?;
                (domain, Event::GpuLate { gpu, free_at })
            }
            Event::GpuJoined { gpu, .. } => {
                let (domain, gpu) = self.of_gpu(gpu)?;
                (domain, Event::GpuJoined { gpu, class: self.domains[domain].cluster.gpus[gpu.0 as usize] })
            }
            Event::GpuLeft { gpu } => {
                let (domain, gpu) = self.of_gpu(gpu)?;
                (domain, Event::GpuLeft { gpu })
            }
            Event::GpuFailed { gpu } => {
                let (domain, gpu) = self.of_gpu(gpu)?;
                (domain, Event::GpuFailed { gpu })
            }
            Event::ModelAdded { model, spec } => {
                let (domain, model) = self.of_model(model)?;
                (domain, Event::ModelAdded { model, spec: self.domains[domain].spec(model, &spec) })
            }
            Event::ModelRemoved { model } => {
                let (domain, model) = self.of_model(model)?;
                (domain, Event::ModelRemoved { model })
            }
            Event::ModelDraining { model } => {
                let (domain, model) = self.of_model(model)?;
                (domain, Event::ModelDraining { model })
            }
            // The simulator's profiles stay as they are, and each domain decides for itself what to follow; its clock
            // rings for all.
            Event::ProfileChanged { .. } | Event::RuleChanged { .. } | Event::Timer => return None,
        })
    }

    /// Lets one domain react, and passes on what it wants in the scenario's numbers.
    fn tell(&mut self, index: usize, now: Time, event: Event, out: &mut Outbox) {
        let domain = &mut self.domains[index];
        domain.policy.handle(now, event, &mut self.out);
        out.preempt.extend(self.out.preempt.drain(..).map(|gpu| domain.gpus[gpu.0 as usize]));
        for action in self.out.actions.list() {
            match action {
                Action::Start(start) => {
                    let requests = self.out.actions.requests(start);
                    let start = Start {
                        model: domain.models[start.model.0 as usize],
                        gpu: domain.gpus[start.gpu.0 as usize],
                        ..start.clone()
                    };
                    out.actions.start(start, requests.iter().copied());
                }
                &Action::Answer { model, request, outcome } => {
                    let model = domain.models[model.0 as usize];
                    out.actions.push(Action::Answer { model, request, outcome });
                }
                Action::ArmTimer { at } => {
                    self.timers.remove(&(domain.timer, index));
                    domain.timer = *at;
                    if *at != Time::NEVER {
                        self.timers.insert((*at, index));
                    }
                }
            }
        }
        self.out.actions.clear();
    }

    fn arm(&self, out: &mut Outbox) {
        let at = self.timers.first().map_or(Time::NEVER, |(at, _)| *at);
        out.actions.push(Action::ArmTimer { at });
    }
}

impl<P> Domain<P> {
    /// What is to be known of a model, on the domain's classes alone.
    fn spec(&self, model: ModelId, spec: &ModelSpec) -> ModelSpec {
        let profiles = (0..).map(ClassId).zip(&self.cluster.models[model.0 as usize].profiles);
        ModelSpec {
            profiles: profiles.filter_map(|(class, profile)| Some((class, profile.clone()?))).collect(),
            ..*spec
        }
    }
}

impl<P: Policy> Policy for Domains<P> {
    fn handle(&mut self, now: Time, event: Event, out: &mut Outbox) {
        if let Event::Timer = event {
            while let Some(&(at, index)) = self.timers.first().filter(|(at, _)| *at <= now) {
                self.timers.remove(&(at, index));
                self.domains[index].timer = Time::NEVER;
                self.tell(index, now, Event::Timer, out);
            }
        } else if let Some((index, event)) = self.addressed(event) {
            self.tell(index, now, event, out);
        }
        self.arm(out);
    }
}
