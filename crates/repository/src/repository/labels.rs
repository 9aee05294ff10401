//! The names of classes, for clients that ask for a classification.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use downbeat_oip::proto::ModelConfig;

use super::place;
use crate::ModelError;

/// The lines of each output's label file.
pub(super) fn read(
    directory: &Path,
    config: &ModelConfig,
) -> Result<BTreeMap<String, Vec<String>>, ModelError> {
    let labelled = config.output.iter().filter(|output| !output.label_filename.is_empty());
    labelled
        .map(|output| {
            let name = &output.label_filename;
            let file = place::beneath(directory, name).ok_or_else(|| {
                ModelError::new(
                    directory,
                    format!("label_filename is {name:?}; it must be the name of a file"),
                )
            })?;
            let text = fs::read_to_string(&file).map_err(|error| {
                ModelError::new(
                    &file,
                    format!("the labels of the output {:?} cannot be read: {error}", output.name),
                )
            })?;
            Ok((output.name.clone(), text.lines().map(|line| line.trim_end().to_owned()).collect()))
        })
        .collect()
}
