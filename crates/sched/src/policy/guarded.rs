//! Deferral with a guard of fixed strength.

use std::marker::PhantomData;

use downbeat_profile::Span;

use super::{DropRule, GpuOrder, Need, Policy, Pressure, Stance};
use crate::Release;

/// Deferral guarded by the backlog: windows open earlier by `k` times the work that waits per device.
///
/// With little waiting this is nearly Symphony's rule; under contention it turns into eager dispatch. Pure deferral
/// loses there, because a window of microseconds passes before a device is found.
#[derive(Clone, Copy, Debug)]
pub struct Guarded<D, O> {
    k: f64,
    rules: PhantomData<(D, O)>,
}

impl<D, O> Guarded<D, O> {
    /// The rule with the factor `k`; 0 is pure deferral. Negative values and NaN count as 0.
    pub fn new(k: f64) -> Self {
        Guarded { k: k.max(0.0), rules: PhantomData }
    }
}

impl<D: DropRule, O: GpuOrder> Policy for Guarded<D, O> {
    type Drop = D;
    type Order = O;

    /// The devices.
    type Guard = f64;

    fn guard(&self, pressure: &Pressure) -> f64 {
        f64::from(pressure.gpus.max(1))
    }

    fn early(&self, _stance: Stance) -> Release {
        Release::Guard
    }

    fn head_start(&self, gpus: &f64, backlog: Span, _: Span, _: Need) -> Span {
        let per_gpu = backlog.as_nanos() as f64 / gpus;
        Span::from_nanos((self.k * per_gpu) as u64)
    }
}
