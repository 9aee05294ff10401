//! The scheduler as an event loop on one thread, for machines on which threads that hand things to each other would cost
//! more than they give.
//!
//! Messages come through one channel. A turn takes in those that are there, lets the scheduler decide once, and carries
//! out what it decided. The loop reads no clock and never waits but in [`EventLoop::run`], so that tests run it in
//! virtual time.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};
use downbeat_profile::Span;
use downbeat_sched::{
    Action, Actions, BatchId, ClassId, Delays, Event, GpuId, ModelId, Need, Request, Rule, Scheduler, Time,
};
use downbeat_shards::{forgiven, wake_up_on_time};

use super::dispatcher::{Dispatcher, Empty};
use super::runtime::GRACE;
use crate::clock::Clock;
use crate::metrics::Metrics;

/// Messages taken in during one turn at most, so that what is due never waits for long.
const AT_ONCE: usize = 256;

/// Waits shorter than this are not worth the way into the kernel and back.
const TOO_SHORT: Span = Span::from_micros(20);

/// A message to the event loop.
enum Message {
    /// An event of the scheduler, and when it happened; a time that is past counts as that of the message before.
    Event(Time, Event),
    Leave {
        at: Time,
        gpu: GpuId,
        settled: Box<dyn FnOnce() + Send>,
    },
    Fail {
        at: Time,
        gpus: Vec<GpuId>,
    },
    Stop,
}

/// The event loop, as other threads reach it.
#[derive(Debug)]
pub(super) struct DirectHandle {
    /// Without a limit: messages are bounded by their senders, since every request holds a permit.
    messages: Sender<Message>,
    shared: Arc<Shared>,
}

/// The other end of a [`DirectHandle`].
pub(super) struct Inbox {
    messages: Receiver<Message>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// The devices that are needed, by class.
    needs: Mutex<Vec<Need>>,
    /// Models whose removal was sent and is not carried out.
    in_removal: Mutex<BTreeSet<ModelId>>,
}

impl DirectHandle {
    pub(super) fn new() -> (DirectHandle, Inbox) {
        let (sender, receiver) = crossbeam_channel::unbounded();
        let shared: Arc<Shared> = Arc::default();
        let handle = DirectHandle { messages: sender, shared: Arc::clone(&shared) };
        (handle, Inbox { messages: receiver, shared })
    }

    pub(super) fn tell(&self, at: Time, event: Event) {
        self.send(Message::Event(at, event));
    }

    pub(super) fn leave(&self, at: Time, gpu: GpuId, settled: Box<dyn FnOnce() + Send>) {
        self.send(Message::Leave { at, gpu, settled });
    }

    pub(super) fn fail(&self, at: Time, gpus: Vec<GpuId>) {
        self.send(Message::Fail { at, gpus });
    }

    pub(super) fn remove_model(&self, model: ModelId) {
        self.shared.in_removal.lock().unwrap_or_else(PoisonError::into_inner).insert(model);
        self.tell(Time::ZERO, Event::ModelRemoved { model });
    }

    pub(super) fn is_vacant(&self, model: ModelId) -> bool {
        !self.shared.in_removal.lock().unwrap_or_else(PoisonError::into_inner).contains(&model)
    }

    pub(super) fn need(&self, class: ClassId) -> Need {
        let needs = self.shared.needs.lock().unwrap_or_else(PoisonError::into_inner);
        needs.get(usize::from(class.0)).copied().unwrap_or_default()
    }

    pub(super) fn stop(&self) {
        self.send(Message::Stop);
    }

    fn send(&self, message: Message) {
        // It only fails when the server ends.
        let _ = self.messages.send(message);
    }
}

/// A scheduler with everything around it: messages, timer, devices to look after.
pub(super) struct EventLoop {
    scheduler: Scheduler,
    dispatcher: Arc<Dispatcher>,
    inbox: Inbox,
    /// A message that ended the thread's sleep.
    next: Option<Message>,
    /// Kept to be filled again.
    actions: Actions,
    /// When the scheduler wants to decide although nothing happens before.
    timer: Time,
    /// When the last turn began.
    last: Time,
    /// Devices that were sent batches, and when to look for them.
    looks: BinaryHeap<Reverse<(Time, GpuId)>>,
    /// Batches of which nothing was left to run.
    empty: Vec<(GpuId, BatchId)>,
    /// To be called at the end of the turn, for devices that left in it.
    settled: Vec<Box<dyn FnOnce() + Send>>,
    /// Models that were removed in this turn.
    removed: Vec<ModelId>,
    /// Classes below this have had a device.
    classes: u16,
    /// The metrics that count how late batches start, and the clock by which that is told.
    lag: Option<(Arc<Metrics>, Clock)>,
}

impl EventLoop {
    pub(super) fn new(
        rule: Rule,
        delays: Delays,
        dispatcher: Arc<Dispatcher>,
        inbox: Inbox,
        lag: Option<(Arc<Metrics>, Clock)>,
    ) -> EventLoop {
        EventLoop {
            scheduler: Scheduler::new(rule, delays),
            dispatcher,
            inbox,
            next: None,
            actions: Actions::new(),
            timer: Time::NEVER,
            last: Time::ZERO,
            looks: BinaryHeap::new(),
            empty: Vec::new(),
            settled: Vec::new(),
            removed: Vec::new(),
            classes: 0,
            lag,
        }
    }

    /// Runs on the calling thread until it is told to stop.
    pub(super) fn run(mut self, clock: Clock) {
        wake_up_on_time();
        while self.turn(clock.now()).is_some() {
            self.sleep(clock);
        }
    }

