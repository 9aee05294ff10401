//! Checks of single values, with the messages they give.

use std::fmt;
use std::ops::Range;

use downbeat_sched::Span;
use toml::Spanned;

use super::error::{ScenarioError, Source, suggestion};

/// The longest time a scenario may name, in seconds: a third of a year. The clock goes further, patience does not.
pub(super) const LONGEST_S: f64 = 1e7;

/// A table of the file and the name it goes by in messages.
pub(super) struct Place<'a> {
    pub(super) source: &'a Source<'a>,
    /// What messages begin with, e.g. `model "r50": `.
    pub(super) who: String,
}

/// The smallest number that is allowed.
#[derive(Clone, Copy)]
pub(super) enum Least {
    Above(f64),
    From(f64),
}

impl Place<'_> {
    /// Something is wrong with the value at this place.
    pub(super) fn wrong(&self, at: Range<usize>, message: impl fmt::Display) -> ScenarioError {
        self.source.invalid(Some(at), format_args!("{}{message}", self.who))
    }

    /// A finite number of at least `least` and at most `most`.
    pub(super) fn number(
        &self,
        key: &str,
        value: &Spanned<f64>,
        least: Least,
        most: f64,
    ) -> Result<f64, ScenarioError> {
        let number = *value.get_ref();
        let wrong =
            |rule: String| Err(self.wrong(value.span(), format!("{key} must be {rule} (is {number})")));
        match least {
            Least::Above(least) if number.is_nan() || number <= least => wrong(format!("above {least}")),
            Least::From(least) if number.is_nan() || number < least => wrong(format!("at least {least}")),
            _ if number > most => wrong(format!("at most {most}")),
            _ => Ok(number),
        }
    }

    /// A whole number from `least` to `most`.
    pub(super) fn whole(
        &self,
        key: &str,
        value: &Spanned<i64>,
        least: u32,
        most: u32,
    ) -> Result<u32, ScenarioError> {
        let number = *value.get_ref();
        let wrong =
            |rule: String| Err(self.wrong(value.span(), format!("{key} must be {rule} (is {number})")));
        match u32::try_from(number) {
            Ok(number) if number < least => wrong(format!("at least {least}")),
            Ok(number) if number <= most => Ok(number),
            Err(_) if number < 0 => wrong(format!("at least {least}")),
            _ => wrong(format!("at most {most}")),
        }
    }

    /// A time in units of `unit_s` seconds, long enough to be told from none.
    pub(super) fn time(&self, key: &str, value: &Spanned<f64>, unit_s: f64) -> Result<Span, ScenarioError> {
        let number = self.number(key, value, Least::Above(0.0), LONGEST_S / unit_s)?;
        match span(number, unit_s) {
            Span::ZERO => {
                Err(self.wrong(value.span(), format!("{key} must be at least a nanosecond (is {number})")))
            }
            time => Ok(time),
        }
    }

    /// A time in units of `unit_s` seconds, which may be none and is if it is not given.
    pub(super) fn time_or_none(
        &self,
        key: &str,
        value: Option<&Spanned<f64>>,
        unit_s: f64,
    ) -> Result<Span, ScenarioError> {
        let Some(value) = value else { return Ok(Span::ZERO) };
        Ok(span(self.number(key, value, Least::From(0.0), LONGEST_S / unit_s)?, unit_s))
    }

    /// The value of a key that `needed_by` cannot do without.
    pub(super) fn needed<'v, T>(
        &self,
        key: &str,
        value: Option<&'v Spanned<T>>,
        table: Range<usize>,
        needed_by: &str,
    ) -> Result<&'v Spanned<T>, ScenarioError> {
        value.ok_or_else(|| self.wrong(table, format!("{key} is missing; {needed_by} needs it")))
    }

    /// Refuses a key that `unused_by` has no use for.
    pub(super) fn unused<T>(
        &self,
        key: &str,
        value: Option<&Spanned<T>>,
        unused_by: &str,
    ) -> Result<(), ScenarioError> {
        match value {
            Some(value) => Err(self.wrong(value.span(), format!("{key} cannot be given with {unused_by}"))),
            None => Ok(()),
        }
    }

    /// A name that can be printed on one line.
    pub(super) fn name(&self, name: &Spanned<String>) -> Result<(), ScenarioError> {
        if name.get_ref().trim().is_empty() {
            return Err(self.wrong(name.span(), "the name must not be empty"));
        }
        if name.get_ref().chars().any(char::is_control) {
            return Err(self.wrong(name.span(), "the name must not have control characters in it"));
        }
        Ok(())
    }

    /// A word that is none of those known.
    pub(super) fn unknown(&self, what: &str, word: &Spanned<String>, known: &[&str]) -> ScenarioError {
        let name = word.get_ref();
        self.wrong(word.span(), format!("{what} {name:?} is not known{}", suggestion(name, known)))
    }
}

fn span(number: f64, unit_s: f64) -> Span {
    Span::from_secs_f64(number * unit_s)
}
