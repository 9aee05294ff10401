//! Exhaustive search: can one layout be reached from another at all?
//!
//! What matters of a state is what it cannot do without. Any state is reached from any subset of itself that keeps the
//! floors (create what is missing), and the other way round (delete it). So it is enough to visit *bare* states, in
//! which no service can spare an instance. The first instance of a bare state that any path deletes must be paid for by
//! instances of its own service, put into room that the bare state leaves; a move is therefore: choose an instance,
//! choose a smallest set of instances of its service that pay for it, put them up, take it down, and bare the rest. The
//! target is reachable exactly if a bare state that is part of it is. All this is exact; only the number of states that
//! may be visited is limited.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use downbeat_mig::{GpuModel, Placed};
use downbeat_transition::Layout;

/// An instance at a place: GPU, place, kind.
type Seat = (usize, Placed, usize);
type Bare = BTreeSet<Seat>;

/// What the search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Reachable,
    Unreachable,
    /// More states than were allowed.
    Unknown,
}

/// The search between two layouts of GPUs of one model.
pub(crate) struct Exhaustive<'a> {
    gpu: &'a GpuModel,
    gpus: usize,
    /// Service, profile and throughput in millionths.
    kinds: Vec<(usize, usize, u64)>,
    floors: Vec<u64>,
    from: Bare,
    to: Bare,
}

impl<'a> Exhaustive<'a> {
    pub(crate) fn new(gpu: &'a GpuModel, from: &Layout, to: &Layout, spares: usize) -> Exhaustive<'a> {
        let numbers: BTreeSet<u32> = from.gpus.iter().chain(&to.gpus).map(|gpu| gpu.gpu).collect();
        let seat_of: BTreeMap<u32, usize> =
            numbers.iter().enumerate().map(|(seat, gpu)| (*gpu, seat)).collect();
        let mut services: Vec<String> = Vec::new();
        let mut kinds: Vec<(usize, usize, u64)> = Vec::new();
        let mut seats = |layout: &Layout| -> Bare {
            let mut seats = Bare::new();
            for there in &layout.gpus {
                for instance in &there.instances {
                    let service =
                        services.iter().position(|name| *name == instance.service).unwrap_or_else(|| {
                            services.push(instance.service.clone());
                            services.len() - 1
                        });
                    let profile = gpu.profile(&instance.profile).unwrap_or(0);
                    let kind = (service, profile, (instance.throughput_rps * 1e6).round() as u64);
                    let index = kinds.iter().position(|known| *known == kind).unwrap_or_else(|| {
                        kinds.push(kind);
                        kinds.len() - 1
                    });
                    seats.insert((seat_of[&there.gpu], Placed { start: instance.start, profile }, index));
                }
            }
            seats
        };
        let (from, to) = (seats(from), seats(to));
        let mut search = Exhaustive {
            gpu,
            gpus: numbers.len() + spares,
            kinds,
            floors: vec![0; services.len()],
            from,
            to,
        };
        let (old, new) = (search.rates(&search.from), search.rates(&search.to));
        search.floors = old.into_iter().zip(new).map(|(old, new)| old.min(new)).collect();
        search
    }

    pub(crate) fn answer(&self, states_max: usize) -> Answer {
        let first = self.bare(self.from.clone());
        let mut seen = BTreeSet::from([first.clone()]);
        let mut open = BinaryHeap::from([(self.alike(&first), first)]);
        while let Some((_, state)) = open.pop() {
            if state.is_subset(&self.to) {
                return Answer::Reachable;
            }
            for next in self.moves(&state) {
                if seen.contains(&next) {
                    continue;
                }
                if seen.len() >= states_max {
                    return Answer::Unknown;
                }
                seen.insert(next.clone());
                open.push((self.alike(&next), next));
            }
        }
        Answer::Unreachable
    }

    /// How much of a state is the target's, less what is not: the order of the search, not its result.
    fn alike(&self, state: &Bare) -> i64 {
        state.iter().map(|seat| if self.to.contains(seat) { 1 } else { -1 }).sum()
    }

    fn rates(&self, state: &Bare) -> Vec<u64> {
        let services = self.kinds.iter().map(|kind| kind.0 + 1).max().unwrap_or(0);
        let mut rates = vec![0; services];
        for (_, _, kind) in state {
            rates[self.kinds[*kind].0] += self.kinds[*kind].2;
        }
        rates
    }

    /// Takes away what can be spared; what is not in the target first.
    fn bare(&self, mut state: Bare) -> Bare {
        let mut rates = self.rates(&state);
        let mut seats: Vec<Seat> = state.iter().copied().collect();
        seats.sort_by_key(|seat| self.to.contains(seat));
        for seat in seats {
            let (service, _, rate) = self.kinds[seat.2];
            if rates[service] - rate >= self.floors[service] {
                rates[service] -= rate;
                state.remove(&seat);
            }
        }
        state
    }

    fn moves(&self, state: &Bare) -> Vec<Bare> {
        let rates = self.rates(state);
        let mut moves = Vec::new();
        for &gone in state {
            let (service, _, rate) = self.kinds[gone.2];
            let need = rate - (rates[service] - self.floors[service]);
            let rooms: Vec<Seat> = (0..self.gpus)
                .flat_map(|gpu| self.seats(gpu, service))
                .filter(|seat| !state.contains(seat) && self.fits(state, &[], *seat))
                .collect();
            self.pay(state, gone, need, &rooms, &mut Vec::new(), &mut moves);
        }
        moves
    }

    /// Every seat of a service on a GPU.
    fn seats(&self, gpu: usize, service: usize) -> Vec<Seat> {
        let kinds = self.kinds.iter().enumerate().filter(|(_, kind)| kind.0 == service);
        kinds
            .flat_map(|(index, &(_, profile, _))| {
                let starts = &self.gpu.profiles[profile].starts;
                starts.iter().map(move |&start| (gpu, Placed { start, profile }, index))
            })
            .collect()
    }

    fn fits(&self, state: &Bare, more: &[Seat], seat: Seat) -> bool {
        let here = state.iter().chain(more).chain([&seat]).filter(|other| other.0 == seat.0);
        let placed: Vec<Placed> = here.map(|other| other.1).collect();
        self.gpu.allows(&placed)
    }

    /// Every smallest set of seats that serves `need`.
    fn pay(
        &self,
        state: &Bare,
        gone: Seat,
        need: u64,
        rooms: &[Seat],
        taken: &mut Vec<Seat>,
        moves: &mut Vec<Bare>,
    ) {
        let paid: u64 = taken.iter().map(|seat| self.kinds[seat.2].2).sum();
        if paid >= need {
            let smallest = taken.iter().all(|seat| paid - self.kinds[seat.2].2 < need);
            if smallest {
                let mut next = state.clone();
                next.remove(&gone);
                next.extend(taken.iter().copied());
                moves.push(self.bare(next));
            }
            return;
        }
        for (index, &seat) in rooms.iter().enumerate() {
            if self.fits(state, taken, seat) {
                taken.push(seat);
                self.pay(state, gone, need, &rooms[index + 1..], taken, moves);
                taken.pop();
            }
        }
    }
}