    /// Waits for the next message, or for what is due next.
    fn sleep(&mut self, clock: Clock) {
        let wait = self.wake_at().since(clock.now());
        if wait <= TOO_SHORT {
            std::hint::spin_loop();
        } else {
            self.next = self.inbox.messages.recv_timeout(Duration::from_nanos(wait.as_nanos())).ok();
        }
    }

    /// When there will be something to do although no message comes.
    pub(super) fn wake_at(&self) -> Time {
        if self.next.is_some() || !self.empty.is_empty() {
            return Time::ZERO;
        }
        self.timer.min(self.looks.peek().map_or(Time::NEVER, |Reverse((at, _))| *at))
    }

    /// Does what there is to do; says whether there was anything, `None` to stop.
    pub(super) fn turn(&mut self, now: Time) -> Option<bool> {
        let mut worked = self.do_what_was_due(now);
        worked |= self.look_after_devices(now);
        for _ in 0..AT_ONCE {
            let Some(message) = self.next.take().or_else(|| self.inbox.messages.try_recv().ok()) else {
                break;
            };
            if matches!(message, Message::Stop) {
                return None;
            }
            self.take_in(now, message);
            worked = true;
        }
        // After the messages, which happened before: the scheduler's time does not go back.
        worked |= self.finish_empty(now);
        if !worked {
            return Some(false);
        }
        // Requests among messages that still wait may belong into the same batch.
        if self.inbox.messages.is_empty() {
            self.scheduler.settle(now, &mut self.actions);
        } else {
            self.scheduler.settle_due(now, &mut self.actions);
        }
        self.carry_out(now, now);
        self.settled.drain(..).for_each(|settled| settled());
        self.forget_removed();
        self.publish_needs();
        Some(true)
    }

    /// Does what was due since the last turn at the time when it was due, as long as it is late by no more than the
    /// grace, and before anything is taken in that happened later. A window can be a microsecond wide, and to give up its
    /// requests because the operating system woke the thread after it would help nobody.
    fn do_what_was_due(&mut self, now: Time) -> bool {
        let mut worked = false;
        while self.timer <= now {
            let at = forgiven(self.timer.max(self.last), now, GRACE);
            self.last = at;
            self.scheduler.take_in(at, Event::Timer, &mut self.actions);
            self.scheduler.settle_due(at, &mut self.actions);
            self.carry_out(now, at);
            worked = true;
            // A scheduler that asks for a time that has passed is asked again when everything has been taken in.
            if self.timer <= at {
                break;
            }
        }
        self.last = now;
        worked
    }

    /// Looks for devices that should have finished by now.
    fn look_after_devices(&mut self, now: Time) -> bool {
        let mut worked = false;
        while let Some(&Reverse((at, gpu))) = self.looks.peek()
            && at <= now
        {
            self.looks.pop();
            let again = self.dispatcher.look_after(now, gpu);
            self.looks.extend(again.map(|at| Reverse((at, gpu))));
            worked = true;
        }
        worked
    }

    /// Frees the devices that were to run a batch of which nothing was left.
    fn finish_empty(&mut self, now: Time) -> bool {
        let worked = !self.empty.is_empty();
        for (gpu, batch) in self.empty.drain(..) {
            self.scheduler.take_in(now, Event::BatchFinished { gpu, batch }, &mut self.actions);
        }
        worked
    }

    fn take_in(&mut self, now: Time, message: Message) {
        let EventLoop { scheduler, dispatcher, actions, .. } = self;
        match message {
            Message::Event(at, event) => {
                match &event {
                    Event::GpuJoined { class, .. } => self.classes = self.classes.max(class.0 + 1),
                    Event::ModelRemoved { model } => self.removed.push(*model),
                    _ => {}
                }
                // It happened before it was sent, by a clock that may have been read after this turn's.
                scheduler.take_in(at.min(now), event, actions);
            }
            Message::Leave { at, gpu, settled } => {
                scheduler.take_in(at.min(now), Event::GpuLeft { gpu }, actions);
                self.settled.push(settled);
            }
            Message::Fail { at, gpus } => {
                for gpu in gpus {
                    let again = |request: &Request| dispatcher.lost(request);
                    scheduler.take_in_failure(at.min(now), gpu, again, actions);
                }
            }
            Message::Stop => {}
        }
    }

    /// Carries out what was decided `at` that time.
    fn carry_out(&mut self, now: Time, at: Time) {
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.list() {
            match action {
                Action::Start(start) => {
                    if let Some((metrics, clock)) = &self.lag {
                        metrics.scheduling_lag(clock.now().since(at));
                    }
                    match self.dispatcher.start(now, start, actions.requests(start)) {
                        Ok(look_at) => self.looks.extend(look_at.map(|at| Reverse((at, start.gpu)))),
                        Err(Empty) => self.empty.push((start.gpu, start.batch)),
                    }
                }
                &Action::Answer { model, request, outcome } => {
                    self.dispatcher.refuse(now, model, request, outcome);
                }
                &Action::ArmTimer { at } => self.timer = at,
            }
        }
        actions.clear();
        self.actions = actions;
    }

    /// Frees the numbers of models whose last actions have been carried out.
    fn forget_removed(&mut self) {
        if self.removed.is_empty() {
            return;
        }
        let mut in_removal = self.inbox.shared.in_removal.lock().unwrap_or_else(PoisonError::into_inner);
        for model in self.removed.drain(..) {
            in_removal.remove(&model);
        }
    }

    /// Lets other threads know how many devices are needed.
    fn publish_needs(&self) {
        // Somebody who reads them at this moment sees the next ones a turn later.
        let Ok(mut needs) = self.inbox.shared.needs.try_lock() else { return };
        needs.resize(usize::from(self.classes), Need::default());
        for (class, need) in (0..).map(ClassId).zip(needs.iter_mut()) {
            *need = self.scheduler.need(class);
        }
    }
}
