//! Every interleaving at once: for each thing that must never be, can it be at some moment?

use std::collections::BTreeMap;

use super::closure;
use super::machine::micro;
use super::precedence::{Event, Precedence};
use super::{Ground, Violations};
use crate::layout::{Layout, Slice};
use crate::step::{Step, StepKind, Transition};

/// Something that is on a GPU from one event to another; from or to the ends of time where there is none.
#[derive(Clone, Debug)]
struct Span {
    gpu: u32,
    slice: Slice,
    size: u8,
    from: Option<Event>,
    to: Option<Event>,
    /// For an instance, the index of the slice it runs in.
    host: usize,
}

/// The slices and instances there ever are.
#[derive(Default)]
struct Histories {
    slices: Vec<Span>,
    instances: Vec<Span>,
}

/// Checks a transition whose steps go through in their order.
pub(super) fn check(
    ground: &Ground,
    from: &Layout,
    transition: &Transition,
    precedence: &Precedence,
) -> Result<(), Violations> {
    let mut wrong = Vec::new();
    let one = |wrong: String| Violations(vec![wrong]);
    let histories = histories(ground, from, &transition.steps).map_err(one)?;
    overlaps(precedence, &histories.slices, "slices", &mut wrong);
    overlaps(precedence, &histories.instances, "instances", &mut wrong);
    hosts(precedence, &histories, &mut wrong);
    limits(ground, precedence, &histories.slices, &mut wrong);
    if ground.mig_parted {
        closed_gpus(precedence, &transition.steps, &histories.instances, &mut wrong);
    }
    floors(ground, from, &transition.steps, precedence, &mut wrong);
    if wrong.is_empty() { Ok(()) } else { Err(Violations(wrong)) }
}

/// Whose life begins and ends with what, by the order of the list.
fn histories(ground: &Ground, from: &Layout, steps: &[Step]) -> Result<Histories, String> {
    let mut all = Histories::default();
    for gpu in &from.gpus {
        for instance in &gpu.instances {
            all.add_slice(ground, gpu.gpu, &instance.slice(), None)?;
            all.add_instance(ground, gpu.gpu, &instance.slice(), None)?;
        }
        for slice in &gpu.idle {
            all.add_slice(ground, gpu.gpu, slice, None)?;
        }
    }
    for (index, step) in steps.iter().enumerate() {
        let (begin, end) = (Event::begin(index), Event::end(index));
        let instance = step.instance.as_ref().map(crate::layout::Instance::slice);
        match (step.kind, instance) {
            (StepKind::Create | StepKind::Migrate, Some(instance)) => {
                if step.kind == StepKind::Create {
                    all.end_slices(step.gpu, &step.removes, begin)?;
                }
                for slice in &step.makes {
                    all.add_slice(ground, step.gpu, slice, Some(begin))?;
                }
                all.add_instance(ground, step.gpu, &instance, Some(begin))?;
                if let Some(source) = &step.from {
                    all.end_instance(source.gpu, source.start, end)?;
                    all.end_slices(source.gpu, &step.removes, end)?;
                }
            }
            (StepKind::Delete, Some(instance)) => {
                all.end_instance(step.gpu, instance.start, end)?;
                all.end_slices(step.gpu, &step.removes, end)?;
            }
            _ => {
                all.end_slices(step.gpu, &step.removes, begin)?;
                for slice in &step.makes {
                    all.add_slice(ground, step.gpu, slice, Some(end))?;
                }
            }
        }
    }
    Ok(all)
}

impl Histories {
    fn add_slice(
        &mut self,
        ground: &Ground,
        gpu: u32,
        slice: &Slice,
        from: Option<Event>,
    ) -> Result<(), String> {
        let size = ground.profile(gpu, &slice.profile)?.size;
        self.slices.push(Span { gpu, slice: slice.clone(), size, from, to: None, host: 0 });
        Ok(())
    }

    fn add_instance(
        &mut self,
        ground: &Ground,
        gpu: u32,
        slice: &Slice,
        from: Option<Event>,
    ) -> Result<(), String> {
        let size = ground.profile(gpu, &slice.profile)?.size;
        let host = self.alive(gpu, slice)?;
        self.instances.push(Span { gpu, slice: slice.clone(), size, from, to: None, host });
        Ok(())
    }

    fn alive(&self, gpu: u32, slice: &Slice) -> Result<usize, String> {
        let is = |span: &Span| span.gpu == gpu && span.slice == *slice && span.to.is_none();
        self.slices.iter().position(is).ok_or_else(|| format!("GPU {gpu} has no slice at {}", slice.start))
    }

    fn end_slices(&mut self, gpu: u32, slices: &[Slice], at: Event) -> Result<(), String> {
        for slice in slices {
            let index = self.alive(gpu, slice)?;
            self.slices[index].to = Some(at);
        }
        Ok(())
    }

    fn end_instance(&mut self, gpu: u32, start: u8, at: Event) -> Result<(), String> {
        let is = |span: &&mut Span| span.gpu == gpu && span.slice.start == start && span.to.is_none();
        let found = self.instances.iter_mut().find(is);
        found.ok_or_else(|| format!("nothing runs on GPU {gpu} at {start}"))?.to = Some(at);
        Ok(())
    }
}

/// Whether one life has surely ended when the other begins. Within a step, what goes goes first.
fn is_over(precedence: &Precedence, first: &Span, then: &Span) -> bool {
    match (first.to, then.from) {
        (Some(to), Some(from)) => to == from || precedence.precedes(to, from),
        _ => false,
    }
}

