//! What n equal slices serve under the real scheduler, simulated once and remembered.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use downbeat_plan::{GoodputQuery, Simulator, Step};
use downbeat_profile::{Beyond, LatencyProfile};
use downbeat_sim::Until;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::cluster::{self, Slices};

/// The numbers of instances that are simulated; in between, what each one serves is interpolated, and past the last it
/// stays.
const COUNTS: [u32; 6] = [1, 2, 3, 4, 8, 16];
/// Requests of a run: one percent of them are enough to tell from chance.
const REQUESTS: f64 = 10_000.0;
/// The largest share of bad requests; less than the 1 % that is promised, because a rate that just passes with one seed
/// fails with the next.
const BAD_RATE_MAX: f64 = 0.007;
/// Rates are told apart down to this share of the ideal one.
const GRID: f64 = 0.01;
/// A rate is searched with the first and must pass with the second.
const SEEDS: [u64; 2] = [11, 12];
/// What the remembered numbers were simulated with; others are not used.
const VERSION: &str = "adaptive-3";

/// Why there is no answer where the work was ended.
const STOPPED: &str = "rule measured was stopped while it simulated what slices serve; what was simulated is remembered: \
                       run again with more time to go on, or plan by rule staggered, which simulates nothing";

/// The planner's simulator.
pub struct Goodput {
    path: Option<PathBuf>,
    known: Mutex<BTreeMap<String, Vec<f64>>>,
    stop: Option<Stop>,
}

/// Asked before every run of the simulator; true ends the work.
type Stop = Box<dyn Fn() -> bool + Send + Sync>;

/// The file of remembered numbers.
#[derive(Serialize, Deserialize)]
struct CacheFile {
    version: String,
    /// By model, class, SLO and measurements: requests per second of each of the counts.
    goodput_rps: BTreeMap<String, Vec<f64>>,
}

/// The file of remembered numbers is of no use.
#[derive(Debug, thiserror::Error)]
#[error("{}: {cause}", path.display())]
pub struct CacheError {
    path: PathBuf,
    cause: io::Error,
}

impl Goodput {
    /// Remembers nothing beyond this process.
    pub fn forgetful() -> Goodput {
        Goodput { path: None, known: Mutex::default(), stop: None }
    }

    /// Remembers in a file, which need not be there yet. A file of another version is begun anew.
    pub fn remembering(path: &Path) -> Result<Goodput, CacheError> {
        let known = match fs::read_to_string(path) {
            Ok(text) => serde_json::from_str::<CacheFile>(&text)
                .ok()
                .filter(|file| file.version == VERSION)
                .map(|file| file.goodput_rps)
                .unwrap_or_default(),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(cause) => return Err(CacheError { path: path.to_owned(), cause }),
        };
        Ok(Goodput { path: Some(path.to_owned()), known: Mutex::new(known), stop: None })
    }

    /// Gives up when `stop` says so; what was simulated until then is remembered.
    #[must_use]
    pub fn until(self, stop: impl Fn() -> bool + Send + Sync + 'static) -> Goodput {
        Goodput { stop: Some(Box::new(stop)), ..self }
    }

    fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop())
    }

    /// Writes the file, in one go.
    pub fn save(&self) -> Result<(), CacheError> {
        let Some(path) = &self.path else { return Ok(()) };
        let Ok(known) = self.known.lock() else { return Ok(()) };
        let file = CacheFile { version: VERSION.to_owned(), goodput_rps: known.clone() };
        let write = || {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            let draft = path.with_extension(format!("{}.tmp", std::process::id()));
            fs::write(&draft, serde_json::to_string(&file)?)?;
            fs::rename(&draft, path)
        };
        write().map_err(|cause| CacheError { path: path.clone(), cause })
    }
}

