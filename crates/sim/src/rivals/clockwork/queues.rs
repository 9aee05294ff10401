//! One model's requests, as every batch size sees them.

use std::collections::VecDeque;

use downbeat_sched::{ClassId, ModelId, Request, RequestId, Span, Time};

use super::super::queue::expire;
use super::estimate::Estimate;
use super::settings::ClockworkSettings;
use crate::{ModelFacts, Outbox};

/// A model's requests in order of arrival, and per class of device and batch size a queue over them.
///
/// Clockwork pushes each request into one queue per batch size; a request leaves the queue of a large batch when it
/// could not wait for it, and stays in those of smaller ones. Here the requests are held once and each queue is the
/// place of its first request: nothing before it is in the queue.
#[derive(Debug)]
pub(super) struct ModelQueues {
    requests: Requests,
    classes: Vec<Option<ClassQueues>>,
    buffer: Span,
}

#[derive(Debug, Default)]
struct Requests {
    waiting: VecDeque<Waiting>,
    /// The number of the first that is waiting; they are numbered in order of arrival.
    first: u64,
    /// How many came in so far: the number of the next one.
    arrived: u64,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    id: RequestId,
    model: ModelId,
    deadline: Time,
    /// Sent to a device; another class may still have it ahead of its place.
    taken: bool,
}

/// What a model has to offer to a device. The smaller of two is the more urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Strategy {
    /// When the most urgent of its sizes would have to begin: nanoseconds, and before the origin it is negative.
    latest: i128,
    /// That size.
    size: u32,
    /// The index of the largest size.
    largest: usize,
}

/// One class of devices: its queue per batch size, smallest first.
#[derive(Clone, Debug)]
struct ClassQueues {
    queues: Vec<SizeQueue>,
}

#[derive(Clone, Debug)]
struct SizeQueue {
    size: u32,
    estimate: Estimate,
    /// The number of the first request that is in this queue.
    from: u64,
    /// How many requests left it so far. Counting those spares every arrival a round over all queues.
    left: u64,
}

impl SizeQueue {
    fn len(&self, arrived: u64) -> u64 {
        arrived - self.left
    }

    fn has_demand(&self, arrived: u64) -> bool {
        self.len(arrived) >= u64::from(self.size)
    }

    /// Lets go of the requests before number `at_least` and of heads that are due before `ends_at`; returns when the
    /// head that is left is due.
    fn leave_late(&mut self, requests: &Requests, at_least: u64, ends_at: Time) -> Option<Time> {
        while self.len(requests.arrived) > 0 {
            let head = requests.waiting[(self.from - requests.first) as usize];
            if !head.taken && self.from >= at_least && head.deadline >= ends_at {
                return Some(head.deadline);
            }
            self.from += 1;
            self.left += u64::from(!head.taken);
        }
        None
    }
}

impl ModelQueues {
    /// The queues of a model on the classes that `gpus` has.
    pub(super) fn new(facts: &ModelFacts, gpus: &[ClassId], settings: &ClockworkSettings) -> ModelQueues {
        let class = |(class, profile): (usize, &Option<_>)| {
            let profile: &downbeat_sched::LatencyProfile = profile.as_ref()?;
            gpus.iter().find(|gpu| gpu.0 as usize == class)?;
            let short = |size: u32| settings.max_exec.is_none_or(|longest| profile.latency(size) <= longest);
            let sizes = settings.sizes_up_to(profile.max_batch()).into_iter();
            let queue = |size| SizeQueue {
                size,
                estimate: Estimate::new(profile.latency(size), settings.window),
                from: 0,
                left: 0,
            };
            Some(ClassQueues { queues: sizes.filter(|&size| size == 1 || short(size)).map(queue).collect() })
        };
        ModelQueues {
            requests: Requests::default(),
            classes: facts.profiles.iter().enumerate().map(class).collect(),
            buffer: settings.buffer,
        }
    }

    pub(super) fn deployed(&self) -> bool {
        self.classes.iter().flatten().next().is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.waiting.is_empty()
    }

    pub(super) fn first_deadline(&self) -> Time {
        self.requests.waiting.front().map_or(Time::NEVER, |first| first.deadline)
    }

    /// Adds a request to every queue; returns when it must have finished.
    pub(super) fn push(&mut self, request: &Request) -> Time {
        let deadline = request.deadline - self.buffer;
        self.requests.waiting.push_back(Waiting {
            id: request.id,
            model: request.model,
            deadline,
            taken: false,
        });
        self.requests.arrived += 1;
        deadline
    }

