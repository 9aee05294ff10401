//! TOML that people write: what is wrong with it, and where, in words of the file and not of the parser.
//!
//! Whoever reads a file has a [`Source`] that names its own error; every [`Mistake`] is one line with the file, the
//! line and the key.
//!
//! ```
//! use downbeat_input::{Mistake, Source};
//!
//! #[derive(serde::Deserialize, Debug)]
//! #[serde(deny_unknown_fields)]
//! struct File { rate_rps: toml::Spanned<f64> }
//!
//! let source: Source<'_, Mistake> = Source::new("rate_rsp = 3", "shop.toml".as_ref());
//! let mistake = source.parse::<File>().unwrap_err();
//! assert_eq!(mistake.to_string(), "shop.toml:1: unknown key `rate_rsp`; did you mean `rate_rps`?");
//! ```

mod parser;
mod suggestion;
#[cfg(test)]
mod tests;

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use toml::Spanned;

pub use suggestion::suggestion;

/// Something is wrong with a file. One line that names the file, the line in it and the key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {message}", path.display(), line.map_or_else(String::new, |line| format!(":{line}")))]
pub struct Mistake {
    /// The file.
    pub path: PathBuf,
    /// Counted from 1; `None` where something is missing that has no place.
    pub line: Option<usize>,
    /// What is wrong, and with which key.
    pub message: String,
}

/// The text that is being read, to say where in it something is wrong; mistakes become `E`, the error of who reads it.
#[derive(Debug)]
pub struct Source<'a, E> {
    text: &'a str,
    path: &'a Path,
    error: PhantomData<fn() -> E>,
}

impl<'a, E: From<Mistake>> Source<'a, E> {
    /// Text that came from this file.
    pub fn new(text: &'a str, path: &'a Path) -> Source<'a, E> {
        Source { text, path, error: PhantomData }
    }

    /// The folder that paths in the text are relative to.
    pub fn folder(&self) -> &'a Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// The file that `key` names, relative to this one; it must be there.
    pub fn file(&self, key: &str, named: &Spanned<String>) -> Result<PathBuf, E> {
        let path = self.folder().join(named.get_ref());
        let what = match (path.is_file(), path.is_dir()) {
            (true, _) => return Ok(path),
            (false, true) => format!("{} is a directory, not a file", path.display()),
            (false, false) => format!("there is no file {}", path.display()),
        };
        Err(self.invalid(Some(named.span()), format!("{key}: {what}")))
    }

    /// Something is wrong at this place in the text; without a place, with the file as a whole.
    pub fn invalid(&self, at: Option<Range<usize>>, message: impl fmt::Display) -> E {
        let line = at.map(|at| self.line(at.start));
        Mistake { path: self.path.to_owned(), line, message: message.to_string().replace('\n', " ") }.into()
    }

    /// Reads the text as TOML of this shape.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, E> {
        toml::from_str(self.text).map_err(|error| self.not_parsed(&error))
    }

    /// The text is not TOML, or not of the shape that was asked for.
    pub fn not_parsed(&self, error: &toml::de::Error) -> E {
        self.invalid(error.span(), parser::in_words(error, self.text))
    }

    /// A finite number above 0 and at most `most`. `who` stands before the key in messages.
    pub fn positive(&self, who: &str, key: &str, value: &Spanned<f64>, most: f64) -> Result<f64, E> {
        self.number(who, key, value, *value.get_ref() > 0.0, "a number above 0", most)
    }

    /// A finite number of 0 or more and at most `most`.
    pub fn not_negative(&self, who: &str, key: &str, value: &Spanned<f64>, most: f64) -> Result<f64, E> {
        self.number(who, key, value, *value.get_ref() >= 0.0, "a number of 0 or more", most)
    }

    fn number(
        &self,
        who: &str,
        key: &str,
        value: &Spanned<f64>,
        holds: bool,
        rule: &str,
        most: f64,
    ) -> Result<f64, E> {
        let number = *value.get_ref();
        let wrong = |rule: &str| {
            Err(self.invalid(Some(value.span()), format!("{who}{key} must be {rule} (is {number})")))
        };
        match number {
            _ if !holds => wrong(rule),
            _ if number > most => wrong(&format!("at most {most}")),
            _ => Ok(number),
        }
    }

    /// A whole number from `least` to `most`.
    pub fn whole(&self, who: &str, key: &str, value: &Spanned<i64>, least: u32, most: u32) -> Result<u32, E> {
        let number = *value.get_ref();
        u32::try_from(number).ok().filter(|number| (least..=most).contains(number)).ok_or_else(|| {
            let said = format!("{who}{key} must be a whole number from {least} to {most} (is {number})");
            self.invalid(Some(value.span()), said)
        })
    }

    /// The line, counted from 1, that a byte of the text is on.
    fn line(&self, offset: usize) -> usize {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        before.iter().filter(|&&byte| byte == b'\n').count() + 1
    }
}
