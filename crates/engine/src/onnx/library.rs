//! Where the library of ONNX Runtime is.

use std::path::{Path, PathBuf};

use downbeat_library::{Library, NotThere};

use crate::EngineError;

/// The environment variable that names the library; other programs that use ONNX Runtime know it too.
pub const LIBRARY_VARIABLE: &str = "ORT_DYLIB_PATH";

/// ONNX Runtime, where `make setup-runtime` puts it.
const LIBRARY: Library =
    Library { name: "onnxruntime", variable: LIBRARY_VARIABLE, setup_directory: ".tools/onnxruntime" };

/// The library that this setting names, or the first that there is.
pub(super) fn find(setting: Option<&Path>) -> Result<PathBuf, EngineError> {
    told(LIBRARY.find(setting))
}

/// What was found, or what is to be done.
fn told(found: Result<Option<PathBuf>, NotThere>) -> Result<PathBuf, EngineError> {
    let file = LIBRARY.file_name();
    match found {
        Ok(Some(path)) => Ok(path),
        Ok(None) => Err(EngineError(format!(
            "no ONNX Runtime library found; run `make setup-runtime`, or name {file} of an installed onnxruntime in {LIBRARY_VARIABLE}"
        ))),
        Err(NotThere { path, who }) => Err(EngineError(format!(
            "no ONNX Runtime library at {}, which {who}; name the file {file} itself",
            path.display()
        ))),
    }
}

#[cfg(test)]
mod tests;
