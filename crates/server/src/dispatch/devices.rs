//! Devices and what they were sent.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use downbeat_profile::Span;
use downbeat_sched::{BatchId, ClassId, GpuId, ModelId, RequestId, Time};

use super::instance::Instance;
use crate::metrics::DeviceMeter;

/// A batch that a device was sent.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) batch: BatchId,
    pub(super) instance: Arc<Instance>,
    pub(super) model: ModelId,
    pub(super) rows: u32,
    pub(super) requests: Vec<RequestId>,
    pub(super) start_at: Time,
    pub(super) finish_at: Time,
    /// Whether it was started because the device was spare.
    pub(super) early: bool,
}

/// All devices. Touched once or twice for each batch, never for a request alone.
#[derive(Debug, Default)]
pub(super) struct Devices {
    devices: Mutex<BTreeMap<GpuId, Device>>,
    /// How many there are of each class.
    classes: Mutex<BTreeMap<ClassId, usize>>,
}

/// A device as the dispatcher sees it.
#[derive(Debug)]
struct Device {
    name: Arc<str>,
    class: ClassId,
    meter: Arc<DeviceMeter>,
    /// In the order in which they run.
    sent: VecDeque<Sent>,
    /// When the batch that runs is looked for, if it has not finished by then.
    expected_at: Time,
    /// Whether it takes more batches.
    takes_work: bool,
    /// How long it was busy since that was last asked.
    busy: Span,
}

/// A batch that has finished, and where.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) sent: Sent,
    pub(super) device: Arc<str>,
    pub(super) class: ClassId,
}

/// A device that should have finished what it runs.
#[derive(Debug)]
pub(super) struct Overdue {
    /// When to expect it to be free now.
    pub(super) free_at: Time,
    /// When to look again.
    pub(super) look_at: Time,
    /// What it was sent and has not answered.
    pub(super) requests: Vec<(Arc<Instance>, Vec<RequestId>)>,
}

/// A batch is not late before this much of its time has passed once more: below it lies the noise of every device.
const LATE_PART: u64 = 4;

impl Devices {
    /// A device takes work; one that left for a while may still have something to do.
    pub(super) fn join(&self, gpu: GpuId, class: ClassId, name: Arc<str>, meter: Arc<DeviceMeter>) {
        let mut devices = self.lock();
        let device = devices.entry(gpu).or_insert_with(|| {
            *self.classes().entry(class).or_default() += 1;
            Device {
                name,
                class,
                meter,
                sent: VecDeque::new(),
                expected_at: Time::NEVER,
                takes_work: true,
                busy: Span::ZERO,
            }
        });
        device.takes_work = true;
    }

    pub(super) fn leave(&self, gpu: GpuId) {
        if let Some(device) = self.lock().get_mut(&gpu) {
            device.takes_work = false;
        }
    }

    pub(super) fn fail(&self, gpu: GpuId) {
        let Some(device) = self.lock().remove(&gpu) else { return };
        let mut classes = self.classes();
        if let Some(count) = classes.get_mut(&device.class) {
            *count -= 1;
            if *count == 0 {
                classes.remove(&device.class);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.classes().is_empty()
    }

    /// Whether there is a device of one of these classes.
    pub(super) fn has_any(&self, mut of: impl Iterator<Item = ClassId>) -> bool {
        let classes = self.classes();
        of.any(|class| classes.contains_key(&class))
    }

    /// Notes what a device is sent. Says when to look for it, should it not have finished; `None` where the device is
    /// gone.
    pub(super) fn send(&self, gpu: GpuId, sent: Sent) -> Option<Time> {
        let mut devices = self.lock();
        let device = devices.get_mut(&gpu)?;
        let look_at = expected_at(&sent);
        device.sent.push_back(sent);
        device.expect();
        Some(look_at)
    }

    /// Strikes off a batch; `None` where the device was not sent it.
    pub(super) fn finish(&self, gpu: GpuId, batch: BatchId, busy: Span) -> Option<Done> {
        let mut devices = self.lock();
        let device = devices.get_mut(&gpu)?;
        let at = device.sent.iter().position(|sent| sent.batch == batch)?;
        let sent = device.sent.remove(at)?;
        device.expect();
        device.meter.busy(busy, sent.early);
        device.busy += busy;
        Some(Done { sent, device: Arc::clone(&device.name), class: device.class })
    }

    /// Looks whether a device should have finished what it runs.
    pub(super) fn overdue(&self, gpu: GpuId, now: Time) -> Option<Overdue> {
        let mut devices = self.lock();
        let device = devices.get_mut(&gpu)?;
        let running = device.sent.front().filter(|_| device.expected_at <= now)?;
        let look_at = now + patience(now.since(running.start_at));
        device.expected_at = look_at;
        let behind = device.sent.iter().skip(1).map(|sent| sent.finish_at.since(sent.start_at));
        let free_at = behind.fold(look_at, |at, span| at + span);
        let requests = device.sent.iter().map(|sent| (Arc::clone(&sent.instance), sent.requests.clone()));
        Some(Overdue { free_at, look_at, requests: requests.collect() })
    }

    /// How long each device of a class that takes work was busy since the last time this was asked, in the order of
    /// rank.
    pub(super) fn take_busy(&self, class: ClassId) -> Vec<Span> {
        let mut devices = self.lock();
        let of_class = devices.values_mut().filter(|device| device.class == class && device.takes_work);
        of_class.map(|device| std::mem::take(&mut device.busy)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<GpuId, Device>> {
        self.devices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn classes(&self) -> MutexGuard<'_, BTreeMap<ClassId, usize>> {
        self.classes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Device {
    fn expect(&mut self) {
        self.expected_at = self.sent.front().map_or(Time::NEVER, expected_at);
    }
}

fn expected_at(sent: &Sent) -> Time {
    sent.finish_at + patience(sent.finish_at.since(sent.start_at))
}

fn patience(span: Span) -> Span {
    Span::from_nanos(span.as_nanos() / LATE_PART + 1)
}
