//! Two layouts, checked and put into numbers: what the planner works on.

mod checked;
mod error;
mod renumber;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use downbeat_mig::{Catalogue, GpuModel, Placed};

pub use error::CaseError;

use crate::layout::Layout;
use checked::CheckedGpu;

/// Index into [`Case::gpus`].
pub(crate) type GpuIndex = usize;
/// Index into [`Case::kinds`].
pub(crate) type KindIndex = usize;

/// Requests per second, in millionths: sums are exact, in whatever order.
pub(crate) type Rate = u64;

const MICRO: f64 = 1e6;

/// What must be the same for two instances to be interchangeable.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) service: usize,
    pub(crate) model: String,
    pub(crate) gpu_type: usize,
    pub(crate) profile: usize,
    pub(crate) batch: u32,
    pub(crate) rate: Rate,
}

/// A GPU of either layout, or a spare one.
#[derive(Clone, Debug)]
pub(crate) struct CaseGpu {
    pub(crate) number: u32,
    pub(crate) node: u32,
    pub(crate) gpu_type: usize,
    /// What runs on it and what is to run on it.
    pub(crate) old: Vec<Pod>,
    pub(crate) new: Vec<Pod>,
    /// Slices that exist and hold nothing.
    pub(crate) idle: Vec<Placed>,
}

/// An instance on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pod {
    pub(crate) start: u8,
    pub(crate) kind: KindIndex,
}

/// A transition to be planned.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) types: Vec<GpuModel>,
    pub(crate) services: Vec<String>,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) gpus: Vec<CaseGpu>,
    /// What each service must never fall below.
    pub(crate) floors: Vec<Rate>,
    pub(crate) renumbered: Vec<(u32, u32)>,
    pub(crate) notes: Vec<String>,
}

/// How two layouts are compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Comparison {
    /// GPUs of the second layout may trade places with others of their type, where that leaves more as it is.
    pub renumber: bool,
    /// Services may be on one side only: they come or go.
    pub services_may_differ: bool,
}

impl Case {
    pub(crate) fn new(
        from: &Layout,
        to: &Layout,
        catalogue: &Catalogue,
        comparison: Comparison,
    ) -> Result<Case, CaseError> {
        let (mut to, mut renumbered) = (to.clone(), Vec::new());
        checked::check(from, "the first plan", catalogue)?;
        checked::check(&to, "the second plan", catalogue)?;
        checked::check_together(from, &to, comparison)?;
        if comparison.renumber {
            renumbered = renumber::renumber(from, &mut to);
        }
        let mut case = Case {
            types: Vec::new(),
            services: Vec::new(),
            kinds: Vec::new(),
            gpus: Vec::new(),
            floors: Vec::new(),
            renumbered,
            notes: Vec::new(),
        };
        let mut gpus: BTreeMap<u32, [Option<CheckedGpu>; 2]> = BTreeMap::new();
        for (side, layout) in [from, &to].into_iter().enumerate() {
            for gpu in checked::gpus(layout, catalogue) {
                let sides = gpus.entry(gpu.number).or_default();
                sides[side] = Some(gpu);
            }
        }
        case.services = checked::services(from, &to);
        for (number, [old, new]) in gpus {
            case.add_gpu(number, old.as_ref(), new.as_ref());
        }
        case.floors = case.floors();
        Ok(case)
    }

    fn add_gpu(&mut self, number: u32, old: Option<&CheckedGpu>, new: Option<&CheckedGpu>) {
        let Some(any) = old.or(new) else { return };
        let gpu_type = match self.types.iter().position(|known| known.name == any.model.name) {
            Some(index) => index,
            None => {
                self.types.push(any.model.clone());
                self.types.len() - 1
            }
        };
        let mut pods = |side: Option<&CheckedGpu>| -> Vec<Pod> {
            let found = side.map_or(&[][..], |gpu| &gpu.instances);
            found.iter().map(|found| self.pod(gpu_type, found)).collect()
        };
        let (old_pods, new_pods) = (pods(old), pods(new));
        self.gpus.push(CaseGpu {
            number,
            node: any.node,
            gpu_type,
            old: old_pods,
            new: new_pods,
            idle: old.map_or_else(Vec::new, |gpu| gpu.idle.clone()),
        });
    }

    /// An instance's kind. Where two plans count instances of a kind differently, because they count by the number of
    /// siblings, the lower figure holds.
    fn pod(&mut self, gpu_type: usize, found: &checked::CheckedInstance) -> Pod {
        let service = self.services.iter().position(|name| *name == found.service).unwrap_or(0);
        let rate = (found.throughput_rps * MICRO).round() as Rate;
        let same = |kind: &Kind| {
            kind.service == service
                && kind.gpu_type == gpu_type
                && kind.profile == found.placed.profile
                && kind.model == found.model
                // One that serves nothing, because stopping it failed, is no sibling of those that serve.
                && (kind.rate == 0) == (rate == 0)
        };
        let kind = match self.kinds.iter().position(same) {
            Some(index) => {
                let known = &mut self.kinds[index];
                if known.rate.abs_diff(rate) > known.rate.max(rate) / 1_000_000 + 1 {
                    let note = format!(
                        "instances of {} on {} are counted differently in the two plans; the lower figure is taken",
                        found.service, self.types[gpu_type].profiles[found.placed.profile].name
                    );
                    if !self.notes.contains(&note) {
                        self.notes.push(note);
                    }
                }
                known.rate = known.rate.min(rate);
                known.batch = found.batch;
                index
            }
            None => {
                self.kinds.push(Kind {
                    service,
                    model: found.model.clone(),
                    gpu_type,
                    profile: found.placed.profile,
                    batch: found.batch,
                    rate,
                });
                self.kinds.len() - 1
            }
        };
        Pod { start: found.placed.start, kind }
    }

    fn floors(&self) -> Vec<Rate> {
        let sum = |pods: fn(&CaseGpu) -> &[Pod]| {
            let mut rates = vec![0; self.services.len()];
            for pod in self.gpus.iter().flat_map(pods) {
                rates[self.kinds[pod.kind].service] += self.kinds[pod.kind].rate;
            }
            rates
        };
        let (old, new) = (sum(|gpu| &gpu.old), sum(|gpu| &gpu.new));
        old.into_iter().zip(new).map(|(old, new)| old.min(new)).collect()
    }

    /// Adds an empty GPU of a type that there is, on a node of its own.
    pub(crate) fn add_spare(&mut self, gpu_type: usize) -> GpuIndex {
        let number = self.gpus.iter().map(|gpu| gpu.number + 1).max().unwrap_or(0);
        let node = self.gpus.iter().map(|gpu| gpu.node + 1).max().unwrap_or(0);
        let (old, new, idle) = (Vec::new(), Vec::new(), Vec::new());
        self.gpus.push(CaseGpu { number, node, gpu_type, old, new, idle });
        self.gpus.len() - 1
    }

    /// The model of a GPU.
    pub(crate) fn model(&self, gpu: GpuIndex) -> &GpuModel {
        &self.types[self.gpus[gpu].gpu_type]
    }

    /// The slice that a pod runs in.
    pub(crate) fn placed(&self, pod: Pod) -> Placed {
        Placed { start: pod.start, profile: self.kinds[pod.kind].profile }
    }

    /// What a kind serves.
    pub(crate) fn rate(&self, kind: KindIndex) -> Rate {
        self.kinds[kind].rate
    }

    /// A kind's service.
    pub(crate) fn service(&self, kind: KindIndex) -> usize {
        self.kinds[kind].service
    }
}
