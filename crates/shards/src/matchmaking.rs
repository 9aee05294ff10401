//! The thread of a matchmaker.

use std::collections::VecDeque;
use std::sync::mpsc::Receiver;

use downbeat_sched::{BatchId, CLASS_LIMIT, ClassId, GpuId, Grant, Matchmaker, ModelId, Rule, Time};

use crate::bell::Bell;
use crate::message::{Dirty, Order, Report};
use crate::posting::{Cells, Posting};
use crate::pressure_table::PressureTable;
use crate::rhythm::Rhythm;
use crate::ring::{Consumer, Producer};
use crate::sync::Arc;

/// What a matchmaker is told by others than its shards.
pub(crate) enum Command {
    Join {
        gpu: GpuId,
        class: ClassId,
    },
    /// Say when the device has been sent its last batch.
    Leave {
        gpu: GpuId,
        settled: Box<dyn FnOnce() + Send>,
    },
    Fail {
        gpus: Vec<GpuId>,
    },
    Late {
        gpu: GpuId,
        free_at: Time,
    },
    Follow {
        class: ClassId,
        rule: Rule,
    },
    Stop,
}

/// What is taken in one turn from each source, so that what comes from one does not keep the others waiting.
const AT_ONCE: usize = 256;

/// Of reports more: a shard that shares the thread and finds no room for another could not go on.
const REPORTS_AT_ONCE: usize = 2_048;

/// Batches that start early in one turn. Each costs a shard as much as a full one, so that shards which are to take in
/// ten million requests a second must not be sent many; and a turn and its answer take tens of microseconds, so that a
/// few are more than the frontends of a server ask for.
const EARLY_AT_ONCE: usize = 4;

/// What connects the matchmaker to one shard.
pub(crate) struct Link {
    pub(crate) orders: Producer<Order>,
    pub(crate) reports: Consumer<Report>,
    pub(crate) dirty: Consumer<Dirty>,
    pub(crate) bell: Arc<Bell>,
    /// Orders for which there was no room. At most two for each device.
    pub(crate) held: VecDeque<Order>,
    /// Whether the shard must be woken.
    pub(crate) news: bool,
}

/// The thread of a matchmaker.
pub(crate) struct Matchmaking {
    matchmaker: Matchmaker,
    links: Vec<Link>,
    cells: Arc<Cells>,
    table: Arc<PressureTable>,
    commands: Receiver<Command>,
    /// By model: how often it was granted a device. What it posts before it has seen the last grant is of no interest.
    granted: Vec<u32>,
    /// Grants of which no shard has said yet what came of them.
    unanswered: usize,
    /// By model: its shard.
    shards: Vec<u16>,
    posting: Posting,
    /// Devices that failed, and batches lost with them.
    lost: Vec<BatchId>,
    /// Devices that leave while a grant of them is under way, and who is to know when it is not.
    leaving: Vec<(GpuId, Box<dyn FnOnce() + Send>)>,
    /// Classes below this have had a device.
    classes: u16,
}

impl Matchmaking {
    pub(crate) fn new(
        matchmaker: Matchmaker,
        links: Vec<Link>,
        cells: Arc<Cells>,
        table: Arc<PressureTable>,
        commands: Receiver<Command>,
    ) -> Self {
        let models = cells.len() as usize;
        Matchmaking {
            matchmaker,
            links,
            cells,
            table,
            commands,
            granted: vec![0; models],
            unanswered: 0,
            shards: vec![0; models],
            posting: Posting::default(),
            lost: Vec::new(),
            leaving: Vec::new(),
            classes: 0,
        }
    }

    /// Runs until it is told to stop.
    pub(crate) fn run(mut self, mut rhythm: Rhythm) {
        loop {
            let (now, due) = rhythm.now_and_due(|before| self.wake_at(before));
            if let Some(due) = due {
                self.grant(due);
            }
            let Some(worked) = self.turn(now) else { return };
            rhythm.pause(worked, || self.wake_at(now));
        }
    }

    /// When there will be something to do even if nobody rings.
    pub(crate) fn wake_at(&mut self, now: Time) -> Time {
        self.matchmaker.wake_at(now)
    }

    /// Does what there is to do; says whether there was anything, `None` to stop.
    pub(crate) fn turn(&mut self, now: Time) -> Option<bool> {
        let mut worked = false;
        for link in 0..self.links.len() {
            for _ in 0..REPORTS_AT_ONCE {
                let Some(report) = self.links[link].reports.pop() else { break };
                self.report(link, report);
                worked = true;
            }
            for _ in 0..AT_ONCE {
                let Some(Dirty(model)) = self.links[link].dirty.pop() else { break };
                self.read(model);
                worked = true;
            }
        }
        for _ in 0..AT_ONCE {
            let Ok(command) = self.commands.try_recv() else { break };
            if matches!(command, Command::Stop) {
                return None;
            }
            self.command(now, command);
            worked = true;
        }
        worked |= self.grant(now);
        // A turn that found nothing to do has read all that was posted, and is not late; and with no grant unanswered,
        // neither are the shards. Otherwise a burst of requests would start one by one before it is read as a whole.
        if !worked && self.unanswered == 0 {
            worked |= self.grant_early(now);
        }
        if worked {
            self.publish();
            self.say_what_is_settled();
        }
        for link in &mut self.links {
            worked |= link.deliver();
        }
        Some(worked)
    }

