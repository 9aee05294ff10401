//! A cluster that steps are played on.

use super::Ground;
use crate::layout::{Instance, Layout, Slice};
use crate::step::{Step, StepKind};

/// An instance on its way through life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Life {
    Starting,
    Serving,
    Stopping,
}

#[derive(Clone, Debug, PartialEq)]
struct Running {
    gpu: u32,
    instance: Instance,
    life: Life,
}

/// Slices and instances, at one moment. Whatever is done to it, it says what is wrong.
#[derive(Clone)]
pub(super) struct Machine<'a> {
    ground: &'a Ground,
    slices: Vec<(u32, Slice)>,
    running: Vec<Running>,
    /// GPUs whose slices are being changed.
    closed: Vec<u32>,
}

impl<'a> Machine<'a> {
    pub(super) fn new(ground: &'a Ground, from: &Layout) -> Machine<'a> {
        let mut machine = Machine { ground, slices: Vec::new(), running: Vec::new(), closed: Vec::new() };
        for gpu in &from.gpus {
            for instance in &gpu.instances {
                machine.slices.push((gpu.gpu, instance.slice()));
                let (gpu, instance) = (gpu.gpu, instance.clone());
                machine.running.push(Running { gpu, instance, life: Life::Serving });
            }
            machine.slices.extend(gpu.idle.iter().map(|slice| (gpu.gpu, slice.clone())));
        }
        machine
    }

    /// A step begins.
    pub(super) fn begin(&mut self, step: &Step) -> Result<(), String> {
        match step.kind {
            StepKind::Create | StepKind::Migrate => {
                let instance = step.instance.as_ref().ok_or("it names no instance")?;
                if let Some(from) = step.from.as_ref().filter(|_| step.kind == StepKind::Migrate) {
                    let old = self.find(from.gpu, from.start)?;
                    let (old, serves) =
                        (&self.running[old].instance, self.running[old].life == Life::Serving);
                    let same = old.service == instance.service && old.model == instance.model;
                    if !same || old.profile != instance.profile || !serves {
                        return Err(format!("what it moves is not there, serving {:?}", instance.service));
                    }
                } else if step.kind == StepKind::Migrate {
                    return Err("it does not say where from".to_owned());
                }
                if step.kind == StepKind::Create {
                    self.drop_slices(step.gpu, &step.removes)?;
                }
                self.add_slices(step.gpu, &step.makes)?;
                if self.ground.mig_parted && !(step.makes.is_empty() && step.removes.is_empty()) {
                    return Err("mig-parted changes slices in repartitions only".to_owned());
                }
                if !self.slices.contains(&(step.gpu, instance.slice())) {
                    return Err(format!(
                        "GPU {} has no slice {} at {}",
                        step.gpu, instance.profile, instance.start
                    ));
                }
                if self.closed.contains(&step.gpu) {
                    return Err(format!("GPU {} is being repartitioned", step.gpu));
                }
                if self.find(step.gpu, instance.start).is_ok() {
                    return Err(format!("something runs on GPU {} at {}", step.gpu, instance.start));
                }
                let (gpu, instance) = (step.gpu, instance.clone());
                self.running.push(Running { gpu, instance, life: Life::Starting });
            }
            StepKind::Delete => {
                let instance = step.instance.as_ref().ok_or("it names no instance")?;
                let index = self.find(step.gpu, instance.start)?;
                let found = &mut self.running[index];
                if found.instance.service != instance.service || found.life != Life::Serving {
                    return Err(format!("what it deletes is not there, serving {:?}", instance.service));
                }
                found.life = Life::Stopping;
            }
            StepKind::Repartition => {
                if self.closed.contains(&step.gpu) {
                    return Err(format!("GPU {} is being repartitioned already", step.gpu));
                }
                self.drop_slices(step.gpu, &step.removes)?;
                if self.ground.mig_parted {
                    if self.running.iter().any(|running| running.gpu == step.gpu) {
                        return Err(format!("something runs on GPU {}", step.gpu));
                    }
                    if self.slices.iter().any(|(gpu, _)| *gpu == step.gpu) {
                        return Err("mig-parted replaces all slices of a GPU".to_owned());
                    }
                    self.closed.push(step.gpu);
                }
            }
        }
        self.verify()
    }

    /// A step ends.
    pub(super) fn end(&mut self, step: &Step) -> Result<(), String> {
        let here = step.instance.as_ref().map(|instance| instance.start);
        match (step.kind, here) {
            (StepKind::Create | StepKind::Migrate, Some(start)) => {
                let index = self.find(step.gpu, start)?;
                self.running[index].life = Life::Serving;
                if let Some(from) = &step.from {
                    let old = self.find(from.gpu, from.start)?;
                    self.running.remove(old);
                    self.drop_slices(from.gpu, &step.removes)?;
                }
            }
            (StepKind::Delete, Some(start)) => {
                let index = self.find(step.gpu, start)?;
                self.running.remove(index);
                self.drop_slices(step.gpu, &step.removes)?;
            }
            (StepKind::Repartition, _) => {
                self.closed.retain(|gpu| *gpu != step.gpu);
                self.add_slices(step.gpu, &step.makes)?;
            }
            _ => return Err("it names no instance".to_owned()),
        }
        self.verify()
    }

    fn find(&self, gpu: u32, start: u8) -> Result<usize, String> {
        let found =
            self.running.iter().position(|running| running.gpu == gpu && running.instance.start == start);
        found.ok_or_else(|| format!("nothing runs on GPU {gpu} at {start}"))
    }

    fn add_slices(&mut self, gpu: u32, slices: &[Slice]) -> Result<(), String> {
        for slice in slices {
            let profile = self.ground.profile(gpu, &slice.profile)?;
            if !profile.starts.contains(&slice.start) {
                return Err(format!("GPU {gpu}: {} may not begin at {}", slice.profile, slice.start));
            }
            self.slices.push((gpu, slice.clone()));
        }
        Ok(())
    }

    fn drop_slices(&mut self, gpu: u32, slices: &[Slice]) -> Result<(), String> {
        for slice in slices {
            if self.find(gpu, slice.start).is_ok() {
                return Err(format!("something runs in the slice at {} of GPU {gpu}", slice.start));
            }
            let index = self.slices.iter().position(|(there, known)| *there == gpu && known == slice);
            let index = index
                .ok_or_else(|| format!("GPU {gpu} has no slice {} at {}", slice.profile, slice.start))?;
            self.slices.remove(index);
        }
        Ok(())
    }

    /// Everything that must hold at every moment.
    fn verify(&self) -> Result<(), String> {
        for (&number, model) in &self.ground.models {
            let mut units = vec![0u32; usize::from(model.units)];
            let mut compute = 0;
            for (_, slice) in self.slices.iter().filter(|(gpu, _)| *gpu == number) {
                let profile = self.ground.profile(number, &slice.profile)?;
                compute += profile.compute;
                for unit in slice.start..slice.start + profile.size {
                    *units.get_mut(usize::from(unit)).ok_or("a slice ends beyond the GPU")? += 1;
                }
                let like = (self.slices.iter())
                    .filter(|(gpu, other)| *gpu == number && other.profile == slice.profile);
                if like.count() > usize::from(profile.most) {
                    return Err(format!("GPU {number}: more than {} of {}", profile.most, profile.name));
                }
            }
            if units.iter().any(|&slices| slices > 1) {
                return Err(format!("GPU {number}: slices overlap"));
            }
            if compute > model.compute {
                return Err(format!("GPU {number}: {compute} compute slices of {}", model.compute));
            }
        }
        for (service, &floor) in &self.ground.floors {
            let serving = self
                .running
                .iter()
                .filter(|running| running.life != Life::Starting && running.life != Life::Stopping);
            let rates = serving.filter(|running| running.instance.service == *service);
            let total: i64 = rates.map(|running| self.ground.rate(running.gpu, &running.instance)).sum();
            if total < floor {
                return Err(format!(
                    "service {service:?} has {} of {} requests per second",
                    micro(total),
                    micro(floor)
                ));
            }
        }
        Ok(())
    }

    /// Whether it runs exactly what a layout says.
    pub(super) fn is_at(&self, layout: &Layout) -> Result<(), String> {
        let key = |gpu: u32, instance: &Instance| {
            (gpu, instance.start, instance.profile.clone(), instance.service.clone(), instance.model.clone())
        };
        let mut there: Vec<_> =
            self.running.iter().map(|running| key(running.gpu, &running.instance)).collect();
        let mut wanted: Vec<_> = (layout.gpus.iter())
            .flat_map(|gpu| gpu.instances.iter().map(move |instance| key(gpu.gpu, instance)))
            .collect();
        there.sort();
        wanted.sort();
        if let Some(missing) = wanted.iter().find(|wanted| !there.contains(wanted)) {
            return Err(format!("at the end, GPU {} does not run {} at {}", missing.0, missing.3, missing.1));
        }
        if let Some(extra) = there.iter().find(|there| !wanted.contains(there)) {
            return Err(format!("at the end, GPU {} still runs {} at {}", extra.0, extra.3, extra.1));
        }
        Ok(())
    }
}

/// Requests per second.
pub(super) fn micro(rate: i64) -> f64 {
    rate as f64 / 1e6
}
