//! Memory, asked for before it is taken.

use crate::Failure;

/// Whoever decodes what a stranger sent asks here for so many bytes more before taking them. Where there is no room,
/// the failure is what the client is told.
pub type Room<'a> = dyn FnMut(u64) -> Result<(), Failure> + 'a;
