//! What surrounds a shard of the scheduler in the server.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use crossbeam_channel::Receiver;
use downbeat_sched::{GpuId, ModelId, Outcome, Request, RequestId, Start, Time};
use downbeat_shards::{Finished, Host, Inlet, Launch};

use super::dispatcher::{Dispatcher, Empty};
use super::handle::News;
use crate::clock::Clock;
use crate::metrics::Metrics;

/// What is taken in during one turn at most.
const AT_ONCE: usize = 256;

/// The dispatcher's place at one shard, on the shard's thread.
pub(crate) struct Counter {
    dispatcher: Arc<Dispatcher>,
    inbox: Receiver<News>,
    /// Devices that were sent batches from here, and when to look for them.
    looks: BinaryHeap<Reverse<(Time, GpuId)>>,
    /// Batches of which nothing was left to run.
    empty: Vec<Finished>,
    /// Kept to be filled again.
    requests: Vec<RequestId>,
    /// Who is told how late batches start, by which clock.
    lag: Option<(Arc<Metrics>, Clock)>,
}

impl Counter {
    pub(super) fn new(
        dispatcher: Arc<Dispatcher>,
        inbox: Receiver<News>,
        lag: Option<(Arc<Metrics>, Clock)>,
    ) -> Counter {
        Counter { dispatcher, inbox, looks: BinaryHeap::new(), empty: Vec::new(), requests: Vec::new(), lag }
    }
}

impl Host for Counter {
    fn poll(&mut self, now: Time, inlet: &mut Inlet) {
        inlet.finished.append(&mut self.empty);
        for _ in 0..AT_ONCE {
            match self.inbox.try_recv() {
                Ok(News::Arrived(request)) => inlet.arrived.push(request),
                Ok(News::Cancelled(request)) => inlet.cancelled.push(request),
                Ok(News::Finished(finished)) => inlet.finished.push(finished),
                Err(_) => break,
            }
        }
        while let Some(&Reverse((at, gpu))) = self.looks.peek()
            && at <= now
        {
            self.looks.pop();
            let again = self.dispatcher.look_after(now, gpu);
            self.looks.extend(again.map(|at| Reverse((at, gpu))));
        }
    }

    fn wake_at(&self) -> Time {
        if self.empty.is_empty() {
            self.looks.peek().map_or(Time::NEVER, |Reverse((at, _))| *at)
        } else {
            Time::ZERO
        }
    }

    fn start(&mut self, now: Time, launch: &Launch, requests: &[Request]) {
        if let Some((metrics, clock)) = &self.lag {
            metrics.scheduling_lag(clock.now().since(launch.decided_at));
        }
        let Launch { domain, batch, model, gpu, start_at, finish_at, rows, reason, .. } = *launch;
        let start = Start { batch, model, gpu, start_at, finish_at, reason, rows, requests: 0..0 };
        self.requests.clear();
        self.requests.extend(requests.iter().map(|request| request.id));
        match self.dispatcher.start(now, &start, &self.requests) {
            Ok(look_at) => self.looks.extend(look_at.map(|at| Reverse((at, gpu)))),
            Err(Empty) => {
                self.empty.push(Finished { domain, gpu, batch, at: now });
            }
        }
    }

    fn answer(&mut self, now: Time, model: ModelId, request: RequestId, outcome: Outcome) {
        self.dispatcher.refuse(now, model, request, outcome);
    }

    fn lost(&mut self, _: Time, request: &Request) -> bool {
        self.dispatcher.lost(request)
    }

    fn finish(&mut self, _: Time, _: &Request) {
        // Who heard it from the device has answered it.
    }
}
