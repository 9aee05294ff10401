//! Where the library of ONNX Runtime is.

use std::env;
use std::path::{Path, PathBuf};

use crate::EngineError;

/// The environment variable that names the library; other programs that use ONNX Runtime know it too.
pub const LIBRARY_VARIABLE: &str = "ORT_DYLIB_PATH";

/// Where `make setup-runtime` puts the library, below the root of the repository.
const SETUP_DIRECTORY: &str = ".tools/onnxruntime";

/// Where the library is looked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    /// What the user's settings say.
    pub(super) setting: Option<PathBuf>,
    /// What the environment says.
    pub(super) environment: Option<PathBuf>,
    /// Directories that may hold the library, or have it where set-up puts it. In order.
    pub(super) directories: Vec<PathBuf>,
}

impl Search {
    /// By this setting, then the environment, then beside the executable and where set-up put it: in the directory of
    /// the executable or any above it, or in the working directory.
    pub(super) fn of_process(setting: Option<&Path>) -> Search {
        let executable = env::current_exe().unwrap_or_default();
        let mut directories: Vec<PathBuf> = executable.ancestors().skip(1).map(Path::to_owned).collect();
        directories.extend(env::current_dir());
        Search {
            setting: setting.map(Path::to_owned),
            environment: env::var_os(LIBRARY_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from),
            directories,
        }
    }

    /// The first that there is. A library that was named must exist: falling back to another one would hide the mistake.
    pub(super) fn find(&self) -> Result<PathBuf, EngineError> {
        let named = [(&self.setting, "the settings name"), (&self.environment, "ORT_DYLIB_PATH names")];
        for (path, who) in named {
            match path {
                Some(path) if path.is_file() => return Ok(path.clone()),
                Some(path) => {
                    return Err(EngineError(format!(
                        "no ONNX Runtime library at {}, which {who}; name the file libonnxruntime.so itself",
                        path.display()
                    )));
                }
                None => {}
            }
        }
        let places = self.directories.iter().flat_map(|directory| {
            let name = library_name();
            [
                directory.join(name),
                directory.join("lib").join(name),
                directory.join(SETUP_DIRECTORY).join(name),
            ]
        });
        places.into_iter().find(|path| path.is_file()).ok_or_else(|| {
            EngineError(format!(
                "no ONNX Runtime library found; run `make setup-runtime`, or name {} of an installed onnxruntime in {LIBRARY_VARIABLE}",
                library_name()
            ))
        })
    }
}

fn library_name() -> &'static str {
    if cfg!(target_os = "macos") { "libonnxruntime.dylib" } else { "libonnxruntime.so" }
}

#[cfg(test)]
mod tests;
