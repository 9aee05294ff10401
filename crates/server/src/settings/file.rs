//! `downbeat.toml`.

use std::fs;
use std::path::{Path, PathBuf};

use super::{KEYS, Layer, SettingsError};

pub(super) fn read(path: &Path) -> Result<Layer, SettingsError> {
    let file = path.display().to_string();
    let text = fs::read_to_string(path).map_err(|error| SettingsError::Read { file: file.clone(), error })?;
    let mut layer = parse(&text).map_err(|problem| SettingsError::File { file, problem })?;
    // What a file names is beside the file, wherever the server is started.
    let folder = path.parent().unwrap_or(Path::new(""));
    let beside = |path: &mut PathBuf| {
        // What is empty is not set.
        if !path.as_os_str().is_empty() {
            *path = folder.join(&*path);
        }
    };
    layer.model_repository.as_mut().map(beside);
    layer.onnxruntime.as_mut().map(beside);
    layer.cache_dir.as_mut().map(beside);
    layer.profile.iter_mut().flatten().for_each(beside);
    Ok(layer)
}

fn parse(text: &str) -> Result<Layer, String> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    if let Some(unknown) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
        let like = |known: &&&str| strsim::jaro_winkler(known, &unknown.replace('-', "_"));
        let nearest =
            KEYS.iter().max_by(|a, b| like(a).total_cmp(&like(b))).filter(|known| like(known) > 0.8);
        let hint = match nearest {
            Some(known) => format!("did you mean {known:?}?"),
            None => format!("the keys are {}", KEYS.join(", ")),
        };
        return Err(format!("unknown key {unknown:?}; {hint}"));
    }
    toml::from_str(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
