//! Words that were perhaps meant.

/// Names are listed up to so many.
const MOST_LISTED: usize = 40;

/// `; did you mean `x`?` where one of the known words is close, otherwise the list of them; how many there are where
/// that would be long.
pub fn suggestion(word: &str, known: &[&str]) -> String {
    let alike = |known: &str| strsim::jaro_winkler(word, known);
    match known.iter().max_by(|a, b| alike(a).total_cmp(&alike(b))) {
        Some(closest) if alike(closest) > 0.8 => format!("; did you mean `{closest}`?"),
        Some(_) if known.len() <= MOST_LISTED => format!("; known here: {}", known.join(", ")),
        Some(_) => format!("; {} are known", known.len()),
        None => String::new(),
    }
}
