//! Finding a model and a class by the names people give them, and helping where there is no such name.

use std::fmt;

use super::{ProfileFile, Series};
use crate::{DeviceClass, ProfileError};

/// Why a profile file has no profile to give for a model and a class.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LookupError {
    /// The file has no such model.
    #[error("{file} has no model {model:?}; {near}")]
    UnknownModel {
        /// The file.
        file: String,
        /// The name asked for.
        model: String,
        /// What it may have meant.
        near: Near,
    },
    /// The file has no such class, and no device with such a slice.
    #[error("{file} has no device class or slice {class:?}; {near}")]
    UnknownClass {
        /// The file.
        file: String,
        /// The name asked for.
        class: String,
        /// What it may have meant.
        near: Near,
    },
    /// Several devices of the file have the slice.
    #[error("{file} has the slice {slice:?} of several devices; name one: {}", list(classes))]
    AmbiguousSlice {
        /// The file.
        file: String,
        /// The name asked for.
        slice: String,
        /// The classes it may have meant.
        classes: Vec<DeviceClass>,
    },
    /// The file has the model and the class, but not together.
    #[error("{file} has {model} on {}, not on {class}", list(measured))]
    NotMeasured {
        /// The file.
        file: String,
        /// The model.
        model: String,
        /// The class asked for.
        class: DeviceClass,
        /// The classes the model was measured on.
        measured: Vec<DeviceClass>,
    },
    /// The measurements are there, but make no profile up to the batch size asked for.
    #[error("{file}: {model} on {class}: {why}")]
    Unprofiled {
        /// The file.
        file: String,
        /// The model.
        model: String,
        /// The class.
        class: DeviceClass,
        /// What they lack.
        why: ProfileError,
    },
}

impl ProfileFile {
    /// The measurements of `model` on the class or slice named `class`.
    pub(super) fn series(&self, model: &str, class: &str) -> Result<(&DeviceClass, &Series), LookupError> {
        let Some(on) = self.models.get(model) else {
            return Err(LookupError::UnknownModel {
                file: self.name.clone(),
                model: model.to_owned(),
                near: Near::to(model, self.models.keys().map(String::as_str)),
            });
        };
        let class = self.class(class)?;
        on.get_key_value(class).ok_or_else(|| LookupError::NotMeasured {
            file: self.name.clone(),
            model: model.to_owned(),
            class: class.clone(),
            measured: on.keys().cloned().collect(),
        })
    }

    /// The class called `name`, or else the only one with a slice called so.
    fn class(&self, name: &str) -> Result<&DeviceClass, LookupError> {
        if let Some(class) = self.classes.iter().find(|class| class.as_str() == name) {
            return Ok(class);
        }
        let with_slice: Vec<_> = self.classes.iter().filter(|class| class.slice() == Some(name)).collect();
        match with_slice[..] {
            [class] => Ok(class),
            [] => Err(LookupError::UnknownClass {
                file: self.name.clone(),
                class: name.to_owned(),
                near: Near::to(name, self.classes.iter().map(DeviceClass::as_str)),
            }),
            _ => Err(LookupError::AmbiguousSlice {
                file: self.name.clone(),
                slice: name.to_owned(),
                classes: with_slice.into_iter().cloned().collect(),
            }),
        }
    }
}

/// The names that an unknown name may have meant: those like it, or else those there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Near {
    /// Names much like the unknown one, the likeliest first; at most [`Near::MOST_ALIKE`].
    pub alike: Vec<String>,
    /// The names there are, in order; at most [`Near::MOST_LISTED`].
    pub listed: Vec<String>,
    /// How many names there are in all.
    pub known: usize,
}

impl Near {
    /// How many alike names are kept.
    pub const MOST_ALIKE: usize = 3;
    /// How many names are listed.
    pub const MOST_LISTED: usize = 10;

    fn to<'a>(unknown: &str, known: impl ExactSizeIterator<Item = &'a str> + Clone) -> Near {
        // Jaro-Winkler favours a shared beginning: what is missing is mostly the end (resnet for resnet50).
        const ALIKE: f64 = 0.85;
        let unknown = unknown.to_lowercase();
        let mut alike: Vec<_> = known
            .clone()
            .map(|name| {
                let slice = name.rsplit('/').next().unwrap_or(name);
                let score = |name: &str| strsim::jaro_winkler(&unknown, &name.to_lowercase());
                (score(name).max(score(slice)), name)
            })
            .filter(|(score, _)| *score >= ALIKE)
            .collect();
        alike.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        Near {
            alike: alike.iter().take(Near::MOST_ALIKE).map(|(_, name)| (*name).to_owned()).collect(),
            known: known.len(),
            listed: known.take(Near::MOST_LISTED).map(str::to_owned).collect(),
        }
    }
}

impl fmt::Display for Near {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.alike.is_empty() {
            return write!(f, "did you mean {}?", self.alike.join(" or "));
        }
        write!(f, "it has {}", self.listed.join(", "))?;
        match self.known.saturating_sub(self.listed.len()) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

fn list(classes: &[DeviceClass]) -> String {
    classes.iter().map(DeviceClass::as_str).collect::<Vec<_>>().join(", ")
}
