//! What is counted of one device.

use downbeat_profile::{DeviceClass, Span};
use prometheus::core::GenericGauge;
use prometheus::{Counter, core::AtomicI64};

use super::DeviceFamilies;

/// What is counted of one device.
#[derive(Debug)]
pub(crate) struct DeviceMeter {
    up: GenericGauge<AtomicI64>,
    busy: Counter,
    present: Counter,
}

impl DeviceMeter {
    pub(super) fn new(families: &DeviceFamilies, name: &str, class: &DeviceClass, rank: u32) -> DeviceMeter {
        let rank = rank.to_string();
        let labels = [name, class.as_str(), rank.as_str()];
        DeviceMeter {
            up: families.up.with_label_values(&labels),
            busy: families.busy.with_label_values(&labels),
            present: families.present.with_label_values(&labels),
        }
    }

    pub(crate) fn busy(&self, span: Span) {
        self.busy.inc_by(span.as_secs_f64());
    }

    pub(crate) fn present(&self, span: Span) {
        self.present.inc_by(span.as_secs_f64());
    }

    pub(crate) fn up(&self, up: bool) {
        self.up.set(up.into());
    }
}
