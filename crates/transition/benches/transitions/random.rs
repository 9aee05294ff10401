//! Random layouts, for benchmarks and tests: the same seed gives the same layouts.

use downbeat_mig::{GpuModel, Partitions, Placed};
use downbeat_transition::{Gpu, Instance, Layout, ServiceName};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Random layouts of GPUs of one model for services with random throughputs.
pub(crate) struct Random<'a> {
    pub(crate) rng: Xoshiro256PlusPlus,
    gpu: &'a GpuModel,
    states: Vec<Vec<Placed>>,
    /// By service and profile.
    rates: Vec<Vec<f64>>,
}

/// GPUs in a node.
const GPUS_PER_NODE: u32 = 8;

impl<'a> Random<'a> {
    pub(crate) fn new(gpu: &'a GpuModel, services: usize, seed: u64) -> Random<'a> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let partitions = Partitions::of(gpu, &gpu.plain());
        let states = partitions.maximal_states().into_iter().map(<[Placed]>::to_vec).collect();
        let rates = (0..services)
            .map(|_| {
                // Between well under and well over what the slice is of the GPU.
                let (base, power) = (rng.random_range(20.0..400.0), rng.random_range(0.6..1.3));
                let mut rate =
                    |compute: u8| base * f64::from(compute).powf(power) * rng.random_range(0.9..1.1);
                gpu.profiles.iter().map(|profile| rate(profile.compute)).collect::<Vec<f64>>()
            })
            .collect();
        Random { rng, gpu, states, rates }
    }

    fn services(&self) -> usize {
        self.rates.len()
    }

    /// `gpus` GPUs, each cut in some maximal way; a share of the slices stays empty. Every service has an instance
    /// where there are slices enough.
    pub(crate) fn layout(&mut self, gpus: u32, empty_share: f64) -> Layout {
        let mut slots: Vec<(u32, Placed)> = Vec::new();
        for gpu in 0..gpus {
            let state = self.rng.random_range(0..self.states.len());
            slots.extend(self.states[state].iter().map(|&placed| (gpu, placed)));
        }
        self.shuffle(&mut slots);
        let count = self.services();
        let mut filled = Vec::new();
        for (index, (gpu, placed)) in slots.into_iter().enumerate() {
            let service = if index < count { index } else { self.rng.random_range(0..count) };
            if index < count || !self.rng.random_bool(empty_share) {
                filled.push((gpu, placed, service));
            }
        }
        self.written(gpus, &filled)
    }

    /// The instances of `layout`, each GPU's with those of some other GPU of the same cut where there is one, and every
    /// GPU cut the other way round where it can be: as many instances of each kind as before, elsewhere.
    pub(crate) fn rearranged(&mut self, layout: &Layout) -> Layout {
        let mut contents: Vec<Vec<Instance>> = layout.gpus.iter().map(|gpu| gpu.instances.clone()).collect();
        self.shuffle(&mut contents);
        // Slices of one profile are dealt anew over all GPUs.
        let mut slots: Vec<(usize, usize)> = Vec::new();
        for (gpu, content) in contents.iter().enumerate() {
            slots.extend((0..content.len()).map(|slot| (gpu, slot)));
        }
        let mut dealt = slots.clone();
        self.shuffle(&mut dealt);
        let before = contents.clone();
        for profile in self.gpu.profiles.iter().map(|profile| &profile.name) {
            let of = |list: &[(usize, usize)]| -> Vec<(usize, usize)> {
                list.iter().copied().filter(|&(gpu, slot)| before[gpu][slot].profile == *profile).collect()
            };
            for ((to_gpu, to), (from_gpu, from)) in of(&slots).into_iter().zip(of(&dealt)) {
                let start = before[to_gpu][to].start;
                contents[to_gpu][to] = Instance { start, ..before[from_gpu][from].clone() };
            }
        }
        let mut changed = layout.clone();
        for (gpu, content) in changed.gpus.iter_mut().zip(contents) {
            gpu.instances = content;
        }
        changed
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for index in (1..list.len()).rev() {
            list.swap(index, self.rng.random_range(0..=index));
        }
    }

    fn written(&self, gpus: u32, filled: &[(u32, Placed, usize)]) -> Layout {
        let on = |gpu: u32| -> Vec<Instance> {
            let mut here: Vec<Instance> = (filled.iter())
                .filter(|(there, ..)| *there == gpu)
                .map(|&(_, placed, service)| Instance {
                    profile: self.gpu.profiles[placed.profile].name.clone(),
                    start: placed.start,
                    service: format!("s{service}"),
                    model: format!("m{service}"),
                    batch: 8,
                    throughput_rps: self.rates[service][placed.profile],
                })
                .collect();
            here.sort_by_key(|instance| instance.start);
            here
        };
        let gpu = |gpu: u32| Gpu {
            gpu,
            node: gpu / GPUS_PER_NODE,
            gpu_type: self.gpu.name.clone(),
            instances: on(gpu),
            idle: Vec::new(),
        };
        Layout {
            gpus: (0..gpus).map(gpu).filter(|gpu| !gpu.instances.is_empty()).collect(),
            services: (0..self.services()).map(|service| ServiceName::new(format!("s{service}"))).collect(),
        }
    }
}
