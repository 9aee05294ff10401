//! From bytes to checked rows.

use std::path::Path;

use csv::ByteRecord;

use super::Measurement;
use super::error::{Place, Problem, ProfileFileError, Wanted, shortened};
use crate::{DeviceClass, LARGEST_BATCH};

/// One measurement and where it was found.
pub(super) struct Row {
    pub(super) line: u64,
    /// The number of the column with the batch size, from 1.
    pub(super) batch_column: usize,
    pub(super) model: String,
    pub(super) class: DeviceClass,
    pub(super) measurement: Measurement,
}

/// The rows below the header; at least one, where none is an error.
pub(super) fn rows<'a>(
    bytes: &'a [u8],
    file: &'a str,
) -> Result<impl Iterator<Item = Result<Row, ProfileFileError>> + 'a, ProfileFileError> {
    let mut records = Records::new(bytes, file).peekable();
    let (line, cells) =
        records.next().unwrap_or_else(|| Err(Place::line(file, 1).error(Problem::NoHeader)))?;
    let header = Header::new(file, line, &cells)?;
    if records.peek().is_none() {
        return Err(Place::line(file, line).error(Problem::NoMeasurements));
    }
    Ok(records.map(move |record| {
        let (line, cells) = record?;
        header.row(line, &cells)
    }))
}

/// The records that are neither blank nor comments, each with the line it begins on.
struct Records<'a> {
    file: &'a str,
    bytes: &'a [u8],
    reader: csv::Reader<&'a [u8]>,
    /// How far lines are counted, and the line there.
    counted: usize,
    line: u64,
}

impl<'a> Records<'a> {
    fn new(bytes: &'a [u8], file: &'a str) -> Records<'a> {
        // Spreadsheets put a byte-order mark before the first name.
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .comment(Some(b'#'))
            .from_reader(bytes);
        Records { file, bytes, reader, counted: 0, line: 1 }
    }

    /// The line on which the record that the reader found from `start` on begins.
    ///
    /// The reader's own position is where it stood before it skipped blank lines and comments.
    fn line_of(&mut self, start: usize) -> u64 {
        let mut at = start;
        loop {
            match self.bytes.get(at) {
                Some(b'\r' | b'\n') => at += 1,
                Some(b'#') => at += self.bytes[at..].iter().take_while(|&&byte| byte != b'\n').count(),
                _ => break,
            }
        }
        let passed = self.bytes.get(self.counted..at).unwrap_or_default();
        self.line += passed.iter().filter(|&&byte| byte == b'\n').count() as u64;
        self.counted = at.max(self.counted);
        self.line
    }
}

impl Iterator for Records<'_> {
    type Item = Result<(u64, ByteRecord), ProfileFileError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let start = self.reader.position().byte() as usize;
            let mut cells = ByteRecord::new();
            match self.reader.read_byte_record(&mut cells) {
                Ok(true) if cells.len() == 1 && cells[0].trim_ascii().is_empty() => {}
                Ok(true) => return Some(Ok((self.line_of(start), cells))),
                Ok(false) => return None,
                Err(error) => {
                    let place = Place::line(self.file, self.line_of(start));
                    return Some(Err(place.error(Problem::Unreadable(error.into()))));
                }
            }
        }
    }
}

/// Which column holds what.
struct Header<'a> {
    file: &'a str,
    names: Vec<String>,
    /// The device of every row, where no column says it.
    device: Option<String>,
    columns: Columns,
}

/// Indices into a row.
struct Columns {
    model: usize,
    slice: usize,
    batch: usize,
    latency_ms: usize,
    device: Option<usize>,
    sms: Option<usize>,
    p99_ms: Option<usize>,
    weights_mib: Option<usize>,
    peak_mib: Option<usize>,
}