impl Simulator for Goodput {
    fn goodput(&self, query: &GoodputQuery<'_>) -> Result<Vec<Step>, String> {
        let key = key(query);
        let found = self.known.lock().ok().and_then(|known| known.get(&key).cloned());
        let rates = match found.filter(|rates| rates.len() == COUNTS.len()) {
            Some(rates) => rates,
            None => {
                let rates = COUNTS
                    .par_iter()
                    .map(|&count| simulate(query, count, &|| self.is_stopped()))
                    .collect::<Result<Vec<f64>, String>>()?;
                if let Ok(mut known) = self.known.lock() {
                    known.insert(key, rates.clone());
                }
                rates
            }
        };
        Ok(steps(query, &rates))
    }
}

/// What was asked, with all that the answer depends on.
fn key(query: &GoodputQuery<'_>) -> String {
    let points: Vec<String> =
        query.points.iter().map(|(batch, latency)| format!("{batch}:{latency}")).collect();
    format!("{} {} {}ms {}", query.model, query.class, query.slo_ms, points.join(","))
}

/// From the counts that were simulated to all of them.
fn steps(query: &GoodputQuery<'_>, rates: &[f64]) -> Vec<Step> {
    let last = COUNTS[COUNTS.len() - 1];
    (1..=last)
        .map(|count| {
            let above = COUNTS.iter().position(|&known| known >= count).unwrap_or(COUNTS.len() - 1);
            let each = |index: usize| rates[index] / f64::from(COUNTS[index]);
            let each = if COUNTS[above] == count || above == 0 {
                each(above)
            } else {
                let share =
                    f64::from(count - COUNTS[above - 1]) / f64::from(COUNTS[above] - COUNTS[above - 1]);
                // The lesser of the line between the two and the larger: noise must not promise more.
                (each(above - 1) + share * (each(above) - each(above - 1)))
                    .min(each(above).max(each(above - 1)))
            };
            Step { capacity_rps: each * f64::from(count), batch: typical_batch(query, count) }
        })
        .collect()
}

/// The batch that staggered slices would run: what the scheduler comes near to. Told, not counted with.
fn typical_batch(query: &GoodputQuery<'_>, count: u32) -> u32 {
    let longest = query.slo_ms / (1.0 + 1.0 / f64::from(count));
    let in_time = query.points.iter().filter(|(_, latency)| *latency <= longest);
    let rated = in_time.max_by(|a, b| (f64::from(a.0) / a.1).total_cmp(&(f64::from(b.0) / b.1)));
    rated.map_or(1, |point| point.0)
}

/// The largest rate that `count` slices keep in time.
fn simulate(query: &GoodputQuery<'_>, count: u32, stop: &(dyn Fn() -> bool + Sync)) -> Result<f64, String> {
    let slices = [Slices { name: "slice".to_owned(), count, points: query.points.to_vec() }];
    // No rate is higher than that of batches that take the whole SLO; the scheduler runs sizes between those measured,
    // too.
    let largest = query.points.last().map_or(1, |point| point.0);
    let profile = LatencyProfile::from_points(query.points, largest, Beyond::Refuse)
        .map_err(|error| error.to_string())?;
    let latencies = (1..=largest).map(|batch| (batch, profile.latency(batch).as_millis_f64()));
    let in_time = latencies.filter(|(_, ms)| *ms <= query.slo_ms);
    let most = in_time.map(|(batch, ms)| f64::from(batch) / ms * 1e3).fold(0.0, f64::max) * f64::from(count);
    let passes = |share: f64, seed: u64| -> Result<bool, String> {
        if stop() {
            return Err(STOPPED.to_owned());
        }
        let run = cluster::run(&slices, query.slo_ms, most * share, REQUESTS, seed, Until::Failure)?;
        Ok(run.bad_rate_worst <= BAD_RATE_MAX)
    };
    if most <= 0.0 {
        return Ok(0.0);
    }
    let (mut low, mut high) = (0.0, 1.02);
    while high - low > GRID {
        let middle = (low + high) / 2.0;
        if passes(middle, SEEDS[0])? {
            low = middle;
        } else {
            high = middle;
        }
    }
    // What one seed's luck has passed is tried with another's.
    while low > 0.0 && !passes(low, SEEDS[1])? {
        low = (low - GRID).max(0.0);
    }
    // Thousandths: what is written to the file is read back the same.
    Ok((low * most * 1e3).floor() / 1e3)
}
