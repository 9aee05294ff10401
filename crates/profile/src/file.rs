//! Profile files: measured latencies of models on device classes, as CSV.

mod error;
mod lookup;
mod rows;
mod write;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

pub use error::{Column, Problem, ProfileFileError, Wanted};
pub use lookup::{LookupError, Near};
pub use write::ProfileRow;

use crate::{Beyond, DeviceClass, LatencyProfile};
use error::Place;
use rows::Row;

/// The largest profile file that is read. Profiles are written by hand or by a measurement, a line per model, class
/// and batch size; what is larger than this is something else, and is refused rather than loaded.
pub const LARGEST_FILE_BYTES: u64 = 64 << 20;

/// The measurements of one profile file.
///
/// CSV with a header. The columns `model`, `slice`, `batch` and `latency_ms` must be there, `device`, `sms`, `p99_ms`,
/// `weights_mib` and `peak_mib` may be, in any order; other columns are ignored, and so are blank lines and lines that
/// begin with `#`. An empty `slice` stands for the undivided device. Without a `device` column the file's stem is the
/// device: the slice `3g` in `profiles/h200.csv` is the class `h200/3g`.
///
/// Models, classes and points always come in ascending order, whatever their order in the file.
#[derive(Clone, Debug)]
pub struct ProfileFile {
    name: String,
    models: BTreeMap<String, BTreeMap<DeviceClass, Series>>,
    classes: BTreeSet<DeviceClass>,
}

/// One line of a profile file: what a batch of one size costs. Optional values are `None` where the file has no such
/// column or an empty cell.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Measurement {
    /// The batch size; 1 or more.
    pub batch: u32,
    /// The typical latency, in milliseconds; above 0.
    pub latency_ms: f64,
    /// The 99th percentile of the latency, in milliseconds; above 0.
    pub p99_ms: Option<f64>,
    /// How many streaming multiprocessors the slice has; 1 or more.
    pub sms: Option<u32>,
    /// The memory that the model's weights take, in MiB; 0 or more.
    pub weights_mib: Option<f64>,
    /// The most memory taken while the batch ran, weights included, in MiB; 0 or more.
    pub peak_mib: Option<f64>,
}

impl Measurement {
    /// A batch size and its typical latency, and nothing else that is known.
    pub fn new(batch: u32, latency_ms: f64) -> Measurement {
        Measurement { batch, latency_ms, p99_ms: None, sms: None, weights_mib: None, peak_mib: None }
    }
}

/// The measurements of one model on one class, by ascending batch size; `points` repeats two of their fields.
#[derive(Clone, Debug, Default)]
struct Series {
    points: Vec<(u32, f64)>,
    measurements: Vec<Measurement>,
}

impl ProfileFile {
    /// Reads the file at `path`. The first problem of a bad file is the error.
    pub fn read(path: impl AsRef<Path>) -> Result<ProfileFile, ProfileFileError> {
        let name = path.as_ref().display().to_string();
        let bytes = read_limited(path.as_ref()).map_err(|problem| Place::file(&name).error(problem))?;
        ProfileFile::parse(&bytes, &name)
    }

    /// Parses `bytes` as the contents of a profile file called `name`. Errors quote `name`, and its stem is the device
    /// where there is no `device` column.
    pub fn parse(bytes: &[u8], name: &str) -> Result<ProfileFile, ProfileFileError> {
        // In the order of the result; with the line, so that a second measurement of the same can point at the first.
        let mut found = BTreeMap::new();
        for row in rows::rows(bytes, name)? {
            let Row { line, batch_column, model, class, measurement } = row?;
            match found.entry((model, class, measurement.batch)) {
                Entry::Vacant(new) => {
                    new.insert((line, measurement));
                }
                Entry::Occupied(old) => {
                    let (first_line, _) = *old.get();
                    let (model, class, batch) = old.key().clone();
                    let place = Place::line(name, line).column(Some("batch"), Some(batch_column));
                    return Err(place.error(Problem::Duplicate { model, class, batch, first_line }));
                }
            }
        }
        let mut models: BTreeMap<_, BTreeMap<_, Series>> = BTreeMap::new();
        let mut classes = BTreeSet::new();
        for ((model, class, batch), (_, measurement)) in found {
            classes.insert(class.clone());
            let series = models.entry(model).or_default().entry(class).or_default();
            series.points.push((batch, measurement.latency_ms));
            series.measurements.push(measurement);
        }
        Ok(ProfileFile { name: name.to_owned(), models, classes })
    }

    /// The file's name, as given to [`read`](Self::read) or [`parse`](Self::parse).
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The models measured on any class, at least one.
    pub fn models(&self) -> impl ExactSizeIterator<Item = &str> {
        self.models.keys().map(String::as_str)
    }

    /// The classes any model was measured on, at least one.
    pub fn classes(&self) -> impl ExactSizeIterator<Item = &DeviceClass> {
        self.classes.iter()
    }

    /// The `(batch, latency_ms)` points of `model` on `class`, at least one, or `None` where the file has none.
    ///
    /// `class` is a class such as `h200/3g`, or a slice such as `3g` where the file has it of one device only.
    pub fn points(&self, model: &str, class: &str) -> Option<&[(u32, f64)]> {
        self.series(model, class).ok().map(|(_, series)| series.points.as_slice())
    }

    /// All that is known about the [`points`](Self::points) of `model` on `class`.
    pub fn measurements(&self, model: &str, class: &str) -> Option<&[Measurement]> {
        self.series(model, class).ok().map(|(_, series)| series.measurements.as_slice())
    }

    /// l(b) of `model` on `class`, up to `max_batch` or else the largest batch measured; see
    /// [`LatencyProfile::from_points`]. `class` is named as for [`points`](Self::points).
    pub fn profile(
        &self,
        model: &str,
        class: &str,
        max_batch: Option<u32>,
        beyond: Beyond,
    ) -> Result<LatencyProfile, LookupError> {
        let (class, Series { points, .. }) = self.series(model, class)?;
        let max_batch = max_batch.or(points.last().map(|point| point.0)).unwrap_or(1);
        LatencyProfile::from_points(points, max_batch, beyond).map_err(|why| LookupError::Unprofiled {
            file: self.name.clone(),
            model: model.to_owned(),
            class: class.clone(),
            why,
        })
    }
}

fn read_limited(path: &Path) -> Result<Vec<u8>, Problem> {
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(path)?.take(LARGEST_FILE_BYTES + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(Problem::Unreadable)?;
    if bytes.len() as u64 > LARGEST_FILE_BYTES { Err(Problem::TooLarge) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests;
