//! The simulated cluster on which changes are carried out: steps take their time, GPUs come and go, instances serve.

mod inspector;
mod record;

use std::collections::BTreeMap;

use downbeat_epochs::{Supply, Undertaking, kind};
use downbeat_sched::{GpuId, Span, Time};
use downbeat_sim::LiveCluster;
use downbeat_transition::{Instance, Layout, Step, StepKind};

use crate::DayScenario;
use crate::scenario::Kinds;
use inspector::Inspector;
pub(crate) use record::Record;

/// A cluster in virtual time.
pub(crate) struct Site<'a> {
    day: &'a DayScenario,
    kinds: Kinds,
    pub(crate) live: LiveCluster,
    /// What runs where when nothing is under way.
    layout: Layout,
    /// The device that each serving instance is, by GPU and start.
    devices: BTreeMap<(u32, u8), GpuId>,
    /// When each GPU that is paid for is there.
    gpus: BTreeMap<u32, Time>,
    works: Option<Works>,
    /// GPUs that failed while something was under way.
    lost: Vec<u32>,
    /// Failures to come, the last first.
    faults: Vec<crate::GpuFault>,
    gpu_seconds: f64,
    pub(crate) record: Record,
}

/// A change that is being carried out.
struct Works {
    undertaking: Undertaking,
    /// When each step that runs will end.
    ends: Vec<(Time, u32)>,
    inspector: Inspector,
}

