//! Downbeat's scheduler: a pure state machine, `(state, now, event) -> actions`.

mod event;
mod time;

pub use downbeat_profile::{LatencyProfile, Span};
pub use event::{
    Action, Actions, BatchId, ClassId, Delays, Event, GpuId, ModelId, ModelSpec, Outcome, Priority, Release,
    Request, RequestId, Start,
};
pub use time::Time;