fn overlaps(precedence: &Precedence, spans: &[Span], what: &str, wrong: &mut Vec<String>) {
    let mut by_gpu: BTreeMap<u32, Vec<&Span>> = BTreeMap::new();
    for span in spans {
        by_gpu.entry(span.gpu).or_default().push(span);
    }
    for (gpu, spans) in by_gpu {
        for (index, a) in spans.iter().enumerate() {
            for b in &spans[index + 1..] {
                let share = a.slice.start < b.slice.start + b.size && b.slice.start < a.slice.start + a.size;
                if share && !is_over(precedence, a, b) && !is_over(precedence, b, a) {
                    wrong.push(format!(
                        "GPU {gpu}: {what} at {} and at {} may overlap",
                        a.slice.start, b.slice.start
                    ));
                }
            }
        }
    }
}

/// Every instance's slice is there from before it to after it, and it is not stopped before it has started.
fn hosts(precedence: &Precedence, histories: &Histories, wrong: &mut Vec<String>) {
    let in_order = |a: Option<Event>, b: Option<Event>| match (a, b) {
        (Some(a), Some(b)) => a == b || precedence.precedes(a, b),
        _ => true,
    };
    for instance in &histories.instances {
        let host = &histories.slices[instance.host];
        let outlived = instance.to.is_some() || host.to.is_none();
        if !in_order(host.from, instance.from) || !in_order(instance.to, host.to) || !outlived {
            wrong.push(format!(
                "GPU {}: the instance at {} may be without its slice",
                instance.gpu, instance.slice.start
            ));
        }
        if let (Some(from), Some(to)) = (instance.from, instance.to)
            && !precedence.ends_before(from.step, to.step)
        {
            wrong.push(format!(
                "GPU {}: the instance at {} may be stopped before it serves",
                instance.gpu, instance.slice.start
            ));
        }
    }
}

/// No GPU ever has more compute slices than there are, nor a profile more often than it may.
fn limits(ground: &Ground, precedence: &Precedence, slices: &[Span], wrong: &mut Vec<String>) {
    for (&gpu, model) in &ground.models {
        let here: Vec<&Span> = slices.iter().filter(|span| span.gpu == gpu).collect();
        let worst = |weight: &dyn Fn(&Span) -> i64| {
            let first: i64 = here.iter().filter(|span| span.from.is_none()).map(|span| weight(span)).sum();
            let come = here.iter().filter_map(|span| Some((span.from?, weight(span))));
            let go = here.iter().filter_map(|span| Some((span.to?, -weight(span))));
            first + closure::largest(precedence, &summed(come.chain(go)))
        };
        let profile = |span: &Span| model.profiles.iter().find(|profile| profile.name == span.slice.profile);
        let compute = worst(&|span| profile(span).map_or(0, |profile| i64::from(profile.compute)));
        if compute > i64::from(model.compute) {
            wrong.push(format!("GPU {gpu}: there may be {compute} compute slices of {}", model.compute));
        }
        for kind in &model.profiles {
            let count = worst(&|span| i64::from(span.slice.profile == kind.name));
            if count > i64::from(kind.most) {
                wrong.push(format!("GPU {gpu}: there may be {count} of {}", kind.name));
            }
        }
    }
}

/// The weights of each event together.
fn summed(weights: impl Iterator<Item = (Event, i64)>) -> Vec<(Event, i64)> {
    let mut sums: BTreeMap<Event, i64> = BTreeMap::new();
    for (event, weight) in weights {
        *sums.entry(event).or_insert(0) += weight;
    }
    sums.into_iter().collect()
}

/// mig-parted changes slices only where nothing runs, one change at a time.
fn closed_gpus(precedence: &Precedence, steps: &[Step], instances: &[Span], wrong: &mut Vec<String>) {
    for (index, step) in steps.iter().enumerate().filter(|(_, step)| step.kind == StepKind::Repartition) {
        for instance in instances.iter().filter(|instance| instance.gpu == step.gpu) {
            let left = instance.to.is_some_and(|to| precedence.ends_before(to.step, index));
            let comes = instance.from.is_some_and(|from| precedence.ends_before(index, from.step));
            if !left && !comes {
                wrong.push(format!("step {}: something may run on GPU {}", step.id, step.gpu));
            }
        }
        for (other, later) in steps.iter().enumerate().skip(index + 1) {
            let both = later.kind == StepKind::Repartition && later.gpu == step.gpu;
            if both && !precedence.ends_before(index, other) {
                wrong.push(format!("steps {} and {} may change GPU {} at once", step.id, later.id, step.gpu));
            }
        }
    }
}

/// No service ever falls below its floor.
fn floors(ground: &Ground, from: &Layout, steps: &[Step], precedence: &Precedence, wrong: &mut Vec<String>) {
    let before = ground.totals(from);
    for (service, &floor) in &ground.floors {
        let mut losses = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            let Some(instance) = step.instance.as_ref().filter(|instance| instance.service == *service)
            else {
                continue;
            };
            let rate = ground.rate(step.gpu, instance);
            match step.kind {
                StepKind::Create => losses.push((Event::end(index), -rate)),
                StepKind::Delete => losses.push((Event::begin(index), rate)),
                StepKind::Migrate => {
                    let old = step.from.as_ref().map_or(0, |source| ground.rate(source.gpu, instance));
                    losses.push((Event::end(index), old - rate));
                }
                StepKind::Repartition => {}
            }
        }
        let least = before.get(service).copied().unwrap_or(0) - closure::largest(precedence, &losses);
        if least < floor {
            wrong.push(format!(
                "service {service:?} may fall to {} of {} requests per second",
                micro(least),
                micro(floor)
            ));
        }
    }
}
