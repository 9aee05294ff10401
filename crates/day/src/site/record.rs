//! What is written down while a day goes by.

use downbeat_mig::Catalogue;
use downbeat_sched::Time;
use downbeat_transition::{Instance, Step, StepKind};

use crate::report::{ChangeReport, GpuStay, InstanceLife, StepRun};

/// Everything that is drawn and printed later.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    pub(crate) instances: Vec<InstanceLife>,
    pub(crate) gpus: Vec<GpuStay>,
    pub(crate) changes: Vec<ChangeReport>,
    /// What was wrong at some moment; nothing, unless there is a mistake in Downbeat.
    pub(crate) violations: Vec<String>,
}

impl Record {
    pub(crate) fn gpu_comes(&mut self, gpu: u32, at: Time) {
        self.gpus.push(GpuStay { gpu, from_s: seconds(at), until_s: None });
    }

    pub(crate) fn gpu_goes(&mut self, gpu: u32, at: Time) {
        let stay = self.gpus.iter_mut().rev().find(|stay| stay.gpu == gpu && stay.until_s.is_none());
        if let Some(stay) = stay {
            stay.until_s = Some(seconds(at));
        }
    }

    /// An instance is being started.
    pub(crate) fn starts(
        &mut self,
        catalogue: &Catalogue,
        gpu: u32,
        gpu_type: &str,
        instance: &Instance,
        at: Time,
    ) {
        let model = catalogue.find(gpu_type).ok();
        let profile = model.and_then(|model| model.profiles.get(model.profile(&instance.profile)?));
        self.instances.push(InstanceLife {
            gpu,
            start: instance.start,
            size: profile.map_or(1, |profile| profile.size),
            units: model.map_or(8, |model| model.units),
            profile: instance.profile.clone(),
            service: instance.service.clone(),
            asked_s: seconds(at),
            from_s: None,
            until_s: None,
        });
    }

    /// It takes requests.
    pub(crate) fn serves(&mut self, gpu: u32, start: u8, at: Time) {
        if let Some(life) = self.life(gpu, start) {
            life.from_s = Some(seconds(at));
        }
    }

    /// It takes no more.
    pub(crate) fn stops(&mut self, gpu: u32, start: u8, at: Time) {
        if let Some(life) = self.life(gpu, start) {
            life.until_s = Some(seconds(at));
        }
    }

    pub(crate) fn all_stop_on(&mut self, gpu: u32, at: Time) {
        for life in self.instances.iter_mut().filter(|life| life.gpu == gpu && life.until_s.is_none()) {
            life.until_s = Some(seconds(at));
        }
    }

    pub(crate) fn step_begins(&mut self, step: &Step, at: Time) {
        if let Some(change) = self.changes.last_mut() {
            change.steps.push(StepRun {
                id: step.id,
                kind: word(step.kind),
                gpu: step.gpu,
                what: step.describe(),
                from_s: seconds(at),
                until_s: None,
                failed: false,
            });
        }
    }

    pub(crate) fn step_ends(&mut self, step: &Step, at: Time, well: bool) {
        let run =
            self.changes.last_mut().and_then(|change| change.steps.iter_mut().find(|run| run.id == step.id));
        if let Some(run) = run {
            run.until_s = Some(seconds(at));
            run.failed = !well;
        }
    }

    pub(crate) fn change_ends(&mut self, at: Time) {
        if let Some(change) = self.changes.last_mut() {
            change.ended_s = Some(seconds(at));
        }
    }

    fn life(&mut self, gpu: u32, start: u8) -> Option<&mut InstanceLife> {
        let own = |life: &&mut InstanceLife| life.gpu == gpu && life.start == start && life.until_s.is_none();
        self.instances.iter_mut().rev().find(own)
    }
}

pub(crate) fn seconds(at: Time) -> f64 {
    at.since_origin().as_secs_f64()
}

fn word(kind: StepKind) -> String {
    match kind {
        StepKind::Create => "create",
        StepKind::Delete => "delete",
        StepKind::Migrate => "migrate",
        StepKind::Repartition => "repartition",
    }
    .to_owned()
}
