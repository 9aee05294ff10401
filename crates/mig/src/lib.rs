//! MIG geometry: which slices a GPU can be cut into, and where they may lie.
//!
//! A GPU's memory is a row of units. A slice ([`SliceProfile`]) covers some neighbouring ones, from one of the starts
//! that its profile allows; slices are disjoint, their compute slices sum to at most the GPU's, and a profile may have
//! a largest count. That rule ([`GpuModel::allows`]) and the table of profiles are all there is: legal states,
//! partitions and multisets are enumerated from them ([`Partitions`]), never listed.
//!
//! The table is data (`data/mig_geometry.csv`, [`Catalogue::builtin`]); users add their own GPUs in files of the same
//! columns. Each row says whether its placement was captured from a real GPU or inferred from the family
//! ([`Evidence`]).
//!
//! ```
//! use downbeat_mig::{Catalogue, Partitions};
//!
//! let catalogue = Catalogue::builtin();
//! let h200 = catalogue.find("h200")?;
//! let partitions = Partitions::of(h200, &h200.plain());
//! assert_eq!(partitions.maximal_multisets().len(), 12);
//! assert!(catalogue.find("h20").is_ok(), "what begins only one name is that name");
//! # Ok::<(), downbeat_mig::UnknownGpu>(())
//! ```

mod catalogue;
mod model;
mod partitions;
mod picture;

pub use catalogue::{Catalogue, GeometryError, UnknownGpu};
pub use model::{Evidence, GpuModel, Placed, SliceProfile};
pub use partitions::{Multiset, Partitions};
pub use picture::{Labelled, picture};
