//! Everything that can be done as things are.

use super::state::State;
use super::{Op, Reason, Taste};
use crate::case::{GpuIndex, Pod};
use crate::step::Driver;

impl State {
    /// Creates, deletes and migrates until nothing wanted can come without making room.
    pub(super) fn exchange(&mut self, taste: Taste) {
        while self.create_new()
            || self.delete_in_the_way(|wanted, surplus| surplus > wanted)
            || self.migrate(taste)
            || self.delete_in_the_way(|_, _| true)
        {}
        if self.wanted.iter().all(|&count| count == 0) {
            self.delete_the_rest();
        }
    }

    /// Creates an instance of a kind that there are to be more of.
    fn create_new(&mut self) -> bool {
        let found = self.free_places().find(|(_, pod)| self.wanted[pod.kind] > self.surplus[pod.kind]);
        let Some((gpu, pod)) = found else { return false };
        self.cut(gpu);
        self.apply(Op::Create { gpu, pod, reason: Reason::Wanted });
        true
    }

    /// Deletes an instance that its service can do without and that something wanted waits for: of those whose kind
    /// passes `may_go` (how many are wanted, how many are left over) the one that most waits for.
    fn delete_in_the_way(&mut self, may_go: fn(u32, u32) -> bool) -> bool {
        let mut best: Option<(f64, GpuIndex, Pod)> = None;
        for (gpu, surplus) in self.surpluses() {
            let kind = surplus.pod.kind;
            // One that is wanted elsewhere is deleted only where that alone lets something come: it costs a step more.
            let worth = if self.surplus[kind] > self.wanted[kind] { 0.0 } else { 0.999 };
            if surplus.unblocks > worth
                && may_go(self.wanted[kind], self.surplus[kind])
                && self.affords(kind)
                && best.is_none_or(|best| surplus.unblocks > best.0)
            {
                best = Some((surplus.unblocks, gpu, surplus.pod));
            }
        }
        let Some((_, gpu, pod)) = best else { return false };
        self.apply(Op::Delete { gpu, pod, reason: Reason::Wanted });
        true
    }

    /// Migrates an instance to where it is wanted; the one that most waits for, from the same node if there is a
    /// choice.
    fn migrate(&mut self, taste: Taste) -> bool {
        let mut best: Option<((f64, bool), Op)> = None;
        let emptied = if taste.empties { self.emptied() } else { vec![None; self.pods.len()] };
        for (gpu, pod) in self.free_places() {
            for (source, surplus) in self.surpluses().filter(|(_, surplus)| surplus.pod.kind == pod.kind) {
                let local = self.case.gpus[source].node == self.case.gpus[gpu].node;
                let merit = (emptied[source].unwrap_or(surplus.unblocks), local);
                if best.as_ref().is_none_or(|best| merit > best.0) {
                    let (from, to) = ((source, surplus.pod.start), (gpu, pod.start));
                    best = Some((merit, Op::Migrate { from, to, kind: pod.kind, reason: Reason::Wanted }));
                }
            }
        }
        let Some((_, migration)) = best else { return false };
        if let Op::Migrate { to, .. } = migration {
            self.cut(to.0);
        }
        self.apply(migration);
        true
    }

    /// For each GPU that must be emptied, how near that is once all that has a free place to go to has left: 1 where
    /// nothing else is there.
    fn emptied(&self) -> Vec<Option<f64>> {
        let mut free = vec![0u32; self.case.kinds.len()];
        for (_, pod) in self.free_places() {
            free[pod.kind] += 1;
        }
        let near = |gpu: GpuIndex| {
            let mut free = free.clone();
            let mut stays = |pod: &&Pod| {
                let leaves = free[pod.kind] > 0;
                free[pod.kind] -= u32::from(leaves);
                !leaves
            };
            1.0 / (1 + self.pods[gpu].iter().filter(|pod| stays(pod)).count()) as f64
        };
        (0..self.pods.len()).map(|gpu| self.pending[gpu].then(|| near(gpu))).collect()
    }

    /// Everything wanted is there, so that everything else can go.
    fn delete_the_rest(&mut self) {
        let rest: Vec<(GpuIndex, Pod)> = self.surpluses().map(|(gpu, surplus)| (gpu, surplus.pod)).collect();
        for (gpu, pod) in rest {
            self.apply(Op::Delete { gpu, pod, reason: Reason::Wanted });
        }
    }

    /// Cuts a GPU as it is wanted, where the driver must.
    fn cut(&mut self, gpu: GpuIndex) {
        if self.driver == Driver::MigParted && self.pending[gpu] {
            let slices = self.case.gpus[gpu].new.iter().map(|&pod| self.case.placed(pod)).collect();
            self.apply(Op::Repartition { gpu, slices });
        }
    }

    fn free_places(&self) -> impl Iterator<Item = (GpuIndex, Pod)> {
        let each = |(gpu, view): (GpuIndex, &super::state::View)| -> Vec<(GpuIndex, Pod)> {
            let free = view.wanted.iter().filter(|wanted| wanted.blockers.is_empty());
            free.map(|wanted| (gpu, wanted.pod)).collect()
        };
        self.views.iter().enumerate().flat_map(each)
    }

    pub(super) fn surpluses(&self) -> impl Iterator<Item = (GpuIndex, &super::state::Surplus)> {
        self.views
            .iter()
            .enumerate()
            .flat_map(|(gpu, view)| view.surplus.iter().map(move |surplus| (gpu, surplus)))
    }
}
