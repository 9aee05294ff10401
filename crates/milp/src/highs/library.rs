//! Where the library of HiGHS is.

#[cfg(test)]
mod tests;

use downbeat_library::Library;

/// The environment variable that names the library.
pub const LIBRARY_VARIABLE: &str = "HIGHS_DYLIB_PATH";

/// HiGHS, where `make setup-solver` puts it.
pub(crate) const LIBRARY: Library =
    Library { name: "highs", variable: LIBRARY_VARIABLE, setup_directory: ".tools/highs" };