    /// What the model can run on a device of `class` where a batch would begin at `begins_at(size)`.
    ///
    /// On the way, the requests that a batch of a size could not finish in time leave that size's queue.
    pub(super) fn strategy(
        &mut self,
        now: Time,
        class: ClassId,
        begins_at: impl Fn(u32) -> Time,
    ) -> Option<Strategy> {
        let queues = &mut self.classes.get_mut(class.0 as usize)?.as_mut()?.queues;
        let mut best: Option<Strategy> = None;
        let mut at_least = 0;
        for (largest, queue) in queues.iter_mut().enumerate() {
            let run = queue.estimate.value(now);
            // Who cannot run in a smaller batch cannot run in this one, whatever noise the estimates have.
            let head = queue.leave_late(&self.requests, at_least, begins_at(queue.size) + run);
            at_least = queue.from;
            // A size without enough requests ends the search: no larger one has more.
            let Some(deadline) = head.filter(|_| queue.has_demand(self.requests.arrived)) else { break };
            let latest = i128::from(deadline.as_nanos()) - i128::from(run.as_nanos());
            let (latest, size) =
                best.map_or((latest, queue.size), |b| (b.latest, b.size).min((latest, queue.size)));
            best = Some(Strategy { latest, size, largest });
        }
        best
    }

    /// Takes the largest batch of a strategy: how long it should run, and its requests.
    ///
    /// All the class's queues catch up with its last request, so those it passed over leave them; in other classes'
    /// queues only the batch itself is missing from now on.
    pub(super) fn take(&mut self, now: Time, class: ClassId, strategy: Strategy) -> (Span, Vec<RequestId>) {
        let ModelQueues { requests, classes, .. } = self;
        let Some(Some(own)) = classes.get(class.0 as usize) else { return (Span::ZERO, Vec::new()) };
        let SizeQueue { size, ref estimate, from, left } = own.queues[strategy.largest];
        let run = estimate.value(now);
        let mut numbers = Vec::with_capacity(size as usize);
        let mut ids = Vec::with_capacity(size as usize);
        for (number, waiting) in (from..).zip(requests.waiting.range_mut((from - requests.first) as usize..))
        {
            if ids.len() == size as usize {
                break;
            }
            if !waiting.taken {
                waiting.taken = true;
                numbers.push(number);
                ids.push(waiting.id);
            }
        }
        let next = numbers.last().map_or(from, |last| last + 1);
        for (place, other) in classes.iter_mut().enumerate() {
            for queue in other.iter_mut().flat_map(|other| &mut other.queues) {
                if place != class.0 as usize {
                    queue.left += (numbers.len() - numbers.partition_point(|&it| it < queue.from)) as u64;
                } else if queue.from < next {
                    (queue.from, queue.left) = (next, left + u64::from(size));
                }
            }
        }
        (run, ids)
    }

    /// Answers the requests that no queue has any more.
    pub(super) fn drop_passed_over(&mut self, out: &mut Outbox) {
        // A size-1 queue lets go of a request last of its class. From an empty queue all have gone.
        let arrived = self.requests.arrived;
        let smallest = |class: &ClassQueues| match class.queues[0].len(arrived) {
            0 => arrived,
            _ => class.queues[0].from,
        };
        let kept_from = self.classes.iter().flatten().map(smallest).min().unwrap_or(arrived);
        while self.requests.first < kept_from || self.requests.waiting.front().is_some_and(|head| head.taken)
        {
            self.pop(out);
        }
    }

    /// Answers the requests whose deadline has passed.
    pub(super) fn time_out(&mut self, now: Time, out: &mut Outbox) {
        while self.requests.waiting.front().is_some_and(|head| head.taken || head.deadline <= now) {
            self.pop(out);
        }
    }

    /// Removes the first request, from every queue that still has it.
    fn pop(&mut self, out: &mut Outbox) {
        let Some(head) = self.requests.waiting.pop_front() else { return };
        if !head.taken {
            expire(head.model, head.id, out);
        }
        let next = self.requests.first + 1;
        for queue in self.classes.iter_mut().flatten().flat_map(|class| &mut class.queues) {
            if queue.from < next {
                queue.from = next;
                queue.left += u64::from(!head.taken);
            }
        }
        self.requests.first = next;
    }

    /// Takes note of how long a batch took.
    pub(super) fn measured(&mut self, now: Time, class: ClassId, size: u32, took: Span) {
        let queues =
            self.classes.get_mut(class.0 as usize).into_iter().flatten().flat_map(|it| &mut it.queues);
        if let Some(queue) = queues.into_iter().find(|queue| queue.size == size) {
            queue.estimate.measured(now, took);
        }
    }
}
