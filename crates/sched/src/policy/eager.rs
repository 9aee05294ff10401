//! Work-conserving dispatch.

use std::marker::PhantomData;

use downbeat_profile::Span;

use super::{DropRule, GpuOrder, Need, Policy, Pressure, Stance};
use crate::Release;

/// Work-conserving dispatch: whenever a device is idle, it takes the most urgent candidate at once.
///
/// The rule that most serving systems follow in some form; here with the same batches, drop rules and device orders as
/// the others, so that nothing but the waiting differs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Eager<D, O>(PhantomData<(D, O)>);

impl<D, O> Eager<D, O> {
    /// The rule; it has no settings.
    pub fn new() -> Self {
        Eager(PhantomData)
    }
}

impl<D: DropRule, O: GpuOrder> Policy for Eager<D, O> {
    type Drop = D;
    type Order = O;

    type Guard = ();

    fn guard(&self, _: &Pressure) {}

    fn early(&self, _stance: Stance) -> Release {
        Release::Eager
    }

    fn head_start(&self, (): &(), _: Span, _: Span, _: Need) -> Span {
        Span::MAX
    }
}
