//! What is wrong with a problem file, and where.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use downbeat_profile::ProfileFileError;
use toml::Spanned;

/// Why there is nothing to divide. One line that names the file, the line in it and the key.
#[derive(Debug, thiserror::Error)]
pub enum ProblemError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The text is not a problem.
    #[error("{}{}: {message}", path.display(), line.map_or_else(String::new, |line| format!(":{line}")))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Counted from 1; `None` where something is missing that has no place.
        line: Option<usize>,
        /// What is wrong, and with which key.
        message: String,
    },
    /// A profile file that it names is of no use.
    #[error(transparent)]
    Profiles(#[from] ProfileFileError),
}

/// The text that is being read, to say where in it something is wrong.
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    pub(super) path: &'a Path,
}

impl Source<'_> {
    /// Something is wrong at this place in the text; without a place, with the file as a whole.
    pub(super) fn invalid(&self, at: Option<Range<usize>>, message: impl fmt::Display) -> ProblemError {
        ProblemError::Invalid {
            path: self.path.to_owned(),
            line: at.map(|at| self.line(at.start)),
            message: message.to_string().replace('\n', " "),
        }
    }

    /// The text is not TOML, or not of a problem's shape.
    pub(super) fn not_parsed(&self, error: &toml::de::Error) -> ProblemError {
        let message = error.message();
        let word = |before: &str| message.strip_prefix(before)?.split_once('`').map(|(word, _)| word);
        let said = if let Some(key) = word("unknown field `") {
            let known = message.split_once("expected").map_or("", |(_, known)| known);
            let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
            format!("unknown key `{key}`{}", suggestion(key, &known))
        } else if let Some(key) = word("missing field `") {
            format!("{key} is missing")
        } else {
            let key = error.span().and_then(|at| self.key_before(at.start));
            key.map_or_else(|| message.to_owned(), |key| format!("{key}: {message}"))
        };
        self.invalid(error.span(), said)
    }

    /// A finite number above 0, or from 0 where `or_none`, and at most `most`.
    pub(super) fn number(
        &self,
        who: &str,
        key: &str,
        value: &Spanned<f64>,
        or_none: bool,
        most: f64,
    ) -> Result<f64, ProblemError> {
        let number = *value.get_ref();
        let wrong = |rule: String| {
            Err(self.invalid(Some(value.span()), format!("{who}{key} must be {rule} (is {number})")))
        };
        match number {
            _ if number.is_nan() || number < 0.0 || (number == 0.0 && !or_none) => wrong(if or_none {
                "a number of 0 or more".to_owned()
            } else {
                "a number above 0".to_owned()
            }),
            _ if number > most => wrong(format!("at most {most}")),
            _ => Ok(number),
        }
    }

    /// A whole number from 1 to `most`.
    pub(super) fn whole(
        &self,
        who: &str,
        key: &str,
        value: &Spanned<i64>,
        most: u32,
    ) -> Result<u32, ProblemError> {
        let number = *value.get_ref();
        u32::try_from(number).ok().filter(|number| (1..=most).contains(number)).ok_or_else(|| {
            let message = format!("{who}{key} must be a whole number from 1 to {most} (is {number})");
            self.invalid(Some(value.span()), message)
        })
    }

    /// The line, counted from 1, that a byte of the text is on.
    fn line(&self, offset: usize) -> usize {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        before.iter().filter(|&&byte| byte == b'\n').count() + 1
    }

    /// The key whose value begins at `offset`, where the text before it on the line ends in `key =`.
    fn key_before(&self, offset: usize) -> Option<&str> {
        let line = self.text.get(..offset)?.rsplit('\n').next()?;
        let key = line.trim_end().strip_suffix('=')?.trim_end();
        let begin = key.rfind([' ', '\t', ',', '{']).map_or(0, |last| last + 1);
        Some(&key[begin..]).filter(|key| !key.is_empty())
    }
}

/// `; did you mean `x`?` where one of the known words is close, otherwise the list of them.
pub(super) fn suggestion(word: &str, known: &[&str]) -> String {
    let alike = |known: &str| strsim::jaro_winkler(word, known);
    match known.iter().max_by(|a, b| alike(a).total_cmp(&alike(b))) {
        Some(closest) if alike(closest) > 0.8 => format!("; did you mean `{closest}`?"),
        Some(_) if known.len() <= 20 => format!("; known here: {}", known.join(", ")),
        Some(_) => format!("; {} are known", known.len()),
        None => String::new(),
    }
}
