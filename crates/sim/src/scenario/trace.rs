//! Rates that change over time, piece by piece.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use downbeat_sched::Span;

use super::check::LONGEST_S;

/// A rate that is constant for a while, then another, and begins again when it ends. Its mean is above 0.
#[derive(Clone, Debug, PartialEq)]
pub struct RateTrace {
    pieces: Vec<RatePiece>,
    mean: f64,
}

/// A stretch of a trace with one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatePiece {
    /// When it ends, counted from the beginning of the trace; it begins where the one before it ends.
    pub end: Span,
    /// The rate, finite and not negative.
    pub rate: f64,
}

/// Why a file does not hold a trace. One line that names the file and, where there is one, line and column.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The text is not a trace.
    #[error("{}:{line}: {message}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong, and in which column.
        message: String,
    },
}

impl RateTrace {
    /// Reads a CSV file with the header `time_s,rate`: from each row's time on, its rate holds.
    ///
    /// The first row's time is 0. The last row ends the trace: its rate must be a number but is not used, so that a
    /// trace can repeat the rate it began with.
    pub fn load(path: &Path) -> Result<RateTrace, TraceError> {
        match fs::read_to_string(path) {
            Ok(text) => RateTrace::parse(&text, path),
            Err(cause) => Err(TraceError::Read { path: path.to_owned(), cause }),
        }
    }

    /// Reads a trace from the text of such a file; messages name `origin`.
    pub fn parse(text: &str, origin: &Path) -> Result<RateTrace, TraceError> {
        let invalid =
            |line: usize, message: String| TraceError::Invalid { path: origin.to_owned(), line, message };
        let mut lines = (1..).zip(text.lines()).filter(|(_, row)| !row.trim().is_empty());
        let header = lines.next().map_or("", |(_, row)| row);
        if !header.split(',').map(str::trim).eq(["time_s", "rate"]) {
            return Err(invalid(1, format!("the header must be `time_s,rate` (is `{header}`)")));
        }

        let mut pieces: Vec<RatePiece> = Vec::new();
        let mut before: Option<(f64, f64)> = None;
        let mut last_line = 1;
        for (line, row) in lines {
            let (time_s, rate) = row_numbers(row).map_err(|message| invalid(line, message))?;
            match before {
                None if time_s != 0.0 => {
                    return Err(invalid(
                        line,
                        format!("column time_s: the first time must be 0 (is {time_s})"),
                    ));
                }
                Some((earlier_s, _)) if Span::from_secs_f64(time_s) <= Span::from_secs_f64(earlier_s) => {
                    return Err(invalid(
                        line,
                        format!("column time_s: times must rise ({time_s} comes after {earlier_s})"),
                    ));
                }
                Some((_, rate)) => pieces.push(RatePiece { end: Span::from_secs_f64(time_s), rate }),
                None => {}
            }
            before = Some((time_s, rate));
            last_line = line;
        }
        if pieces.is_empty() {
            return Err(invalid(
                last_line,
                "a trace needs at least two rows: its beginning and its end".into(),
            ));
        }
        RateTrace::from_pieces(pieces)
            .ok_or_else(|| invalid(last_line, "column rate: the mean must be above 0 and below 1e12".into()))
    }

    /// A trace of these pieces, whose ends rise; `None` where its mean is not above 0.
    ///
    /// Nor where it is so small or large that scaling to it would leave the range of numbers.
    pub(crate) fn from_pieces(pieces: Vec<RatePiece>) -> Option<RateTrace> {
        let length_s = pieces.last()?.end.as_secs_f64();
        let mut begin_s = 0.0;
        let mut sum = 0.0;
        for piece in &pieces {
            sum += piece.rate * (piece.end.as_secs_f64() - begin_s);
            begin_s = piece.end.as_secs_f64();
        }
        let mean = sum / length_s;
        (1e-12..1e12).contains(&mean).then_some(RateTrace { pieces, mean })
    }

    /// The pieces in order; at least one. The last one's end is the length of the trace.
    pub fn pieces(&self) -> &[RatePiece] {
        &self.pieces
    }

    /// How long it is before it begins again.
    pub fn length(&self) -> Span {
        self.pieces.last().map_or(Span::ZERO, |piece| piece.end)
    }

    /// The mean rate, in the trace's own unit.
    pub fn mean_rate(&self) -> f64 {
        self.mean
    }
}

/// The time and the rate in a row.
fn row_numbers(row: &str) -> Result<(f64, f64), String> {
    let mut cells = row.split(',').map(str::trim);
    let time_s = cell("time_s", cells.next())?;
    let rate = cell("rate", cells.next())?;
    if let Some(extra) = cells.next() {
        return Err(format!("a row has two columns, time_s and rate (a third one is `{extra}`)"));
    }
    if time_s > LONGEST_S {
        return Err(format!("column time_s: must be at most {LONGEST_S} (is {time_s})"));
    }
    Ok((time_s, rate))
}

fn cell(column: &str, text: Option<&str>) -> Result<f64, String> {
    let text = text.ok_or_else(|| format!("column {column}: is missing"))?;
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        Ok(number) => Err(format!("column {column}: must be a finite number, 0 or more (is {number})")),
        Err(_) => Err(format!("column {column}: `{text}` is not a number")),
    }
}
