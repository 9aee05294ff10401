//! Latency profiles: l(b), how long a device takes for a batch of b.
//!
//! One latency model serves the whole of Downbeat: the scheduler predicts with it, the simulator executes by it, the
//! planner counts throughput with it.

mod class;
mod fit;
mod latency;
mod span;

pub use class::{DeviceClass, DeviceClassError};
pub use fit::Fit;
pub use latency::{Beyond, LARGEST_BATCH, LatencyProfile, ProfileError, medians};
pub use span::Span;
