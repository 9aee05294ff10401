//! Where the library of HiGHS is.

#[cfg(test)]
mod tests;

use std::env;
use std::path::{Path, PathBuf};

use crate::MilpError;

/// The environment variable that names the library.
pub const LIBRARY_VARIABLE: &str = "HIGHS_DYLIB_PATH";

/// Where `make setup-solver` puts the library, below the root of the repository.
const SETUP_DIRECTORY: &str = ".tools/highs";

/// Where the library is looked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Search {
    /// What the user's settings say.
    setting: Option<PathBuf>,
    /// What the environment says.
    environment: Option<PathBuf>,
    /// Directories that may hold the library, or have it where set-up puts it. In order.
    directories: Vec<PathBuf>,
}

impl Search {
    /// By this setting, then the environment, then beside the executable and where set-up put it: in the directory of the
    /// executable or any above it, or in the working directory.
    pub(crate) fn of_process(setting: Option<&Path>) -> Search {
        let executable = env::current_exe().unwrap_or_default();
        let mut directories: Vec<PathBuf> = executable.ancestors().skip(1).map(Path::to_owned).collect();
        directories.extend(env::current_dir());
        Search {
            setting: setting.map(Path::to_owned),
            environment: env::var_os(LIBRARY_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from),
            directories,
        }
    }

    /// The first that there is; `None` where there is none and none was named. A library that was named must exist: falling back
    /// would hide the mistake.
    pub(crate) fn find(&self) -> Result<Option<PathBuf>, MilpError> {
        let named = [(&self.setting, "the settings name"), (&self.environment, "HIGHS_DYLIB_PATH names")];
        for (path, who) in named {
            match path {
                Some(path) if path.is_file() => return Ok(Some(path.clone())),
                Some(path) => {
                    return Err(MilpError::Library(format!("no library at {}, which {who}", path.display())));
                }
                None => {}
            }
        }
        let name = if cfg!(target_os = "macos") { "libhighs.dylib" } else { "libhighs.so" };
        let places = self.directories.iter().flat_map(|directory| {
            [
                directory.join(name),
                directory.join("lib").join(name),
                directory.join(SETUP_DIRECTORY).join(name),
            ]
        });
        Ok(places.into_iter().find(|path| path.is_file()))
    }
}
