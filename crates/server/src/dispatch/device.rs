//! Devices and what they were sent.

use std::collections::VecDeque;
use std::sync::Arc;

use downbeat_profile::Span;
use downbeat_sched::{BatchId, ClassId, RequestId, Time};

use super::job::Sent;
use crate::metrics::DeviceMeter;

/// A device as the dispatcher sees it.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) name: Arc<str>,
    pub(super) class: ClassId,
    pub(super) meter: Arc<DeviceMeter>,
    /// In the order in which they run.
    sent: VecDeque<Sent>,
    /// When the batch that runs is looked for, if it has not finished by then.
    pub(super) expected_at: Time,
    /// Whether it takes more batches.
    pub(super) takes_work: bool,
    /// How long it was busy since that was last asked.
    pub(super) busy: Span,
}

/// A batch is not late before this much of its time has passed once more: below it lies the noise of every device.
const LATE_PART: u64 = 4;

impl Device {
    pub(super) fn new(name: Arc<str>, class: ClassId, meter: Arc<DeviceMeter>) -> Device {
        Device {
            name,
            class,
            meter,
            sent: VecDeque::new(),
            expected_at: Time::NEVER,
            takes_work: true,
            busy: Span::ZERO,
        }
    }

    pub(super) fn send(&mut self, sent: Sent) {
        self.sent.push_back(sent);
        self.expect();
    }

    /// Strikes off a batch; `None` where the device was not sent it.
    pub(super) fn finish(&mut self, batch: BatchId) -> Option<Sent> {
        let at = self.sent.iter().position(|sent| sent.batch == batch)?;
        let finished = self.sent.remove(at);
        self.expect();
        finished
    }

    /// The batch that runs is not done when it should be: when to expect the device to be free now.
    pub(super) fn overdue(&mut self, now: Time) -> Option<Time> {
        let running = self.sent.front().filter(|_| self.expected_at <= now)?;
        let more = patience(now.since(running.start_at));
        self.expected_at = now + more;
        let behind = self.sent.iter().skip(1).map(|sent| sent.finish_at.since(sent.start_at));
        Some(behind.fold(now + more, |at, span| at + span))
    }

    /// The requests that it was sent and has not answered.
    pub(super) fn requests(&self) -> impl Iterator<Item = &RequestId> {
        self.sent.iter().flat_map(|sent| &sent.requests)
    }

    pub(super) fn into_sent(self) -> impl Iterator<Item = Sent> {
        self.sent.into_iter()
    }

    fn expect(&mut self) {
        let patient = |sent: &Sent| sent.finish_at + patience(sent.finish_at.since(sent.start_at));
        self.expected_at = self.sent.front().map_or(Time::NEVER, patient);
    }
}

fn patience(span: Span) -> Span {
    Span::from_nanos(span.as_nanos() / LATE_PART + 1)
}
