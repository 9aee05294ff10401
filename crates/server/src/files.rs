//! The files of a version of a model, and whether they are still what they were.
//!
//! What a model is, is settled when it is loaded. A worker that comes later, in place of one that died, must load the
//! same, or one version would be two models: so the files are noted when the model is loaded, and whoever reads them
//! later checks.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// A version whose folder holds more is not taken: a link may lead anywhere.
const FILES_MAX: usize = 4096;

/// By what a file is known to be the same: reading all of it would take too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) bytes: u64,
    /// When it was last written, since 1970.
    pub(crate) modified_ns: u64,
}

/// A file as it was when its model was loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotedFile {
    pub(crate) path: PathBuf,
    pub(crate) stamp: Stamp,
}

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Stamp {
        let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified_ns = modified.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
        Stamp { bytes: metadata.len(), modified_ns }
    }
}

impl NotedFile {
    fn note(path: &Path) -> Option<NotedFile> {
        let metadata = fs::metadata(path).ok().filter(Metadata::is_file)?;
        Some(NotedFile { path: path.to_owned(), stamp: Stamp::of(&metadata) })
    }
}

/// The files of a version: the model first, then whatever else is in its folder, such as weights kept apart. Links are
/// followed, but to no folder twice; what is neither file nor folder is left out.
pub(crate) fn note_all(model: &Path) -> Result<Vec<NotedFile>, String> {
    let first = NotedFile::note(model).ok_or_else(|| format!("{} is gone", model.display()))?;
    let mut files = vec![first];
    let mut seen = BTreeSet::new();
    let mut folders: Vec<PathBuf> = model.parent().map(Path::to_owned).into_iter().collect();
    while let Some(folder) = folders.pop() {
        if !fs::canonicalize(&folder).is_ok_and(|real| seen.insert(real)) {
            continue;
        }
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path != model {
                files.extend(NotedFile::note(&path));
            }
            if files.len() + folders.len() > FILES_MAX {
                let folder = model.parent().unwrap_or(model).display();
                return Err(format!(
                    "{folder} holds more than {FILES_MAX} files; leave what belongs to the model only"
                ));
            }
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests;
