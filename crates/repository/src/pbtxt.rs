//! Configurations in the text format of protobuf: `config.pbtxt`.

mod colons;

use std::path::Path;

use downbeat_oip::config::WrittenConfig;
use miette::Diagnostic;
use prost_reflect::DynamicMessage;

use crate::ModelError;
use colons::Explicit;

/// Parses a configuration. Errors name `file`, the line and the column.
pub fn parse_config(text: &str, file: &Path) -> Result<WrittenConfig, ModelError> {
    let internal = |problem: &str| ModelError::new(file, problem);
    let descriptor =
        WrittenConfig::descriptor().ok_or_else(|| internal("the program was built without its messages"))?;
    let explicit = Explicit::new(text);
    let message = DynamicMessage::parse_text_format(descriptor, &explicit.text).map_err(|error| {
        let place = error.labels().and_then(|mut labels| labels.next()).map(|label| label.offset());
        let offset = place.map_or(text.len(), |offset| explicit.original(offset));
        let (line, column) = position(text, offset);
        ModelError::new(file, format!("line {line}, column {column}: {error}"))
    })?;
    WrittenConfig::of(&message).map_err(|error| internal(&error.to_string()))
}

/// The line and the column of a byte, both counted from 1.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests;
