//! The report as one HTML page: opens from disk, needs no network, prints, and follows the reader's colours.
//!
//! The charts are written here, with `maud`, and not by a plotting crate. `plotters` would be the one; its SVG
//! backend writes colours into every element (a dark page keeps black text), has no hover titles, rounds to whole
//! pixels (a 0.3 ms batch on a 400 ms timeline disappears) and scales its text with the picture (unreadable on a
//! phone). Here a picture holds shapes only, in a coordinate system that stretches with the page; every word is HTML
//! text around it, and colours are CSS variables. What remains to be written is small: an axis with ticks
//! (`scale`), lines in a frame (`lines`), bars (`bars`) and a timeline (`timeline`).
//!
//! The parts that know nothing of simulations (`page`, `lines`, `scale`, `format`) are public: other reports are drawn
//! with them, so that all look alike.
//!
//! Every string from a scenario passes through `maud`, which escapes it. The same report gives the same bytes.

mod bars;
mod cast;
mod distributions;
pub mod format;
mod goodput;
mod latency;
pub mod lines;
mod load;
mod replay;
mod run;
pub mod scale;
mod table;
mod timeline;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

pub use downbeat_page as page;
pub use goodput::goodput_page;
pub use replay::replay_page;
pub use run::run_page;

/// How the numbers of a simulation are meant.
const FOOT: &str = "Simulated by Downbeat. A request is bad when it finishes after its SLO, is dropped, or is still \
                    unanswered when the run ends; requests of the warm-up are not counted. Goodput is the highest rate at \
                    which every model keeps 99 % of its requests in SLO.";

/// The share of bad requests from which on a model counts as missing its SLO.
const BAD_RATE_LIMIT: f64 = 0.01;
