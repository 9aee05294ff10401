//! The one timer a policy has, shared by all it waits for.

use downbeat_sched::{Action, Time};

use crate::Outbox;

/// The earliest time at which the policy wants to look around.
///
/// It only ever moves earlier until it rings. So it may ring with nothing to do, which costs one look, and in return
/// nothing has to be disarmed when what was waited for has happened otherwise.
#[derive(Debug)]
pub(super) struct Alarm {
    armed: Time,
}

impl Alarm {
    pub(super) fn new() -> Alarm {
        Alarm { armed: Time::NEVER }
    }

    /// Makes sure that the timer rings at `at` or before.
    pub(super) fn by(&mut self, at: Time, out: &mut Outbox) {
        if at < self.armed {
            self.armed = at;
            out.actions.push(Action::ArmTimer { at });
        }
    }

    /// Takes note that the timer rang: whoever still waits must ask again.
    pub(super) fn rang(&mut self) {
        self.armed = Time::NEVER;
    }
}
