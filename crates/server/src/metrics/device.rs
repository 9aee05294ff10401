//! What is counted of one device.

use std::sync::PoisonError;

use downbeat_profile::{DeviceClass, Span};
use prometheus::core::GenericGauge;
use prometheus::{Counter, core::AtomicI64};

use super::DeviceFamilies;

/// The values of label `start`.
const STARTS: [&str; 2] = ["due", "early"];

/// What is counted of one device.
#[derive(Debug)]
pub(crate) struct DeviceMeter {
    up: GenericGauge<AtomicI64>,
    /// By batches that were due, and by those that were started because the device was spare.
    busy: [Counter; 2],
    present: Counter,
}

impl DeviceFamilies {
    /// A device that comes back may do so under another rank. What was counted under the old one would stay there for
    /// ever, as a device that is down. Another device of the same name may be up, though: two workers on one host.
    fn forget_old_ranks(&self, name: &str, class: &DeviceClass, rank: &str) {
        let mut ranks = self.ranks.lock().unwrap_or_else(PoisonError::into_inner);
        let ranks = ranks.entry([name.to_owned(), class.to_string()]).or_default();
        ranks.retain(|old| {
            let labels = [name, class.as_str(), old];
            let stays = old == rank || self.up.with_label_values(&labels).get() > 0;
            if !stays {
                // They were made together; none is missing.
                let _ = self.up.remove_label_values(&labels);
                for start in STARTS {
                    let _ = self.busy.remove_label_values(&[name, class.as_str(), old, start]);
                }
                let _ = self.present.remove_label_values(&labels);
            }
            stays
        });
        ranks.insert(rank.to_owned());
    }
}

impl DeviceMeter {
    pub(super) fn new(families: &DeviceFamilies, name: &str, class: &DeviceClass, rank: u32) -> DeviceMeter {
        let rank = rank.to_string();
        families.forget_old_ranks(name, class, &rank);
        let labels = [name, class.as_str(), rank.as_str()];
        DeviceMeter {
            up: families.up.with_label_values(&labels),
            busy: STARTS.map(|start| families.busy.with_label_values(&[name, class.as_str(), &rank, start])),
            present: families.present.with_label_values(&labels),
        }
    }

    /// The device computed a batch for so long.
    pub(crate) fn busy(&self, span: Span, early: bool) {
        self.busy[usize::from(early)].inc_by(span.as_secs_f64());
    }

    pub(crate) fn present(&self, span: Span) {
        self.present.inc_by(span.as_secs_f64());
    }

    pub(crate) fn up(&self, up: bool) {
        self.up.set(up.into());
    }
}

#[cfg(test)]
mod tests;
