//! Where a shared library is that is loaded at run time: ONNX Runtime's, HiGHS's. Set-up fetches them, so that a build
//! needs nothing but cargo.

#[cfg(test)]
mod tests;

use std::env;
use std::path::{Path, PathBuf};

/// A library that is looked for.
#[derive(Clone, Copy, Debug)]
pub struct Library {
    /// Its name, without `lib` and what the system appends: `onnxruntime`.
    pub name: &'static str,
    /// The environment variable that names its file.
    pub variable: &'static str,
    /// Where set-up puts it, below the root of the repository.
    pub setup_directory: &'static str,
}

/// A library was named that is not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no library at {}, which {who}", path.display())]
pub struct NotThere {
    /// The file that was named.
    pub path: PathBuf,
    /// Who named it: `the settings name`, `ORT_DYLIB_PATH names`.
    pub who: String,
}

impl Library {
    /// The name of its file.
    pub fn file_name(&self) -> String {
        format!("lib{}.{}", self.name, if cfg!(target_os = "macos") { "dylib" } else { "so" })
    }

    /// Its file: what this setting names, then what the environment does, then beside the executable and where set-up
    /// put it, in the directory of the executable or any above it, or in the working directory. `None` where there is
    /// none.
    ///
    /// A library that was named must exist: falling back to another one would hide the mistake.
    pub fn find(&self, setting: Option<&Path>) -> Result<Option<PathBuf>, NotThere> {
        let executable = env::current_exe().unwrap_or_default();
        let mut directories: Vec<PathBuf> = executable.ancestors().skip(1).map(Path::to_owned).collect();
        directories.extend(env::current_dir());
        let environment = env::var_os(self.variable).filter(|path| !path.is_empty()).map(PathBuf::from);
        self.find_in(setting, environment.as_deref(), &directories)
    }

    fn find_in(
        &self,
        setting: Option<&Path>,
        environment: Option<&Path>,
        directories: &[PathBuf],
    ) -> Result<Option<PathBuf>, NotThere> {
        let by_variable = format!("{} names", self.variable);
        for (path, who) in [(setting, "the settings name"), (environment, &by_variable)] {
            match path {
                Some(path) if path.is_file() => return Ok(Some(path.to_owned())),
                Some(path) => return Err(NotThere { path: path.to_owned(), who: who.to_owned() }),
                None => {}
            }
        }
        let name = self.file_name();
        let mut places = directories.iter().flat_map(|directory| {
            [
                directory.join(&name),
                directory.join("lib").join(&name),
                directory.join(self.setup_directory).join(&name),
            ]
        });
        Ok(places.find(|path| path.is_file()))
    }
}
