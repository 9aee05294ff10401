//! Symphony's rule.

use std::marker::PhantomData;

use downbeat_profile::Span;

use super::{DropRule, GpuOrder, Need, Policy, Pressure, Stance};
use crate::Release;

/// Symphony's rule: a batch waits until one more request could no longer join it for free.
///
/// Lequn Chen et al., "Symphony: Optimized DNN Model Serving using Deferred Batch Scheduling", arXiv 2308.07470.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deferred<D, O>(PhantomData<(D, O)>);

impl<D, O> Deferred<D, O> {
    /// The rule; it has no settings.
    pub fn new() -> Self {
        Deferred(PhantomData)
    }
}

impl<D: DropRule, O: GpuOrder> Policy for Deferred<D, O> {
    type Drop = D;
    type Order = O;

    type Guard = ();

    fn guard(&self, _: &Pressure) {}

    fn early(&self, _stance: Stance) -> Release {
        Release::Window
    }

    fn head_start(&self, (): &(), _: Span, _: Span, _: Need) -> Span {
        Span::ZERO
    }
}
