//! Settings as people write them: `delay=0.25slo`, `ahead=10ms`.

use std::fmt;
use std::str::FromStr;

use downbeat_sched::Span;

/// A span that is given outright, or as a share of each model's SLO.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SloSpan {
    /// The same for every model.
    Fixed(Span),
    /// This many times the model's SLO.
    Share(f64),
}

impl SloSpan {
    /// The span for a model with this SLO.
    pub fn of(self, slo: Span) -> Span {
        match self {
            SloSpan::Fixed(span) => span,
            SloSpan::Share(share) => Span::from_secs_f64(slo.as_secs_f64() * share),
        }
    }
}

impl fmt::Display for SloSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SloSpan::Fixed(span) => f.write_str(&show_span(*span)),
            SloSpan::Share(share) => write!(f, "{share}slo"),
        }
    }
}

impl FromStr for SloSpan {
    type Err = String;

    fn from_str(text: &str) -> Result<SloSpan, String> {
        match text.strip_suffix("slo") {
            Some(share) => Ok(SloSpan::Share(number(share)?)),
            None => Ok(SloSpan::Fixed(span(text)?)),
        }
    }
}

/// `2ms`, `250us`, `1.5s` or `0`.
pub(super) fn span(text: &str) -> Result<Span, String> {
    let units = [("us", 1e-3), ("ms", 1.0), ("s", 1e3)];
    match units.iter().find_map(|(unit, ms)| Some((text.strip_suffix(unit)?, ms))) {
        Some((count, ms)) => Ok(Span::from_millis_f64(number(count)? * ms)),
        None if text == "0" => Ok(Span::ZERO),
        None => Err(format!("'{text}' is not a span of time; write 2ms, 250us, 1.5s or 0")),
    }
}

/// A finite number, 0 or more.
pub(super) fn number(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => Err(format!("'{text}' is not a number of 0 or more")),
    }
}

/// A whole number, 1 or more.
pub(super) fn count(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(value) if value >= 1 => Ok(value),
        _ => Err(format!("'{text}' is not a whole number of 1 or more")),
    }
}

/// `off`, or what `parse` makes of it.
pub(super) fn optional<T>(
    text: &str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    if text == "off" { Ok(None) } else { parse(text).map(Some) }
}

/// A setting of a policy, for help texts and for telling which there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) key: &'static str,
    /// What may be written as its value.
    pub(crate) values: &'static str,
}

/// The complaint about a key that a policy does not have.
pub(crate) fn unknown(key: &str, settings: &[Setting]) -> String {
    if settings.is_empty() {
        return format!("there is no setting '{key}'; this policy has none");
    }
    let known: Vec<&str> = settings.iter().map(|setting| setting.key).collect();
    format!("there is no setting '{key}'; known are {}", known.join(", "))
}

/// `key=value` for each setting that is shown, as the command line takes it.
pub(super) fn write(
    f: &mut fmt::Formatter<'_>,
    settings: &[Setting],
    shown: impl Fn(&str) -> Option<String>,
) -> fmt::Result {
    let shown = settings.iter().filter_map(|it| Some(format!("{}={}", it.key, shown(it.key)?)));
    f.write_str(&shown.collect::<Vec<_>>().join(":"))
}

/// A span as [`span`] reads it.
pub(super) fn show_span(span: Span) -> String {
    if span == Span::ZERO { "0".to_owned() } else { format!("{span:?}") }
}

/// A value as [`optional`] reads it.
pub(super) fn show_optional<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "off".to_owned(), show)
}
