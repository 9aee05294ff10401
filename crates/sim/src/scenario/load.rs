//! The files that a scenario names: each is read once, however many models use it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use downbeat_profile::{Beyond, LatencyProfile};

use super::trace::{RateTrace, TraceError};

/// The files read so far. Paths are relative to the scenario's folder.
pub(super) struct Files {
    folder: PathBuf,
    profiles: BTreeMap<PathBuf, String>,
    traces: BTreeMap<PathBuf, Arc<RateTrace>>,
}

impl Files {
    /// The files next to `scenario`.
    pub(super) fn beside(scenario: &Path) -> Files {
        let folder = scenario.parent().unwrap_or(Path::new("")).to_owned();
        Files { folder, profiles: BTreeMap::new(), traces: BTreeMap::new() }
    }

    /// l(b) of `model` on `slice`, as measured in the file `csv`.
    pub(super) fn profile(
        &mut self,
        csv: &str,
        model: &str,
        slice: &str,
        max_batch: Option<u32>,
    ) -> Result<LatencyProfile, String> {
        let path = self.folder.join(csv);
        if !self.profiles.contains_key(&path) {
            let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            self.profiles.insert(path.clone(), text);
        }
        let mut points = vec![];
        for row in self.profiles[&path].lines().skip(1) {
            let c: Vec<&str> = row.split(',').collect();
            if c[0] == model && c[1] == slice {
                points.push((
                    c[3].parse::<u32>().map_err(|e| e.to_string())?,
                    c[4].parse::<f64>().map_err(|e| e.to_string())?,
                ));
            }
        }
        let most = points.iter().map(|p| p.0).max().unwrap_or(1);
        LatencyProfile::from_points(&points, max_batch.unwrap_or(most), Beyond::Extrapolate)
            .map_err(|e| e.to_string())
    }

    /// The trace in the file `csv`.
    pub(super) fn trace(&mut self, csv: &str) -> Result<Arc<RateTrace>, TraceError> {
        let path = self.folder.join(csv);
        if let Some(trace) = self.traces.get(&path) {
            return Ok(Arc::clone(trace));
        }
        let trace = Arc::new(RateTrace::load(&path)?);
        self.traces.insert(path, Arc::clone(&trace));
        Ok(trace)
    }
}
