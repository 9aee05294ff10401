//! What is wrong with a scenario, and where.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Why a scenario cannot be simulated. One line that names the file, the line in it and the key.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The text is not a scenario.
    #[error("{}{}: {message}", path.display(), Colon(*line))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Counted from 1; `None` where something is missing that has no place.
        line: Option<usize>,
        /// What is wrong, and with which key.
        message: String,
    },
}

/// `:14`, or nothing.
struct Colon(Option<usize>);

impl fmt::Display for Colon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |line| write!(f, ":{line}"))
    }
}

/// The text that is being read, to say where in it something is wrong.
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    pub(super) path: &'a Path,
}

impl Source<'_> {
    /// Something is wrong at this place in the text; without a place, with the file as a whole.
    pub(super) fn invalid(&self, at: Option<Range<usize>>, message: impl fmt::Display) -> ScenarioError {
        ScenarioError::Invalid {
            path: self.path.to_owned(),
            line: at.map(|at| self.line(at.start)),
            message: message.to_string().replace('\n', " "),
        }
    }

    /// The text is not TOML, or not of a scenario's shape.
    pub(super) fn not_parsed(&self, error: &toml::de::Error) -> ScenarioError {
        let message = error.message();
        let key = error.span().and_then(|at| self.key_before(at.start));
        let said = if let Some(key) = between(message, "unknown field `", "`") {
            let known: Vec<&str> = quoted(message.split_once("expected").map_or("", |(_, known)| known));
            format!("unknown key `{key}`{}", suggestion(key, &known))
        } else if let Some(key) = between(message, "missing field `", "`") {
            format!("{key} is missing")
        } else if let ("duplicate key", Some(at)) = (message, error.span()) {
            format!("{} is given twice", self.text.get(at).unwrap_or("a key").trim())
        } else if let Some((found, wanted)) = wrong_type(message) {
            let header = error.span().and_then(|at| self.text.get(at.start..)?.lines().next());
            match (key, header) {
                (Some(key), _) => format!("{key} must be {wanted} (is {found})"),
                (None, Some(header)) if header.starts_with('[') && found == "a table" => {
                    format!("{header} is a list of tables; write [{header}]")
                }
                (None, _) => format!("what is listed here must be {wanted} (is {found})"),
            }
        } else if let Some(key) = key {
            let message = message.replace("integer number overflowed", "the number is too large");
            format!("{key}: {message}")
        } else {
            message.to_owned()
        };
        self.invalid(error.span(), said)
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
    let closest =
        known.iter().max_by(|a, b| strsim::jaro_winkler(word, a).total_cmp(&strsim::jaro_winkler(word, b)));
    match closest {
        Some(closest) if strsim::jaro_winkler(word, closest) > 0.8 => format!("; did you mean `{closest}`?"),
        Some(_) => format!("; known here: {}", known.join(", ")),
        None => String::new(),
    }
}

/// What stands in the place of what, in words of the file and not of the parser; `None` for any other message.
fn wrong_type(message: &str) -> Option<(String, &str)> {
    let (found, wanted) = message.strip_prefix("invalid ")?.split_once(", expected ")?;
    let too_large = found.starts_with("value: integer") || found.ends_with("128");
    let found = match found.split_once(": ").map_or(found, |(_, found)| found) {
        "map" => "a table".to_owned(),
        list if list == "sequence" || list.starts_with("length ") => "a list".to_owned(),
        string if string.starts_with("string ") => string.replacen("string ", "", 1),
        number => quoted(number).first().copied().unwrap_or(number).to_owned(),
    };
    let wanted = match wanted {
        "i64" if too_large => "a smaller whole number",
        "i64" => "a whole number",
        "f64" => "a number",
        "a string" => "text in quotes",
        "a sequence" => "a list of tables",
        "a map" => "a table",
        other => other,
    };
    Some((found, wanted))
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    text.strip_prefix(before)?.split_once(after).map(|(inside, _)| inside)
}

/// The words between backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}
