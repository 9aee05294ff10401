//! Settings as people write them.

/// A finite number, 0 or more.
pub(super) fn number(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => Err(format!("'{text}' is not a number of 0 or more")),
    }
}

/// The complaint about a key that a policy does not have.
pub(super) fn unknown(policy: &str, key: &str, keys: &[&str]) -> String {
    format!("{policy} has no setting '{key}'; it has {}", keys.join(", "))
}
