//! From the text of a geometry table to GPU models.

use std::fmt;

use crate::{Evidence, GpuModel, SliceProfile};

/// What is wrong with a geometry table, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {message}", Colon(*line))]
pub struct GeometryError {
    /// The file.
    pub file: String,
    /// Counted from 1; none where it is the file as a whole.
    pub line: Option<u64>,
    /// What is wrong.
    pub message: String,
}

struct Colon(Option<u64>);

impl fmt::Display for Colon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |line| write!(f, ":{line}"))
    }
}

/// The largest GPU that is believed, in memory units: states are enumerated.
const MOST_UNITS: u8 = 16;

/// The GPUs of a table, in its order. `evidence` is that of rows that do not say.
pub(super) fn gpus(
    text: &str,
    file: &str,
    evidence: Option<Evidence>,
) -> Result<Vec<GpuModel>, GeometryError> {
    let fail = |line: Option<u64>, message: String| GeometryError { file: file.to_owned(), line, message };
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| fail(None, error.to_string()))?.clone();
    let mut gpus: Vec<GpuModel> = Vec::new();
    for record in reader.records() {
        let record =
            record.map_err(|error| fail(error.position().map(csv::Position::line), error.to_string()))?;
        let line = record.position().map(csv::Position::line);
        let row = Row { header: &header, record: &record };
        let (gpu, units, profile) = row.read(evidence).map_err(|message| fail(line, message))?;
        let known = gpus.iter_mut().find(|known| known.name == gpu);
        match known {
            Some(known) if known.units != units => {
                return Err(fail(
                    line,
                    format!("{gpu} has {} memory units above and {units} here", known.units),
                ));
            }
            Some(known) if known.profiles.iter().any(|other| other.name == profile.name) => {
                return Err(fail(line, format!("{gpu} has the profile {} twice", profile.name)));
            }
            Some(known) => known.profiles.push(profile),
            None => gpus.push(GpuModel { name: gpu, units, compute: 0, profiles: vec![profile] }),
        }
    }
    if gpus.is_empty() {
        return Err(fail(None, "there is no GPU in it".to_owned()));
    }
    for gpu in &mut gpus {
        gpu.compute = compute(gpu);
    }
    Ok(gpus)
}

/// How many compute slices a GPU has, which tables do not say: as many as one profile at its most is able to use. Where
/// none is the whole GPU, different ones may be able to use more together, as 4g and 3g do.
fn compute(gpu: &GpuModel) -> u8 {
    let alone = gpu.profiles.iter().map(|profile| profile.compute.saturating_mul(profile.most));
    let alone = alone.max().unwrap_or(0);
    if !gpu.is_incomplete() {
        return alone;
    }
    // By how many of its units, from the first, are looked at: the most compute of slices that lie there side by side.
    let mut most = vec![0u8; usize::from(gpu.units) + 1];
    for end in 1..most.len() {
        let ending = gpu.profiles.iter().filter_map(|profile| {
            let start = end.checked_sub(usize::from(profile.size))?;
            let placed = profile.starts.iter().any(|&allowed| usize::from(allowed) == start);
            placed.then(|| most[start].saturating_add(profile.compute))
        });
        most[end] = ending.fold(most[end - 1], u8::max);
    }
    most.into_iter().fold(alone, u8::max)
}

/// One line of a table.
struct Row<'a> {
    header: &'a csv::StringRecord,
    record: &'a csv::StringRecord,
}

