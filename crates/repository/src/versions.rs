//! Which versions of a model there are, and which are served.

use std::fs;
use std::path::Path;

use downbeat_oip::proto::ModelVersionPolicy;
use downbeat_oip::proto::model_version_policy::PolicyChoice;

use crate::ModelError;

/// The versions in a model's directory, ascending: directories whose name is a number above 0, without leading zeros.
pub(crate) fn present(directory: &Path) -> Result<Vec<u64>, ModelError> {
    let unreadable = |error: std::io::Error| ModelError::new(directory, format!("cannot be read: {error}"));
    let mut numbers = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let number = name.parse::<u64>().ok().filter(|&number| number > 0 && number.to_string() == name);
        numbers.extend(number.filter(|_| entry.path().is_dir()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// The versions that a policy serves, of those that are present; without a policy, the newest.
pub(crate) fn chosen(policy: Option<&ModelVersionPolicy>, present: &[u64]) -> Result<Vec<u64>, String> {
    match policy.and_then(|policy| policy.policy_choice.as_ref()) {
        Some(PolicyChoice::All(_)) => Ok(present.to_vec()),
        Some(PolicyChoice::Specific(specific)) if specific.versions.is_empty() => {
            Err("version_policy.specific names no version; name some, or leave version_policy out".to_owned())
        }
        Some(PolicyChoice::Specific(specific)) => {
            let mut chosen = specific
                .versions
                .iter()
                .map(|&wanted| {
                    u64::try_from(wanted).ok().filter(|number| present.contains(number)).ok_or_else(|| {
                        format!("version_policy.specific names version {wanted}, which is not there; there are {present:?}")
                    })
                })
                .collect::<Result<Vec<u64>, String>>()?;
            chosen.sort_unstable();
            chosen.dedup();
            Ok(chosen)
        }
        Some(PolicyChoice::Latest(latest)) => Ok(newest(present, latest.num_versions.max(1) as usize)),
        None => Ok(newest(present, 1)),
    }
}

fn newest(present: &[u64], count: usize) -> Vec<u64> {
    present[present.len().saturating_sub(count)..].to_vec()
}

#[cfg(test)]
mod tests;
