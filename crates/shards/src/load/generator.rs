//! The host of a shard that makes up its requests.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use downbeat_sched::{ModelId, Outcome, Priority, Request, RequestId, Span, Time};
use rand::SeedableRng;
use rand_distr::weighted::WeightedAliasIndex;
use rand_distr::{Distribution, Exp1};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::account::Account;
use super::{EmulatedDevices, Load, RESERVE};
use crate::host::{DomainId, Finished, Host, Inlet, Launch};
use crate::sync::Arc;

/// Events of each kind that are handed over in one turn at most.
const AT_ONCE: usize = 256;

/// Makes up the requests of one shard's models, and runs its batches on emulated devices.
///
/// The sum of Poisson processes is a Poisson process, and whose request it is, is drawn independently: so one gap and
/// one model are drawn for each request, however many models there are.
pub(super) struct Generator {
    random: Xoshiro256PlusPlus,
    models: Vec<ModelId>,
    /// `None` where there is only one model to choose from.
    choice: Option<WeightedAliasIndex<f64>>,
    mean_gap_ns: f64,
    next_ns: f64,
    end: Time,
    allowance: Span,
    next_id: u64,
    ids_apart: u64,
    devices: Arc<EmulatedDevices>,
    running: BinaryHeap<Reverse<(Time, Finishing)>>,
    account: Account,
}

/// A batch that will finish: domain, device, batch.
type Finishing = (u16, u32, u64);

impl Generator {
    pub(super) fn new(
        load: &Load,
        index: u16,
        models: &[ModelId],
        weights: &[f64],
        begin: Time,
        devices: Arc<EmulatedDevices>,
        account: Account,
    ) -> Generator {
        let own: Vec<f64> = models.iter().map(|model| weights[model.0 as usize]).collect();
        let mean_gap_ns = 1e9 / (load.rate * own.iter().sum::<f64>());
        let seed = load.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(index.into());
        Generator {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            models: models.to_vec(),
            choice: if own.len() > 1 { WeightedAliasIndex::new(own).ok() } else { None },
            mean_gap_ns,
            next_ns: begin.as_nanos() as f64,
            end: account.measured_until(),
            allowance: load.allowance(),
            next_id: index.into(),
            ids_apart: load.shards.into(),
            devices,
            running: BinaryHeap::new(),
            account: if load.spin { account.watching_stalls() } else { account },
        }
    }

    pub(super) fn into_account(self) -> Account {
        self.account
    }

    fn next_at(&self) -> Time {
        Time::from_nanos(self.next_ns as u64)
    }
}

impl Host for Generator {
    fn poll(&mut self, now: Time, inlet: &mut Inlet) {
        self.account.look(now);
        while inlet.finished.len() < AT_ONCE
            && let Some(&Reverse((at, (domain, gpu, batch)))) = self.running.peek()
            && at <= now
        {
            self.running.pop();
            self.account.event(at, now);
            inlet.finished.push(Finished {
                domain: DomainId(domain),
                gpu: downbeat_sched::GpuId(gpu),
                batch: downbeat_sched::BatchId(batch),
                at,
            });
        }
        while inlet.arrived.len() < AT_ONCE {
            let at = self.next_at();
            if at > now || at >= self.end {
                break;
            }
            let gap: f64 = Exp1.sample(&mut self.random);
            self.next_ns += gap * self.mean_gap_ns;
            let index = self.choice.as_ref().map_or(0, |choice| choice.sample(&mut self.random));
            let id = RequestId(self.next_id);
            self.next_id += self.ids_apart;
            self.account.event(at, now);
            self.account.arrived(at, id);
            inlet.arrived.push(Request {
                id,
                model: self.models[index],
                deadline: at + self.allowance,
                priority: Priority(0),
                rows: 1,
            });
        }
    }

    fn wake_at(&self) -> Time {
        let arrival = if self.next_at() < self.end { self.next_at() } else { Time::NEVER };
        self.running.peek().map_or(arrival, |Reverse((at, _))| arrival.min(*at))
    }

    fn start(&mut self, now: Time, launch: &Launch, requests: &[Request]) {
        let finish_at = self.devices.send(launch.gpu, launch.ready_at, launch.latency);
        self.running.push(Reverse((finish_at, (launch.domain.0, launch.gpu.0, launch.batch.0))));
        self.account.started(now, requests.len());
    }

    fn answer(&mut self, _: Time, _: ModelId, request: RequestId, outcome: Outcome) {
        debug_assert!(outcome == Outcome::Expired, "{request:?} left as {outcome:?}");
        self.account.dropped(request);
    }

    fn finish(&mut self, now: Time, request: &Request) {
        self.account.finished(request.id, now <= request.deadline + RESERVE);
    }
}