    /// Gives away what can be.
    fn grant(&mut self, now: Time) -> bool {
        let mut worked = false;
        while let Some(grant) = self.matchmaker.grant(now) {
            self.send(&grant, now);
            worked = true;
        }
        worked
    }

    /// Gives away some of the devices that are spare.
    fn grant_early(&mut self, now: Time) -> bool {
        let mut worked = false;
        for _ in 0..EARLY_AT_ONCE {
            let Some(grant) = self.matchmaker.grant_early(now) else { break };
            self.send(&grant, now);
            worked = true;
        }
        worked
    }

    fn send(&mut self, grant: &Grant, now: Time) {
        let model = grant.model.0 as usize;
        self.granted[model] = self.granted[model].wrapping_add(1);
        self.unanswered += 1;
        self.links[usize::from(self.shards[model])].order(Order::Grant(*grant, now));
    }

    fn say_what_is_settled(&mut self) {
        let Matchmaking { matchmaker, leaving, .. } = self;
        for (_, settled) in leaving.extract_if(.., |(gpu, _)| !matchmaker.is_reserved(*gpu)) {
            settled();
        }
    }

    /// Reads the latest posting of a model.
    fn read(&mut self, model: ModelId) {
        let index = model.0 as usize;
        if !self.cells.of(model).read(&mut self.posting) {
            return;
        }
        let Posting { grants_seen, shard, gone, candidates, needs } = &self.posting;
        if *gone {
            return self.matchmaker.forget(model);
        }
        self.shards[index] = *shard;
        for &(class, need) in needs {
            self.matchmaker.set_need(model, class, need);
        }
        if *grants_seen == self.granted[index] {
            self.matchmaker.post(model, candidates);
        }
    }

    fn report(&mut self, link: usize, report: Report) {
        match report {
            Report::Sent { gpu, life, sent, finish_at } => {
                self.unanswered -= 1;
                if !self.matchmaker.sent(gpu, life, sent, finish_at) {
                    self.links[link].order(Order::Lost(sent.batch));
                }
            }
            Report::Declined { gpu, life } => {
                self.unanswered -= 1;
                self.matchmaker.declined(gpu, life);
            }
            Report::Finished { gpu, batch, at } => drop(self.matchmaker.finished(gpu, batch, at)),
        }
    }

    fn command(&mut self, now: Time, command: Command) {
        match command {
            Command::Join { gpu, class } => drop(self.matchmaker.join(gpu, class, now)),
            Command::Leave { gpu, settled } => {
                self.matchmaker.leave(gpu);
                self.leaving.push((gpu, settled));
            }
            Command::Late { gpu, free_at } => self.matchmaker.late(gpu, free_at, now),
            Command::Fail { gpus } => {
                let Matchmaking { matchmaker, lost, .. } = self;
                for gpu in gpus {
                    matchmaker.fail(gpu, |batch| lost.push(batch));
                }
                let shards = self.links.len() as u64;
                for batch in self.lost.drain(..) {
                    self.links[(batch.0 % shards) as usize].order(Order::Lost(batch));
                }
            }
            Command::Follow { class, rule } => self.matchmaker.follow(class, rule),
            Command::Stop => return,
        }
        if self.matchmaker.present() != self.table.present() {
            self.table.publish_present(self.matchmaker.present());
            self.links.iter_mut().for_each(|link| link.news = true);
        }
    }

    /// Lets the shards know how hard each class is pressed.
    fn publish(&mut self) {
        let present = (u64::BITS - self.matchmaker.present().bits().leading_zeros()).min(CLASS_LIMIT.into());
        // Also of those that have none any more: that some are needed is news to who scales.
        self.classes = self.classes.max(present as u16);
        for class in (0..self.classes).map(ClassId) {
            self.table.publish(class, &self.matchmaker.pressure(class));
        }
    }
}

impl Link {
    fn order(&mut self, order: Order) {
        self.news = true;
        if !self.held.is_empty() || !self.orders.push(order) {
            self.held.push_back(order);
        }
    }

    /// Sends what was held back, and wakes the shard if there is anything for it.
    fn deliver(&mut self) -> bool {
        let mut worked = false;
        while let Some(&order) = self.held.front() {
            if !self.orders.push(order) {
                break;
            }
            self.held.pop_front();
            worked = true;
        }
        if self.news {
            self.news = false;
            self.bell.ring();
        }
        worked
    }
}
