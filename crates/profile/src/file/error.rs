//! What can be wrong with a profile file, and where.

use std::fmt;
use std::io;

use super::LARGEST_FILE_BYTES;
use crate::{DeviceClass, DeviceClassError, LARGEST_BATCH};

/// The first problem of a profile file, with its file, line and column:
/// `profiles/x.csv:12: column latency_ms (5): "-3" is not a finite number above 0`.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct ProfileFileError {
    // Boxed, because results carry the error through every row.
    place: Box<Place>,
    problem: Box<Problem>,
}

impl ProfileFileError {
    /// Of a file whose rows cannot be written down.
    pub(super) fn unwritable(file: &str, error: io::Error) -> ProfileFileError {
        Place::file(file).error(Problem::Unwritable(error))
    }

    /// The file's name.
    pub fn file(&self) -> &str {
        &self.place.file
    }

    /// The line, from 1; none where the file could not be read.
    pub fn line(&self) -> Option<u64> {
        self.place.line
    }

    /// The column; none where the whole line or file is at fault.
    pub fn column(&self) -> Option<&Column> {
        self.place.column.as_ref()
    }

    /// What is wrong there.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }
}

/// A column of a profile file. Written `latency_ms (5)`, or as much of it as there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name in the header; none for a cell past the header's last.
    pub name: Option<String>,
    /// The number, from 1; none for a column that is missing.
    pub number: Option<usize>,
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.name, self.number) {
            (Some(name), Some(number)) => write!(f, "{name} ({number})"),
            (Some(name), None) => f.write_str(name),
            (None, Some(number)) => write!(f, "{number}"),
            (None, None) => f.write_str("?"),
        }
    }
}

/// What is wrong with a profile file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file is missing, a directory, or fails to be read.
    #[error("cannot be read: {0}")]
    Unreadable(io::Error),
    /// Its rows cannot be written down.
    #[error("cannot be written: {0}")]
    Unwritable(io::Error),
    /// More than [`LARGEST_FILE_BYTES`].
    #[error("is not read: it has more than {LARGEST_FILE_BYTES} bytes")]
    TooLarge,
    /// Nothing but blank lines and comments.
    #[error("a header is missing, such as model,slice,batch,latency_ms")]
    NoHeader,
    /// A header, and nothing after it but blank lines and comments.
    #[error("no measurements follow the header")]
    NoMeasurements,
    /// The header lacks a column that must be there.
    #[error("is missing; the header has {header:?}")]
    MissingColumn {
        /// The header's names, shortened where long.
        header: String,
    },
    /// The header names a column twice.
    #[error("has the same name as column {first}")]
    RepeatedColumn {
        /// The number of the first column of that name, from 1.
        first: usize,
    },
    /// There is no `device` column and the file's stem cannot be a device's name.
    #[error("there is no device column, and the file's name does not name a device: {0}")]
    NoDevice(DeviceClassError),
    /// A row with fewer or more cells than the header.
    #[error("the row has {cells} cells, the header has {columns}")]
    Ragged {
        /// How many cells the row has.
        cells: usize,
        /// How many columns the header has.
        columns: usize,
    },
    /// A cell with bytes that are not UTF-8.
    #[error("the cell is not valid UTF-8")]
    NotUtf8,
    /// A cell that goes on past the end of its line.
    #[error("the cell goes on past the end of the line; is a quote left open?")]
    LineBreak,
    /// A cell that does not hold what its column is for.
    #[error("{cell:?} is not {wanted}")]
    BadCell {
        /// What the cell holds, shortened where long.
        cell: String,
        /// What it should hold.
        wanted: Wanted,
    },
    /// A device or a slice that cannot be part of a class's name.
    #[error("{0}")]
    BadClass(DeviceClassError),
    /// A second line for the same model, class and batch size.
    #[error("a batch of {batch} for {model} on {class} was already given on line {first_line}")]
    Duplicate {
        /// The model.
        model: String,
        /// The class.
        class: DeviceClass,
        /// The batch size.
        batch: u32,
        /// The line of the first one.
        first_line: u64,
    },
}

/// What a cell should hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A model's name: not empty, no control characters.
    Model,
    /// A batch size.
    Batch,
    /// A whole number, 1 or more.
    Count,
    /// A time.
    Positive,
    /// An amount of memory.
    NotNegative,
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wanted::Model => f.write_str("a model's name"),
            Wanted::Batch => write!(f, "a whole number from 1 to {LARGEST_BATCH}"),
            Wanted::Count => f.write_str("a whole number, 1 or more"),
            Wanted::Positive => f.write_str("a finite number above 0"),
            Wanted::NotNegative => f.write_str("a finite number, 0 or more"),
        }
    }
}

/// Where in which file.
#[derive(Debug)]
pub(super) struct Place {
    file: String,
    line: Option<u64>,
    column: Option<Column>,
}

impl Place {
    pub(super) fn file(file: &str) -> Place {
        Place { file: file.to_owned(), line: None, column: None }
    }

    pub(super) fn line(file: &str, line: u64) -> Place {
        Place { line: Some(line), ..Place::file(file) }
    }

    pub(super) fn column(self, name: Option<&str>, number: Option<usize>) -> Place {
        Place { column: Some(Column { name: name.map(shortened), number }), ..self }
    }

    pub(super) fn error(self, problem: Problem) -> ProfileFileError {
        ProfileFileError { place: Box::new(self), problem: Box::new(problem) }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(column) = &self.column {
            write!(f, ": column {column}")?;
        }
        Ok(())
    }
}

/// At most the first 100 characters: a file that is no profile at all may have one endless line.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(100) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
