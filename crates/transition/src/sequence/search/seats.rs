//! Everywhere that an instance can be, and what may be there at once.

use downbeat_mig::{Partitions, Placed};

use crate::case::{Case, CaseGpu, GpuIndex, Pod, Rate};
use crate::step::Driver;

/// Index into [`Seats::all`].
pub(super) type SeatIndex = u16;

/// An instance of a kind at a place. Where slices are cut a GPU at a time, the cut is part of the place: two instances
/// are on a GPU at once only where they are of one cut of it.
#[derive(Clone, Debug)]
pub(super) struct Seat {
    pub(super) gpu: GpuIndex,
    pub(super) pod: Pod,
    /// Index into the GPU's [`cuts`](Seats::cuts).
    pub(super) cut: usize,
    pub(super) service: usize,
    pub(super) rate: Rate,
    /// The second layout has it, and everything else that it has on this GPU fits into the cut.
    pub(super) is_wanted: bool,
    profile: usize,
    units: u64,
    compute: u32,
}

/// All seats of a case.
pub(super) struct Seats {
    pub(super) all: Vec<Seat>,
    /// By service.
    pub(super) by_service: Vec<Vec<SeatIndex>>,
    /// How each GPU can be cut; with NVML one list without anything, because slices come and go one at a time.
    pub(super) cuts: Vec<Vec<Vec<Placed>>>,
    /// By GPU: compute slices, and the most slices of each profile.
    limits: Vec<(u32, Vec<u8>)>,
    driver: Driver,
}

impl Seats {
    /// `None` where there are more seats than a search could go through.
    pub(super) fn new(case: &Case, driver: Driver) -> Option<Seats> {
        let mut seats = Seats {
            all: Vec::new(),
            by_service: vec![Vec::new(); case.services.len()],
            cuts: Vec::new(),
            limits: Vec::new(),
            driver,
        };
        for (gpu, there) in case.gpus.iter().enumerate() {
            let model = case.model(gpu);
            seats.limits.push((
                u32::from(model.compute),
                model.profiles.iter().map(|profile| profile.most).collect(),
            ));
            seats.cuts.push(match driver {
                Driver::Nvml => vec![Vec::new()],
                Driver::MigParted => cuts(case, there),
            });
            seats.add_gpu(case, gpu, there);
        }
        if seats.all.len() > usize::from(SeatIndex::MAX) {
            return None;
        }
        for (index, seat) in seats.all.iter().enumerate() {
            seats.by_service[seat.service].push(index as SeatIndex);
        }
        Some(seats)
    }

    fn add_gpu(&mut self, case: &Case, gpu: GpuIndex, there: &CaseGpu) {
        let model = case.model(gpu);
        for (cut, slices) in self.cuts[gpu].iter().enumerate() {
            let has = |placed: Placed| self.driver == Driver::Nvml || slices.contains(&placed);
            let suits = there.new.iter().all(|&pod| has(case.placed(pod)));
            for (kind, known) in case.kinds.iter().enumerate() {
                if known.gpu_type != there.gpu_type {
                    continue;
                }
                let profile = &model.profiles[known.profile];
                for &start in &profile.starts {
                    let pod = Pod { start, kind };
                    if has(case.placed(pod)) {
                        self.all.push(Seat {
                            gpu,
                            pod,
                            cut,
                            service: known.service,
                            rate: known.rate,
                            is_wanted: suits && there.new.contains(&pod),
                            profile: known.profile,
                            units: (u64::MAX >> (64 - u32::from(profile.size.clamp(1, 64)))) << start.min(63),
                            compute: u32::from(profile.compute),
                        });
                    }
                }
            }
        }
    }

    /// The seat of a pod, in the GPU's given cut.
    pub(super) fn find(&self, gpu: GpuIndex, cut: usize, pod: Pod) -> Option<SeatIndex> {
        let same = |seat: &Seat| seat.gpu == gpu && seat.cut == cut && seat.pod == pod;
        self.all.iter().position(same).map(|index| index as SeatIndex)
    }

    /// Whether a seat can be taken beside others.
    pub(super) fn fits(&self, others: impl Iterator<Item = SeatIndex>, seat: SeatIndex) -> bool {
        let seat = &self.all[usize::from(seat)];
        let (compute_max, most) = &self.limits[seat.gpu];
        let (mut compute, mut count) = (seat.compute, 1);
        for other in others {
            let other = &self.all[usize::from(other)];
            if other.gpu != seat.gpu {
                continue;
            }
            if other.units & seat.units != 0 || other.cut != seat.cut {
                return false;
            }
            compute += other.compute;
            count += u8::from(other.profile == seat.profile);
        }
        compute <= *compute_max && count <= most[seat.profile]
    }
}

/// The cuts of a GPU that matter: the one it has, and all that no slice of any use can be added to.
fn cuts(case: &Case, there: &CaseGpu) -> Vec<Vec<Placed>> {
    let mut profiles: Vec<usize> =
        (case.kinds.iter()).filter(|kind| kind.gpu_type == there.gpu_type).map(|kind| kind.profile).collect();
    profiles.sort_unstable();
    profiles.dedup();
    let model = &case.types[there.gpu_type];
    let now: Vec<Placed> =
        there.old.iter().map(|&pod| case.placed(pod)).chain(there.idle.iter().copied()).collect();
    let partitions = Partitions::of(model, &profiles);
    let mut cuts = vec![now];
    cuts.extend(partitions.maximal_states().into_iter().map(<[Placed]>::to_vec));
    cuts
}