impl<'a> Site<'a> {
    /// A cluster on which a layout serves from the beginning.
    pub(crate) fn new(day: &'a DayScenario, live: LiveCluster, kinds: Kinds, layout: Layout) -> Site<'a> {
        let mut site = Site {
            day,
            kinds,
            live,
            devices: BTreeMap::new(),
            gpus: layout.gpus.iter().map(|gpu| (gpu.gpu, Time::ZERO)).collect(),
            works: None,
            lost: Vec::new(),
            faults: day.faults.iter().rev().copied().collect(),
            gpu_seconds: 0.0,
            record: Record::default(),
            layout: Layout::default(),
        };
        for gpu in &layout.gpus {
            site.record.gpu_comes(gpu.gpu, Time::ZERO);
            for instance in &gpu.instances {
                site.record.starts(&day.catalogue, gpu.gpu, &gpu.gpu_type, instance, Time::ZERO);
                site.serve(gpu.gpu, &gpu.gpu_type, instance);
            }
        }
        site.layout = layout;
        site
    }

    /// What runs where, steps that run being neither done nor undone.
    pub(crate) fn layout(&self) -> Layout {
        let mut layout =
            self.works.as_ref().map_or_else(|| self.layout.clone(), |works| works.undertaking.layout());
        layout.gpus.retain(|gpu| !self.lost.contains(&gpu.gpu));
        layout
    }

    pub(crate) fn undertaking(&self) -> Option<&Undertaking> {
        self.works.as_ref().map(|works| &works.undertaking)
    }

    /// The number of a service.
    pub(crate) fn service(&self, name: &str) -> Option<usize> {
        self.day.problem.services.iter().position(|service| service.name == name)
    }

    /// The instances that take requests now.
    pub(crate) fn supply(&self) -> Supply {
        let mut supply = Supply::none(&self.day.problem);
        for device in self.devices.values() {
            if let Some((service, slice)) = self.live.class(*device).and_then(|class| self.kinds.kind(class))
            {
                supply.add(service, slice);
            }
        }
        supply
    }

    /// GPUs that are there.
    pub(crate) fn gpus_there(&self) -> u32 {
        self.gpus.values().filter(|&&there| there <= self.live.now()).count() as u32
    }

    /// GPUs that were asked for and are not there yet.
    pub(crate) fn gpus_coming(&self) -> u32 {
        self.gpus.values().filter(|&&there| there > self.live.now()).count() as u32
    }

    /// GPU time paid for: from when a GPU is asked for to when it is given back, or fails.
    pub(crate) fn gpu_seconds(&self) -> f64 {
        self.gpu_seconds
    }

    /// Begins to carry out a change to a layout. GPUs that it needs beyond those there are are asked for now.
    pub(crate) fn undertake(&mut self, undertaking: Undertaking, to: &Layout) {
        let now = self.live.now();
        for step in &undertaking.transition().steps {
            self.gpus.entry(step.gpu).or_insert_with(|| {
                self.record.gpu_comes(step.gpu, now);
                now + self.day.settings.provision
            });
        }
        let inspector = Inspector::new(&self.day.catalogue, &self.layout, to, &undertaking);
        self.works = Some(Works { undertaking, ends: Vec::new(), inspector });
        self.begin_steps();
    }

    /// Begins no further step.
    pub(crate) fn stop(&mut self) {
        if let Some(works) = &mut self.works {
            works.undertaking.stop();
        }
        self.settle();
    }

    /// Lets time pass; steps end, others begin, GPUs come and fail.
    pub(crate) fn run_to(&mut self, until: Time) {
        loop {
            let next = self.next_event().min(until);
            let paid = self.gpus.len() as f64 * next.since(self.live.now()).as_secs_f64();
            self.gpu_seconds += paid;
            self.live.run_to(next);
            while self.faults.last().is_some_and(|fault| Time::ZERO + fault.at <= next) {
                if let Some(fault) = self.faults.pop() {
                    self.fail(fault.gpu);
                }
            }
            let ended: Vec<u32> = self.works.iter_mut().flat_map(|works| works.take_ended(next)).collect();
            for id in ended {
                self.end(id);
            }
            self.begin_steps();
            if next >= until {
                return;
            }
        }
    }

    fn next_event(&self) -> Time {
        let now = self.live.now();
        let ends = self.works.iter().flat_map(|works| &works.ends).map(|(at, _)| *at);
        let comings = self.gpus.values().copied().filter(|&there| there > now);
        let fault = self.faults.last().map(|fault| (Time::ZERO + fault.at).max(now));
        ends.chain(comings).chain(fault).min().unwrap_or(Time::NEVER)
    }

    /// Begins what may begin on GPUs that are there.
    fn begin_steps(&mut self) {
        let now = self.live.now();
        let Some(works) = &mut self.works else { return };
        let there = |step: &&Step| self.gpus.get(&step.gpu).is_some_and(|&there| there <= now);
        let ready: Vec<Step> = works.undertaking.ready().filter(there).cloned().collect();
        for step in ready {
            works.undertaking.begin(step.id);
            works.ends.push((now + Span::from_secs_f64(step.expected_s), step.id));
            self.record.violations.extend(works.inspector.begin(&step));
            self.record.step_begins(&step, now);
            match (step.kind, &step.instance) {
                (StepKind::Create | StepKind::Migrate, Some(instance)) => {
                    self.record.starts(&self.day.catalogue, step.gpu, &step.gpu_type, instance, now);
                }
                (StepKind::Delete, Some(instance)) => {
                    if let Some(device) = self.devices.remove(&(step.gpu, instance.start)) {
                        self.live.leave(device);
                    }
                    self.record.stops(step.gpu, instance.start, now);
                }
                _ => {}
            }
        }
        self.settle();
    }

    fn end(&mut self, id: u32) {
        let now = self.live.now();
        let Some(works) = &mut self.works else { return };
        let Some(step) = works.undertaking.running().find(|step| step.id == id).cloned() else { return };
        works.undertaking.end(id);
        self.record.violations.extend(works.inspector.end(&step));
        self.record.step_ends(&step, now, true);
        if let (StepKind::Create | StepKind::Migrate, Some(instance)) = (step.kind, &step.instance) {
            self.serve(step.gpu, &step.gpu_type, instance);
        }
        if let Some(from) = step.from.as_ref().filter(|_| step.kind == StepKind::Migrate) {
            if let Some(device) = self.devices.remove(&(from.gpu, from.start)) {
                self.live.leave(device);
            }
            self.record.stops(from.gpu, from.start, now);
        }
        self.settle();
    }

    /// Lets an instance take requests.
    fn serve(&mut self, gpu: u32, gpu_type: &str, instance: &Instance) {
        let class = kind(&self.day.problem, gpu_type, instance)
            .and_then(|(service, slice)| self.kinds.class(service, slice));
        if let Some(device) = class.and_then(|class| self.live.join(class)) {
            self.devices.insert((gpu, instance.start), device);
        }
        self.record.serves(gpu, instance.start, self.live.now());
    }

    /// Loses a GPU with all that runs on it; a change that is under way is stopped.
    fn fail(&mut self, gpu: u32) {
        if self.gpus.remove(&gpu).is_none() {
            return;
        }
        let now = self.live.now();
        self.record.gpu_goes(gpu, now);
        let there: Vec<(u32, u8)> = self.devices.keys().copied().filter(|(on, _)| *on == gpu).collect();
        for place in there {
            if let Some(device) = self.devices.remove(&place) {
                self.live.fail(device);
            }
        }
        self.record.all_stop_on(gpu, now);
        if let Some(works) = &mut self.works {
            let touches =
                |step: &&Step| step.gpu == gpu || step.from.as_ref().is_some_and(|from| from.gpu == gpu);
            let touched: Vec<Step> = works.undertaking.running().filter(touches).cloned().collect();
            for step in touched {
                works.undertaking.fail(step.id);
                works.ends.retain(|(_, id)| *id != step.id);
                self.record.step_ends(&step, now, false);
                if let Some(instance) = step.instance.as_ref().filter(|_| step.kind != StepKind::Delete) {
                    self.record.stops(step.gpu, instance.start, now);
                }
            }
            works.undertaking.stop();
            works.inspector.gives_up();
            self.lost.push(gpu);
        } else {
            self.layout.gpus.retain(|there| there.gpu != gpu);
        }
        self.settle();
    }

    /// Ends a change of which nothing is left to do, and gives back GPUs that nothing needs any more.
    fn settle(&mut self) {
        if self.works.as_ref().is_some_and(|works| works.undertaking.is_over()) {
            self.layout = self.layout();
            self.layout.gpus.retain(|gpu| !gpu.instances.is_empty() || !gpu.idle.is_empty());
            self.works = None;
            self.lost.clear();
            self.record.change_ends(self.live.now());
        }
        let now = self.live.now();
        let needed = |gpu: u32| {
            let remains =
                |step: &Step| step.gpu == gpu || step.from.as_ref().is_some_and(|from| from.gpu == gpu);
            match &self.works {
                Some(works) => {
                    let runs =
                        |there: &downbeat_transition::Gpu| there.gpu == gpu && !there.instances.is_empty();
                    works.undertaking.remaining().any(remains)
                        || works.undertaking.layout().gpus.iter().any(runs)
                }
                None => self.layout.gpus.iter().any(|there| there.gpu == gpu && !there.instances.is_empty()),
            }
        };
        let unneeded: Vec<u32> = self.gpus.keys().copied().filter(|&gpu| !needed(gpu)).collect();
        for gpu in unneeded {
            self.gpus.remove(&gpu);
            self.record.gpu_goes(gpu, now);
            // What is given back comes back, if at all, without slices.
            self.layout.gpus.retain(|there| there.gpu != gpu);
        }
    }
}

impl Works {
    fn take_ended(&mut self, now: Time) -> Vec<u32> {
        let mut ended: Vec<(Time, u32)> = self.ends.iter().copied().filter(|(at, _)| *at <= now).collect();
        ended.sort_unstable();
        self.ends.retain(|(at, _)| *at > now);
        ended.into_iter().map(|(_, id)| id).collect()
    }
}
