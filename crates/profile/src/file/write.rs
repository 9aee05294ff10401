//! From measurements to the bytes of a profile file.

use std::io::{self, Write};

use super::{Measurement, ProfileFile, ProfileFileError};
use crate::DeviceClass;

/// What the columns of a written file are called, in the order of [`ProfileRow::cells`].
const HEADER: [&str; 9] =
    ["model", "device", "slice", "sms", "batch", "latency_ms", "p99_ms", "weights_mib", "peak_mib"];

/// One measurement and what it is of: a line of a profile file.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileRow {
    /// The model.
    pub model: String,
    /// The class of devices it was measured on.
    pub class: DeviceClass,
    /// What was measured.
    pub measurement: Measurement,
}

impl ProfileRow {
    fn cells(&self) -> [String; HEADER.len()] {
        let Measurement { batch, latency_ms, p99_ms, sms, weights_mib, peak_mib } = self.measurement;
        [
            self.model.clone(),
            self.class.device().to_owned(),
            self.class.slice().unwrap_or_default().to_owned(),
            or_empty(sms),
            batch.to_string(),
            latency_ms.to_string(),
            or_empty(p99_ms),
            or_empty(weights_mib),
            or_empty(peak_mib),
        ]
    }
}

fn or_empty(number: Option<impl ToString>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

impl ProfileFile {
    /// A file called `name` of these rows, in any order.
    ///
    /// Held to what [`parse`](Self::parse) asks of a file, by the same code: the first row that could not be read back
    /// is the error, with the line that it would have.
    pub fn from_rows(
        rows: impl IntoIterator<Item = ProfileRow>,
        name: &str,
    ) -> Result<ProfileFile, ProfileFileError> {
        let mut bytes = Vec::new();
        write(&mut bytes, rows).map_err(|error| ProfileFileError::unwritable(name, error))?;
        ProfileFile::parse(&bytes, name)
    }

    /// All measurements: by model, then by class, then by batch size.
    pub fn rows(&self) -> impl Iterator<Item = ProfileRow> + '_ {
        self.models.iter().flat_map(|(model, classes)| {
            classes.iter().flat_map(move |(class, series)| {
                series.measurements.iter().map(move |&measurement| ProfileRow {
                    model: model.clone(),
                    class: class.clone(),
                    measurement,
                })
            })
        })
    }

    /// Writes the file as CSV with all columns, such that [`parse`](Self::parse) reads the same measurements again.
    ///
    /// The device is a column, so that the file may be renamed.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        write(out, self.rows())
    }
}

fn write(out: impl Write, rows: impl IntoIterator<Item = ProfileRow>) -> io::Result<()> {
    // Knowing of comments, it quotes a model whose name would make its line one.
    let mut writer = csv::WriterBuilder::new().comment(Some(b'#')).from_writer(out);
    writer.write_record(HEADER)?;
    for row in rows {
        writer.write_record(row.cells())?;
    }
    writer.flush()
}
