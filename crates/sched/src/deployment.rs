//! A model on one class of devices: its profile there, and what was learned about it.

use downbeat_profile::LatencyProfile;

use crate::margin::Margin;
use crate::policy::{DropRule, Need, Traffic};
use crate::rate::ArrivalRate;
use crate::{ClassId, Delays, Time};

/// log2 of the time in nanoseconds for which a plan holds: about 8 ms. Rates are means over a second, so that planning
/// for every request would find the same again and again...
const PLAN_BITS: u32 = 23;

/// ...once that second holds so many rows that a few more change little.
const PLAN_ROWS: u64 = 256;

/// How much of what a model starts counts when its traffic is divided among classes.
const SHARE_WEIGHT: f64 = 1.0 / 16.0;

/// A model on one class of devices.
#[derive(Clone, Debug)]
pub(crate) struct Deployment {
    pub(crate) class: ClassId,
    pub(crate) profile: LatencyProfile,
    pub(crate) margin: Margin,
    /// The part of the model's batches that lately ran here.
    share: f64,
    /// The batch size, in rows, for whose sake heads are given up.
    pub(crate) target: u32,
    /// The devices of this class that the model's traffic needs.
    pub(crate) need: Need,
    /// In which period the two were planned.
    planned: Option<u64>,
}

impl Deployment {
    pub(crate) fn new(class: ClassId, profile: LatencyProfile) -> Deployment {
        Deployment {
            class,
            profile,
            margin: Margin::default(),
            share: 1.0,
            target: 1,
            need: Need::default(),
            planned: None,
        }
    }

    /// Plans by the traffic, if the last plan is too old.
    pub(crate) fn plan<D: DropRule>(
        &mut self,
        now: Time,
        arrivals: &mut ArrivalRate,
        delays: &Delays,
        headroom: impl FnOnce(ClassId) -> f64,
    ) {
        let period = Some(now.as_nanos() >> PLAN_BITS);
        if period == self.planned && arrivals.lately() >= PLAN_ROWS {
            return;
        }
        self.planned = period;
        let traffic = Traffic {
            profile: &self.profile,
            delays,
            gap: arrivals.gap(now),
            rows: arrivals.mean_rows(),
            allowance: arrivals.allowance(),
            dispersion: arrivals.dispersion(),
            headroom: headroom(self.class),
        };
        self.target = D::target(&traffic);
        self.need = traffic.need().part(self.share);
    }

    /// Divides the model's traffic anew after a batch was started here, or on another class.
    pub(crate) fn divide(&mut self, started_here: bool) {
        self.share += SHARE_WEIGHT * (f64::from(u8::from(started_here)) - self.share);
    }

    /// Starts dividing with an equal part.
    pub(crate) fn set_share(&mut self, share: f64) {
        self.share = share;
    }
}
