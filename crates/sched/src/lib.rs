//! Downbeat's scheduler: a pure state machine, `(state, now, event) -> actions`.
//!
//! It decides, centrally, which requests form a batch, when the batch starts and on which device, by deadlines. Inside,
//! it is split as Symphony's is: each model keeps its queue and offers the batch it would run next, a
//! [`Candidate`]; one matchmaker decides from the candidates alone which model gets which device.
//!
//! A candidate of size b whose earliest deadline is d is best sent in the window from `frontrun` = d - l(b+1) to
//! `latest` = d - l(b): before it, one more request could still join for free; after it, the head misses. So batches
//! are as large as deadlines allow, and a device is left idle on purpose while no window is open. When a window opens
//! is a matter of the [`Rule`].
//!
//! A request is one row of a batch or several ([`Request::rows`]), and is never split. Sizes, rates and needs count
//! rows; limits of queues and lost requests count requests.
//!
//! ```
//! use downbeat_sched::*;
//!
//! let mut scheduler = Scheduler::new(Rule::DEFERRED, Delays::default());
//! let mut out = Actions::new();
//! let profile = LatencyProfile::linear(1.0, 5.0, 32).unwrap();
//! let spec = ModelSpec::new([(ClassId(0), profile)]);
//! scheduler.handle(Time::ZERO, Event::ModelAdded { model: ModelId(0), spec }, &mut out);
//! scheduler.handle(Time::ZERO, Event::GpuJoined { gpu: GpuId(0), class: ClassId(0) }, &mut out);
//!
//! // A request due in 12 ms: a second one could join it until 12 - l(2) = 5 ms, so the scheduler waits for that.
//! let request = Request {
//!     id: RequestId(0),
//!     model: ModelId(0),
//!     deadline: Time::ZERO + Span::from_millis(12),
//!     priority: Priority::default(),
//!     rows: 1,
//! };
//! scheduler.handle(Time::ZERO, Event::Arrived(request), &mut out);
//! assert!(matches!(out.list(), [Action::ArmTimer { .. }]));
//!
//! out.clear();
//! let five_ms = Time::ZERO + Span::from_millis(5);
//! scheduler.handle(five_ms, Event::Timer, &mut out);
//! let Action::Start(start) = &out.list()[0] else { panic!() };
//! assert_eq!(out.requests(start), [RequestId(0)]);
//! assert_eq!(start.finish_at, Time::ZERO + Span::from_millis(11));
//! ```

mod candidate;
mod class_set;
mod deployment;
mod event;
mod fleet;
mod heap;
mod id_set;
mod idle_gpus;
mod lane;
mod ledger;
mod levels;
mod margin;
mod matchmaker;
mod model;
mod need;
mod occupancy;
mod pool;
mod portfolio;
mod pressure;
mod queue;
mod rate;
mod rule;
mod scheduler;
mod shard;
mod time;
mod traffic;

pub use candidate::Candidate;
pub use class_set::ClassSet;
pub use downbeat_profile::{Beyond, LatencyProfile, Span};
pub use event::{
    Action, Actions, BatchId, ClassId, Delays, Event, GpuId, ModelId, ModelSpec, Outcome, Priority, Release,
    Request, RequestId, Start,
};
pub use fleet::Sent;
pub use levels::HigherNeeds;
pub use matchmaker::{Grant, Matchmaker};
pub use model::Offer;
pub use need::Need;
pub use portfolio::{ALTERNATIVES, LossCounts, PortfolioScheduler, RuleSelector};
pub use pressure::{Outlook, Pressure, Room};
pub use rule::{DropRule, GpuOrder, Guard, HeadStart, Rule};
pub use scheduler::{CLASS_LIMIT, ID_LIMIT, Scheduler};
pub use shard::{Moving, Shard, Taken};
pub use time::Time;
pub use traffic::Traffic;
