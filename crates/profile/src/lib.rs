//! Latency profiles: l(b), how long a device takes for a batch of b.
//!
//! One latency model serves the whole of Downbeat: the scheduler predicts with it, the simulator executes by it, the
//! planner counts throughput with it. What the three agree on is decided here, once:
//!
//! - **A profile is a table.** [`LatencyProfile`] holds l(b) for every b up to its largest batch, in nanoseconds
//!   ([`Span`]). It comes from measured points, from raw samples or from alpha and beta; afterwards nobody can tell,
//!   and nobody computes with floating point.
//! - **A profile never falls.** A larger batch that was measured as faster is noise, so the table is forced monotone.
//!   The question the scheduler asks most, "what is the largest batch that still finishes in time?", is then a binary
//!   search ([`LatencyProfile::largest_within`]).
//! - **A line is an approximation.** The literature writes l(b) = alpha * b + beta. [`Fit`] gives that line and how
//!   far it is off; where it is far off, the table still holds.
//! - **A latency belongs to a class of devices.** The same model on a slice of a GPU is a different profile.
//!   [`DeviceClass`] names such a class: `h200/3g`.
//! - **A profile file is checked whole or refused.** [`ProfileFile`] reads measurements from CSV and reports the first
//!   problem with its file, line and column; what it writes, it reads again. A latency of zero that slipped through would look like an infinitely fast
//!   GPU to the planner.
//!
//! Nothing here measures, and nothing but [`ProfileFile::read`] opens a file.
//!
//! # Example
//!
//! ```
//! use downbeat_profile::{Beyond, Fit, ProfileFile, Span};
//!
//! let text = "\
//! ## One class, three batch sizes. Without a device column the file's name is the device.
//! model,slice,batch,latency_ms
//! resnet50,3g,1,1.0
//! resnet50,3g,4,1.6
//! resnet50,3g,16,4.0
//! ";
//! let file = ProfileFile::parse(text.as_bytes(), "profiles/h200.csv")?;
//! assert_eq!(file.classes().next().map(ToString::to_string), Some("h200/3g".to_owned()));
//!
//! let profile = file.profile("resnet50", "3g", Some(32), Beyond::Extrapolate)?;
//! assert_eq!(profile.latency(8), Span::from_micros(2_400));
//! assert_eq!(profile.latency(32), Span::from_micros(7_200));
//! assert_eq!(profile.largest_within(Span::from_millis(5), Span::ZERO), 21);
//!
//! let fit = Fit::of(file.points("resnet50", "h200/3g").unwrap_or_default())?;
//! assert!((fit.alpha_ms - 0.2).abs() < 0.01 && fit.max_relative_error < 0.05);
//!
//! let typo = file.profile("resnet5", "3g", None, Beyond::Refuse).unwrap_err();
//! assert_eq!(typo.to_string(), r#"profiles/h200.csv has no model "resnet5"; did you mean resnet50?"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod class;
mod file;
mod fit;
mod latency;
mod span;

pub use class::{DeviceClass, DeviceClassError};
pub use file::{
    Column, LARGEST_FILE_BYTES, LookupError, Measurement, Near, Problem, ProfileFile, ProfileFileError,
    ProfileRow, Wanted,
};
pub use fit::Fit;
pub use latency::{Beyond, LARGEST_BATCH, LatencyProfile, ProfileError, medians};
pub use span::Span;
