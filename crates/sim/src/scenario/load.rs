//! The files that a scenario names: each is read once, however many models use it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use downbeat_profile::{Beyond, LatencyProfile, LookupError, ProfileFile, ProfileFileError};

use super::trace::{RateTrace, TraceError};

/// Why a file that a scenario names is of no use. Each says which file, and where in it.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    #[error(transparent)]
    Profile(#[from] ProfileFileError),
    #[error(transparent)]
    Lookup(#[from] LookupError),
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// The files read so far. Paths are relative to the scenario's folder.
pub(super) struct Files {
    folder: PathBuf,
    profiles: BTreeMap<PathBuf, ProfileFile>,
    traces: BTreeMap<PathBuf, Arc<RateTrace>>,
}

impl Files {
    /// The files next to `scenario`.
    pub(super) fn beside(scenario: &Path) -> Files {
        let folder = scenario.parent().unwrap_or(Path::new("")).to_owned();
        Files { folder, profiles: BTreeMap::new(), traces: BTreeMap::new() }
    }

    /// l(b) of `model` on `slice`, as measured in the file `csv`. Up to the largest batch measured where `max_batch` is
    /// not given; past it the last two points are continued.
    pub(super) fn profile(
        &mut self,
        csv: &str,
        model: &str,
        slice: &str,
        max_batch: Option<u32>,
    ) -> Result<LatencyProfile, FileError> {
        let file = match self.profiles.entry(self.folder.join(csv)) {
            Entry::Occupied(read) => read.into_mut(),
            Entry::Vacant(unread) => {
                let file = ProfileFile::read(unread.key())?;
                unread.insert(file)
            }
        };
        Ok(file.profile(model, slice, max_batch, Beyond::Extrapolate)?)
    }

    /// The trace in the file `csv`.
    pub(super) fn trace(&mut self, csv: &str) -> Result<Arc<RateTrace>, FileError> {
        let trace = match self.traces.entry(self.folder.join(csv)) {
            Entry::Occupied(read) => read.into_mut(),
            Entry::Vacant(unread) => {
                let trace = RateTrace::load(unread.key())?;
                unread.insert(Arc::new(trace))
            }
        };
        Ok(Arc::clone(trace))
    }
}
