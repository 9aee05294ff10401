//! What the TOML parser says, in words of the file.

use crate::suggestion;

/// What is wrong with the text.
pub(crate) fn in_words(error: &toml::de::Error, text: &str) -> String {
    let message = error.message();
    let key = error.span().and_then(|at| key_before(text, at.start));
    if let Some(key) = word_after(message, "unknown field `") {
        let known = quoted(message.split_once("expected").map_or("", |(_, known)| known));
        return format!("unknown key `{key}`{}", suggestion(key, &known));
    }
    if let Some(key) = word_after(message, "missing field `") {
        return format!("{key} is missing");
    }
    if let ("duplicate key", Some(at)) = (message, error.span()) {
        return format!("{} is given twice", text.get(at).unwrap_or("a key").trim());
    }
    if let Some((found, wanted)) = wrong_type(message) {
        let header = error.span().and_then(|at| text.get(at.start..)?.lines().next());
        return match (key, header) {
            (Some(key), _) => format!("{key} must be {wanted} (is {found})"),
            (None, Some(header)) if header.starts_with('[') && found == "a table" => {
                format!("{header} is a list of tables; write [{header}]")
            }
            (None, _) => format!("what is listed here must be {wanted} (is {found})"),
        };
    }
    match key {
        Some(key) => {
            let message = message.replace("integer number overflowed", "the number is too large");
            format!("{key}: {message}")
        }
        None => message.to_owned(),
    }
}

/// The key whose value begins at `offset`, where the text before it on the line ends in `key =`.
fn key_before(text: &str, offset: usize) -> Option<&str> {
    let line = text.get(..offset)?.rsplit('\n').next()?;
    let key = line.trim_end().strip_suffix('=')?.trim_end();
    let begin = key.rfind([' ', '\t', ',', '{']).map_or(0, |last| last + 1);
    Some(&key[begin..]).filter(|key| !key.is_empty())
}

/// What stands in the place of what; `None` for any other message.
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

fn word_after<'a>(text: &'a str, before: &str) -> Option<&'a str> {
    text.strip_prefix(before)?.split_once('`').map(|(inside, _)| inside)
}

/// The words between backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}