impl Row<'_> {
    /// The GPU, its memory units and the profile.
    fn read(&self, evidence: Option<Evidence>) -> Result<(String, u8, SliceProfile), String> {
        let units: u8 = self.number("mem_units_total")?;
        if !(1..=MOST_UNITS).contains(&units) {
            return Err(format!("mem_units_total must be from 1 to {MOST_UNITS} (is {units})"));
        }
        let (starts, size) = placements(self.needed("placements")?)?;
        let written: u8 = self.number("mem_units")?;
        if written != size {
            return Err(format!("mem_units is {written}, but placements say {size}"));
        }
        if size == 0 || starts.iter().any(|start| start.saturating_add(size) > units) {
            return Err(format!("a slice of {size} units must lie within the {units} units of the GPU"));
        }
        let compute: u8 = self.number("compute_g")?;
        if compute == 0 {
            return Err("compute_g must be at least 1 (is 0)".to_owned());
        }
        // A driver's own name; what a table says in parentheses about other drivers is not part of it.
        let name = self.needed("profile")?.split(" (").next().unwrap_or_default().to_owned();
        let memory_mib = match self.cell("mem_gib_or_mib") {
            "" => nominal_mib(&name)
                .ok_or("mem_gib_or_mib is missing, and the profile's name does not end in it")?,
            written => memory(written)
                .ok_or_else(|| format!("mem_gib_or_mib must be like 9.75GiB or 4864MiB (is {written:?})"))?,
        };
        let fits = u8::try_from(starts.len()).unwrap_or(u8::MAX).min(units / size);
        let most: u8 = self.optional("max_instances")?.unwrap_or(fits);
        if most == 0 {
            return Err("max_instances must be at least 1 (is 0)".to_owned());
        }
        let profile = SliceProfile {
            sms: self.optional("sms")?,
            most,
            evidence: match self.cell("src_placement") {
                "C" => Evidence::Captured,
                "I" => Evidence::Inferred,
                _ => evidence.unwrap_or(Evidence::Inferred),
            },
            name,
            compute,
            size,
            starts,
            memory_mib,
        };
        Ok((self.needed("gpu")?.to_owned(), units, profile))
    }

    fn cell(&self, column: &str) -> &str {
        let index = self.header.iter().position(|name| name == column);
        index.and_then(|index| self.record.get(index)).unwrap_or_default()
    }

    fn needed(&self, column: &str) -> Result<&str, String> {
        Some(self.cell(column)).filter(|cell| !cell.is_empty()).ok_or_else(|| format!("{column} is missing"))
    }

    fn number<T: std::str::FromStr>(&self, column: &str) -> Result<T, String> {
        let cell = self.needed(column)?;
        cell.parse().map_err(|_| format!("{column} must be a whole number (is {cell:?})"))
    }

    fn optional<T: std::str::FromStr>(&self, column: &str) -> Result<Option<T>, String> {
        if self.cell(column).is_empty() { Ok(None) } else { self.number(column).map(Some) }
    }
}

/// `{0,2,4}:2` as its starts and its size.
fn placements(text: &str) -> Result<(Vec<u8>, u8), String> {
    let read = || {
        let (starts, size) = text.strip_prefix('{')?.split_once("}:")?;
        let mut starts: Vec<u8> =
            starts.split(',').map(|start| start.trim().parse().ok()).collect::<Option<_>>()?;
        starts.sort_unstable();
        starts.dedup();
        Some((starts, size.trim().parse().ok()?))
    };
    read().ok_or_else(|| format!("placements must be like {{0,2,4}}:2 (is {text:?})"))
}

/// `9.75GiB`, `4864MiB` or `20.50-22.00GiB` in MiB; of a range the lower end.
fn memory(text: &str) -> Option<f64> {
    let (number, factor) = match (text.strip_suffix("GiB"), text.strip_suffix("MiB")) {
        (Some(number), _) => (number, 1024.0),
        (_, Some(number)) => (number, 1.0),
        _ => return None,
    };
    let lowest = number.split('-').next()?.trim().parse::<f64>().ok()?;
    (lowest.is_finite() && lowest > 0.0).then_some(lowest * factor)
}

/// The memory that a profile is named after, less a tenth: what drivers report is always less.
fn nominal_mib(name: &str) -> Option<f64> {
    let memory = name.split_once('.')?.1;
    let digits: String = memory.chars().take_while(char::is_ascii_digit).collect();
    Some(digits.parse::<f64>().ok()? * 1024.0 * 0.9)
}
