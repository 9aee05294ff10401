//! The cluster half-way: what runs, what is still wanted, what is left over.

use downbeat_mig::Placed;

use super::Op;
use crate::case::{Case, GpuIndex, KindIndex, Pod, Rate};
use crate::step::Driver;

/// Where a transition stands.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) case: Case,
    pub(super) driver: Driver,
    /// What runs, by GPU.
    pub(super) pods: Vec<Vec<Pod>>,
    /// The memory units that run something, a bit each, by GPU.
    pub(super) busy: Vec<u64>,
    /// The slices there are, by GPU. Only mig-parted leaves slices idle.
    pub(super) slices: Vec<Vec<Placed>>,
    /// GPUs that mig-parted must cut anew before anything wanted can run on them.
    pub(super) pending: Vec<bool>,
    /// What each service gets now.
    pub(super) rates: Vec<Rate>,
    pub(super) ops: Vec<Op>,
    pub(super) spares: Vec<GpuIndex>,
    pub(super) views: Vec<View>,
    /// How many of each kind are still wanted somewhere, and how many are where they are not wanted.
    pub(super) wanted: Vec<u32>,
    pub(super) surplus: Vec<u32>,
}

/// What remains to be done on a GPU.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub(super) wanted: Vec<Wanted>,
    pub(super) surplus: Vec<Surplus>,
}

/// An instance that is to come, and what is in its way.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) pod: Pod,
    pub(super) blockers: Vec<Pod>,
}

/// An instance that is to go, and how much of what is to come waits for that.
#[derive(Clone, Debug)]
pub(super) struct Surplus {
    pub(super) pod: Pod,
    pub(super) unblocks: f64,
}

impl State {
    pub(super) fn new(case: Case, driver: Driver) -> State {
        let count = case.gpus.len();
        let mut state = State {
            driver,
            pods: case.gpus.iter().map(|gpu| gpu.old.clone()).collect(),
            busy: vec![0; count],
            slices: vec![Vec::new(); count],
            pending: vec![false; count],
            rates: vec![0; case.services.len()],
            ops: Vec::new(),
            spares: Vec::new(),
            views: vec![View::default(); count],
            wanted: vec![0; case.kinds.len()],
            surplus: vec![0; case.kinds.len()],
            case,
        };
        for gpu in 0..count {
            let old: Vec<Placed> =
                state.case.gpus[gpu].old.iter().map(|&pod| state.case.placed(pod)).collect();
            for &pod in &state.pods[gpu] {
                state.busy[gpu] |= state.units(pod);
                state.rates[state.case.service(pod.kind)] += state.case.rate(pod.kind);
            }
            state.slices[gpu] = old.into_iter().chain(state.case.gpus[gpu].idle.iter().copied()).collect();
            state.pending[gpu] = state.must_be_cut(gpu);
            if driver == Driver::Nvml {
                state.clear_idle(gpu);
            }
            state.refresh(gpu);
        }
        state
    }

    /// Wants what another case wants, of the same GPUs and kinds.
    pub(super) fn aim_at(&mut self, case: &Case) {
        for (gpu, there) in case.gpus.iter().enumerate() {
            self.case.gpus[gpu].new.clone_from(&there.new);
            self.pending[gpu] = self.must_be_cut(gpu);
            self.refresh(gpu);
        }
    }

    /// Whether mig-parted must cut a GPU anew before anything wanted can run on it.
    fn must_be_cut(&self, gpu: GpuIndex) -> bool {
        let has = |&pod: &Pod| self.slices[gpu].contains(&self.case.placed(pod));
        self.driver == Driver::MigParted && !self.case.gpus[gpu].new.iter().all(has)
    }