impl<'a> Header<'a> {
    fn new(file: &'a str, line: u64, cells: &ByteRecord) -> Result<Header<'a>, ProfileFileError> {
        let names = cells
            .iter()
            .enumerate()
            .map(|(index, cell)| {
                let place = || Place::line(file, line).column(None, Some(index + 1));
                text(cell).map(str::to_owned).map_err(|problem| place().error(problem))
            })
            .collect::<Result<Vec<_>, _>>()?;

        let optional = |name: &str| {
            let mut found =
                names.iter().enumerate().filter(|(_, other)| *other == name).map(|(index, _)| index);
            let first = found.next();
            match (first, found.next()) {
                (Some(first), Some(again)) => {
                    let place = Place::line(file, line).column(Some(name), Some(again + 1));
                    Err(place.error(Problem::RepeatedColumn { first: first + 1 }))
                }
                _ => Ok(first),
            }
        };
        let required = |name: &str| {
            optional(name)?.ok_or_else(|| {
                let header = shortened(&names.join(","));
                Place::line(file, line).column(Some(name), None).error(Problem::MissingColumn { header })
            })
        };
        let columns = Columns {
            model: required("model")?,
            slice: required("slice")?,
            batch: required("batch")?,
            latency_ms: required("latency_ms")?,
            device: optional("device")?,
            sms: optional("sms")?,
            p99_ms: optional("p99_ms")?,
            weights_mib: optional("weights_mib")?,
            peak_mib: optional("peak_mib")?,
        };
        let device = match columns.device {
            Some(_) => None,
            None => {
                Some(stem_device(file).map_err(|problem| Place::line(file, line).error(problem))?.to_owned())
            }
        };
        Ok(Header { file, names, device, columns })
    }

    fn row(&self, line: u64, cells: &ByteRecord) -> Result<Row, ProfileFileError> {
        let place = |index: usize| {
            let name = self.names.get(index).map(String::as_str);
            Place::line(self.file, line).column(name, Some(index + 1))
        };
        // Cells first, so that a quote left open is reported as such and not as the ragged row it makes.
        let cells = cells
            .iter()
            .enumerate()
            .map(|(index, cell)| text(cell).map_err(|problem| place(index).error(problem)))
            .collect::<Result<Vec<_>, _>>()?;
        let columns = self.names.len();
        if cells.len() != columns {
            let problem = Problem::Ragged { cells: cells.len(), columns };
            return Err(place(cells.len().min(columns)).error(problem));
        }

        let bad = |index: usize, wanted| {
            place(index).error(Problem::BadCell { cell: shortened(cells[index]), wanted })
        };
        let get = |index: usize, wanted| number(cells[index], wanted).ok_or_else(|| bad(index, wanted));
        let get_optional = |index: Option<usize>, wanted| match index {
            Some(index) if !cells[index].is_empty() => get(index, wanted).map(Some),
            _ => Ok(None),
        };
        let at = &self.columns;
        let model = cells[at.model];
        if model.is_empty() || model.chars().any(char::is_control) {
            return Err(bad(at.model, Wanted::Model));
        }
        let measurement = Measurement {
            batch: get(at.batch, Wanted::Batch)? as u32,
            latency_ms: get(at.latency_ms, Wanted::Positive)?,
            p99_ms: get_optional(at.p99_ms, Wanted::Positive)?,
            sms: get_optional(at.sms, Wanted::Count)?.map(|sms| sms as u32),
            weights_mib: get_optional(at.weights_mib, Wanted::NotNegative)?,
            peak_mib: get_optional(at.peak_mib, Wanted::NotNegative)?,
        };
        let class = self.class(&cells, place)?;
        Ok(Row { line, batch_column: at.batch + 1, model: model.to_owned(), class, measurement })
    }

    fn class(&self, cells: &[&str], place: impl Fn(usize) -> Place) -> Result<DeviceClass, ProfileFileError> {
        let device = match self.columns.device {
            Some(index) => {
                // On its own first, so that the error names the right one of the two columns.
                DeviceClass::new(cells[index], None)
                    .map_err(|error| place(index).error(Problem::BadClass(error)))?;
                cells[index]
            }
            None => self.device.as_deref().unwrap_or_default(),
        };
        let slice = Some(cells[self.columns.slice]).filter(|slice| !slice.is_empty());
        DeviceClass::new(device, slice)
            .map_err(|error| place(self.columns.slice).error(Problem::BadClass(error)))
    }
}

/// The device that a file's name names: its stem.
fn stem_device(file: &str) -> Result<&str, Problem> {
    let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    DeviceClass::new(stem, None).map(|_| stem).map_err(Problem::NoDevice)
}

/// A cell as text, without the blanks around it.
fn text(cell: &[u8]) -> Result<&str, Problem> {
    let text = std::str::from_utf8(cell).map_err(|_| Problem::NotUtf8)?;
    if text.contains(['\n', '\r']) { Err(Problem::LineBreak) } else { Ok(text.trim()) }
}

/// The number in a cell, where it is one that is wanted. Whole numbers up to `u32::MAX` are exact.
fn number(cell: &str, wanted: Wanted) -> Option<f64> {
    let whole = || cell.parse::<u32>().ok();
    let finite = || cell.parse::<f64>().ok().filter(|number| number.is_finite());
    match wanted {
        Wanted::Model => None,
        Wanted::Batch => whole().filter(|batch| (1..=LARGEST_BATCH).contains(batch)).map(f64::from),
        Wanted::Count => whole().filter(|&count| count >= 1).map(f64::from),
        Wanted::Positive => finite().filter(|&number| number > 0.0),
        Wanted::NotNegative => finite().filter(|&number| number >= 0.0),
    }
}
