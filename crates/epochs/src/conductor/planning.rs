//! Plans for what is wanted, and the ways to them.

mod number;

use downbeat_plan::solvers::Auto;
use downbeat_plan::{GpuLayout, Infeasible, Plan, Problem, Run, Service, Unsolved, plan};
use downbeat_transition::{Comparison, Layout, Options, PlanError, Transition};

use super::{Conductor, RATE_MIN, Seen};
use crate::Supply;
use crate::supply::{gpus_of, layout_of, names};

/// By which factor what is planned for is lowered, at least, where GPUs are too few...
const SHARE_STEP: f64 = 0.95;

/// ...until nothing is left of it but an instance for each service.
const SHARE_MIN: f64 = 0.05;

impl Conductor {
    /// The steps from what there is to a plan.
    pub(super) fn way(&self, layout: &Layout, plan: &Plan) -> Result<Transition, PlanError> {
        let from = Layout { services: names(&self.problem), ..layout.clone() };
        let to = layout_of(&self.problem, &plan.layout);
        let options = Options {
            driver: self.settings.driver,
            spare_max: self.settings.spare_max,
            comparison: Comparison { renumber: true, services_may_differ: true },
            times: self.settings.times,
        };
        downbeat_transition::plan(&from, &to, &self.catalogue, &options)
    }

    /// How long a transition takes in seconds, GPUs that are not there included.
    pub(super) fn takes(&self, transition: &Transition, seen: &Seen<'_>) -> f64 {
        let is_there = |gpu: u32| seen.layout.gpus.iter().any(|there| there.gpu == gpu);
        let comes = transition.steps.iter().any(|step| !is_there(step.gpu));
        let provision_s = if comes { self.settings.provision.as_secs_f64() } else { 0.0 };
        transition.expected_s + provision_s
    }

    /// What there is, with further GPUs beside it for what it lacks of a plan; `None` where it lacks nothing, or GPUs
    /// are too few.
    pub(super) fn beside(
        &self,
        layout: &Layout,
        supply: &Supply,
        plan: &Plan,
        run: &Run<'_>,
    ) -> Option<Plan> {
        let lacks = |service: usize| self.planned_rps[service] - supply.rps(&self.problem, service);
        let lacking: Vec<usize> = (0..self.demands.len()).filter(|&service| lacks(service) > 0.0).collect();
        let there: Vec<GpuLayout> =
            gpus_of(layout).into_iter().filter(|gpu| !gpu.instances.is_empty()).collect();
        let mut rest = self.problem.clone();
        rest.services = lacking
            .iter()
            .map(|&service| Service {
                rate_rps: lacks(service),
                min_replicas: 1,
                headroom: 1.0,
                ..self.problem.services[service].clone()
            })
            .collect();
        rest.curves = lacking.iter().map(|&service| self.problem.curves[service].clone()).collect();
        for pool in &mut rest.pools {
            let taken = there.iter().filter(|gpu| gpu.gpu_type == pool.gpu.name).count() as u32;
            pool.count = pool.count.map(|count| count.saturating_sub(taken));
        }
        if rest.services.is_empty() || rest.pools.iter().all(|pool| pool.count == Some(0)) {
            return None;
        }
        let more = downbeat_plan::plan(&rest, &Auto, run, None).ok()?;
        let mut beside = plan.clone();
        beside.gpus = there.len() as u32 + more.gpus;
        beside.layout = number::beside(there, more.layout, &self.known);
        beside.cost = beside.layout.iter().map(|gpu| cost(&self.problem, &gpu.gpu_type)).sum();
        beside.proved_optimal = false;
        let objective = if self.problem.minimises_cost() { beside.cost } else { f64::from(beside.gpus) };
        beside.gap = ((objective - beside.lower_bound) / objective).max(0.0);
        let supply = Supply::of(&self.problem, &layout_of(&self.problem, &beside.layout));
        for (index, service) in beside.services.iter_mut().enumerate() {
            service.provided_rps = supply.rps(&self.problem, index);
            service.instances = supply.instances(index);
        }
        beside.notes.push("further GPUs beside what there is: quicker than the smallest layout".to_owned());
        Some(beside)
    }

    /// A plan for what is wanted, or, where GPUs are too few, for as large a share of it as they serve.
    pub(super) fn plan(
        &mut self,
        wanted: &[f64],
        from: &[GpuLayout],
        run: &Run<'_>,
    ) -> Result<(Plan, f64), Unsolved> {
        let from: Vec<GpuLayout> = from
            .iter()
            .chain(self.known.iter().filter(|known| !from.iter().any(|gpu| gpu.gpu == known.gpu)))
            .cloned()
            .collect();
        let mut share = 1.0;
        loop {
            let short = match self.plan_share(wanted, share, &from, run) {
                Err(Unsolved::Infeasible(Infeasible::Pools { short, .. })) if share > 0.0 => short,
                made => return made.map(|made| (made, share)),
            };
            // As much less as GPUs are fewer; and less again where slices do not divide so well.
            let there = short.iter().map(|short| f64::from(short.count) / f64::from(short.needed.max(1)));
            share *= there.fold(SHARE_STEP, f64::min);
            share = if share < SHARE_MIN { 0.0 } else { share };
        }
    }

    fn plan_share(
        &mut self,
        wanted: &[f64],
        share: f64,
        from: &[GpuLayout],
        run: &Run<'_>,
    ) -> Result<Plan, Unsolved> {
        for ((service, planned), rate) in
            self.problem.services.iter_mut().zip(&mut self.planned_rps).zip(wanted)
        {
            service.rate_rps = (rate * share).max(RATE_MIN);
            *planned = service.rate_rps;
        }
        plan(&self.problem, &Auto, run, Some(from))
    }
}

/// What a GPU costs.
fn cost(problem: &Problem, gpu_type: &str) -> f64 {
    problem.pools.iter().find(|pool| pool.gpu.name == gpu_type).map_or(1.0, |pool| pool.cost)
}
