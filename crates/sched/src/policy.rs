//! Policies: when a window opens, which requests are given up, which idle device is taken.
//!
//! A policy is a type, so that the choices are compiled into the scheduler instead of being looked up per event.

use std::fmt::Debug;
use std::marker::PhantomData;

use downbeat_profile::{LatencyProfile, Span};

use crate::{Delays, Release, Time};

/// A scheduling policy: a rule for opening windows, with a [`DropRule`] and a [`GpuOrder`].
pub trait Policy: Clone + Debug {
    /// Which requests are given up for others.
    type Drop: DropRule;
    /// Which idle device is taken first.
    type Order: GpuOrder;
    /// The reason given for a batch that starts before its own window opened.
    const EARLY: Release;

    /// How long before its frontrun a candidate may start, when the candidates of all models that wait for this class
    /// of device would take `backlog` on one device and there are `gpus` devices.
    fn head_start(&self, backlog: Span, gpus: u32) -> Span;
}

/// Symphony's rule: a batch waits until one more request could no longer join it for free.
///
/// Lequn Chen, "Symphony: Optimized DNN Model Serving using Deferred Batch Scheduling", arXiv 2308.07470.
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
    const EARLY: Release = Release::Window;

    fn head_start(&self, _backlog: Span, _gpus: u32) -> Span {
        Span::ZERO
    }
}

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
    const EARLY: Release = Release::Guard;

    fn head_start(&self, backlog: Span, gpus: u32) -> Span {
        Span::from_nanos((self.k * backlog.as_nanos() as f64 / f64::from(gpus.max(1))) as u64)
    }
}

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
    const EARLY: Release = Release::Eager;

    fn head_start(&self, _backlog: Span, _gpus: u32) -> Span {
        Span::MAX
    }
}

/// Which requests are given up so that those behind them can run in a larger batch.
pub trait DropRule: Clone + Debug {
    /// The batch size for whose sake the heads of the queue are given up, at least 1.
    ///
    /// `gap` is the mean time between arrivals, `allowance` the time from arrival to deadline.
    fn target(profile: &LatencyProfile, delays: &Delays, gap: Span, allowance: Span) -> u32;
}

/// Only requests that could not finish even alone are given up.
#[derive(Clone, Copy, Debug, Default)]
pub struct TimeoutDrop;

impl DropRule for TimeoutDrop {
    fn target(_: &LatencyProfile, _: &Delays, _: Span, _: Span) -> u32 {
        1
    }
}

/// Heads that stand in the way of a batch of the size the load can sustain are given up.
///
/// That size is the largest b with l(b) + b/r <= s: a batch must both be gathered and run inside the objective. Holds
/// the throughput when there is more load than devices, where [`TimeoutDrop`] spends every batch on requests that are
/// nearly dead.
#[derive(Clone, Copy, Debug, Default)]
pub struct WindowDrop;

impl DropRule for WindowDrop {
    fn target(profile: &LatencyProfile, delays: &Delays, gap: Span, allowance: Span) -> u32 {
        profile.largest_within(allowance - delays.control, delays.data + gap).max(1)
    }
}

/// Which of several idle devices is taken.
pub trait GpuOrder: Clone + Debug {
    /// What idle devices are ordered by, before their ids.
    type Key: Ord + Copy + Debug;

    /// The key of a device that became idle at `free_at`.
    fn key(free_at: Time) -> Self::Key;
}

/// The device with the smallest id: load gathers on few devices, and what is too much is whole idle ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct SmallestId;

impl GpuOrder for SmallestId {
    type Key = ();

    fn key(_free_at: Time) {}
}

/// The device that has been idle for longest: load goes round, as in the public code of Symphony's authors.
#[derive(Clone, Copy, Debug, Default)]
pub struct EarliestFree;

impl GpuOrder for EarliestFree {
    type Key = Time;

    fn key(free_at: Time) -> Time {
        free_at
    }
}