    /// Removes idle slices that a layout came with: NVML cuts slices where they are needed.
    fn clear_idle(&mut self, gpu: GpuIndex) {
        let idle = &self.case.gpus[gpu].idle;
        if !idle.is_empty() {
            self.slices[gpu].retain(|slice| !idle.contains(slice));
            let slices = self.slices[gpu].clone();
            self.ops.push(Op::Repartition { gpu, slices });
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.wanted.iter().chain(&self.surplus).all(|&count| count == 0)
    }

    /// What can be taken from a service now.
    pub(super) fn credit(&self, service: usize) -> Rate {
        self.rates[service].saturating_sub(self.case.floors[service])
    }

    pub(super) fn affords(&self, kind: KindIndex) -> bool {
        self.credit(self.case.service(kind)) >= self.case.rate(kind)
    }

    /// Does one thing.
    pub(super) fn apply(&mut self, op: Op) {
        match &op {
            Op::Create { gpu, pod, .. } => self.add(*gpu, *pod),
            Op::Delete { gpu, pod, .. } => self.remove(*gpu, *pod),
            Op::Migrate { from, to, kind, .. } => {
                self.add(to.0, Pod { start: to.1, kind: *kind });
                self.remove(from.0, Pod { start: from.1, kind: *kind });
            }
            Op::Repartition { gpu, slices } => {
                self.slices[*gpu].clone_from(slices);
                self.pending[*gpu] = self.must_be_cut(*gpu);
                self.refresh(*gpu);
            }
        }
        self.ops.push(op);
    }

    fn add(&mut self, gpu: GpuIndex, pod: Pod) {
        self.pods[gpu].push(pod);
        self.busy[gpu] |= self.units(pod);
        self.rates[self.case.service(pod.kind)] += self.case.rate(pod.kind);
        self.refresh(gpu);
    }

    fn remove(&mut self, gpu: GpuIndex, pod: Pod) {
        self.pods[gpu].retain(|other| *other != pod);
        self.busy[gpu] &= !self.units(pod);
        self.rates[self.case.service(pod.kind)] -= self.case.rate(pod.kind);
        self.refresh(gpu);
    }

    /// Adds a spare GPU of the type that most of what is stuck needs.
    pub(super) fn open_spare(&mut self) {
        let mut stuck = vec![0; self.case.types.len()];
        for (gpu, view) in self.views.iter().enumerate() {
            stuck[self.case.gpus[gpu].gpu_type] += view.wanted.len();
        }
        // Several spares of one type in a row did not help: the next type is tried.
        for &spare in &self.spares {
            stuck[self.case.gpus[spare].gpu_type] /= 2;
        }
        let most = stuck.iter().enumerate().max_by_key(|(index, count)| (**count, std::cmp::Reverse(*index)));
        let gpu_type = most.map_or(0, |(index, _)| index);
        let gpu = self.case.add_spare(gpu_type);
        self.pods.push(Vec::new());
        self.busy.push(0);
        self.slices.push(Vec::new());
        self.pending.push(false);
        self.views.push(View::default());
        self.spares.push(gpu);
    }

    /// Looks at a GPU anew.
    fn refresh(&mut self, gpu: GpuIndex) {
        let view = self.look(gpu);
        let old = std::mem::replace(&mut self.views[gpu], view);
        for wanted in &old.wanted {
            self.wanted[wanted.pod.kind] -= 1;
        }
        for surplus in &old.surplus {
            self.surplus[surplus.pod.kind] -= 1;
        }
        for wanted in &self.views[gpu].wanted {
            self.wanted[wanted.pod.kind] += 1;
        }
        for surplus in &self.views[gpu].surplus {
            self.surplus[surplus.pod.kind] += 1;
        }
    }

    fn look(&self, gpu: GpuIndex) -> View {
        let (pods, new, pending) = (&self.pods[gpu], &self.case.gpus[gpu].new, self.pending[gpu]);
        let wanted: Vec<Wanted> = (new.iter().copied())
            .filter(|pod| pending || !pods.contains(pod))
            .map(|pod| Wanted { pod, blockers: self.blockers(gpu, pod) })
            .collect();
        let unblocks = |pod: Pod| {
            let shares = wanted.iter().filter(|wanted| wanted.blockers.contains(&pod));
            shares.map(|wanted| 1.0 / wanted.blockers.len() as f64).sum()
        };
        let surplus = (pods.iter().copied())
            .filter(|pod| pending || !new.contains(pod))
            .map(|pod| Surplus { pod, unblocks: unblocks(pod) })
            .collect();
        View { wanted, surplus }
    }

    /// What must go before `pod` can come. Never what is itself wanted there: the second layout is legal.
    fn blockers(&self, gpu: GpuIndex, pod: Pod) -> Vec<Pod> {
        let pods = &self.pods[gpu];
        if self.pending[gpu] {
            return pods.clone();
        }
        let overlapping: Vec<Pod> = pods.iter().copied().filter(|&other| self.overlap(pod, other)).collect();
        let rest: Vec<Placed> = (pods.iter().filter(|other| !overlapping.contains(other)))
            .chain([&pod])
            .map(|&pod| self.case.placed(pod))
            .collect();
        if self.driver == Driver::MigParted || self.case.model(gpu).allows(&rest) {
            return overlapping;
        }
        // There is room, but not compute enough.
        let new = &self.case.gpus[gpu].new;
        pods.iter().copied().filter(|other| !new.contains(other)).collect()
    }

    pub(super) fn overlap(&self, a: Pod, b: Pod) -> bool {
        self.units(a) & self.units(b) != 0
    }

    /// The memory units of a pod, a bit each. No GPU has more than 64.
    pub(super) fn units(&self, pod: Pod) -> u64 {
        let kind = &self.case.kinds[pod.kind];
        let size = self.case.types[kind.gpu_type].profiles[kind.profile].size;
        (u64::MAX >> (64 - u32::from(size.clamp(1, 64)))) << pod.start.min(63)
    }
}
