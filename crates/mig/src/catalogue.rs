//! The GPUs there are, read from tables.

mod rows;
#[cfg(test)]
mod tests;

use std::path::Path;

use crate::{Evidence, GpuModel};

pub use rows::GeometryError;

/// What the project carries of NVIDIA's tables; the file's first line says where each column comes from.
const BUILTIN: &str = include_str!("../data/mig_geometry.csv");

/// A set of GPU models.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    gpus: Vec<GpuModel>,
}

/// A GPU's name is not known, or is the beginning of several.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownGpu {
    /// No name begins like this.
    #[error("GPU {name:?} is not known; {}", near(alike, known))]
    Unknown {
        /// As given.
        name: String,
        /// Names much like it, the likeliest first.
        alike: Vec<String>,
        /// All names.
        known: Vec<String>,
    },
    /// Several names begin like this.
    #[error("GPU {name:?} may be {}; write one of them in full", of.join(" or "))]
    Ambiguous {
        /// As given.
        name: String,
        /// What it may be.
        of: Vec<String>,
    },
}

fn near(alike: &[String], known: &[String]) -> String {
    if alike.is_empty() {
        format!("known are {}", known.join(", "))
    } else {
        format!("did you mean {}?", alike.join(" or "))
    }
}

impl Catalogue {
    /// The GPUs that Downbeat knows by itself.
    ///
    /// The table was checked when it was built in (a test reads it): what cannot be read of it is left out.
    pub fn builtin() -> Catalogue {
        let gpus = rows::gpus(BUILTIN, "mig_geometry.csv", None).unwrap_or_default();
        Catalogue { gpus }
    }

    /// Adds the GPUs of a file, in the place of those of the same name. The columns are those of the built-in table;
    /// `gpu`, `profile`, `compute_g`, `mem_units`, `mem_units_total`, `mem_gib_or_mib` and `placements` must be there.
    pub fn add_file(&mut self, path: &Path) -> Result<(), GeometryError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|cause| GeometryError {
            file: name.clone(),
            line: None,
            message: cause.to_string(),
        })?;
        self.add(&text, &name)
    }

    /// Adds the GPUs of a table; see [`add_file`](Self::add_file). `name` is what messages call it.
    pub fn add(&mut self, text: &str, name: &str) -> Result<(), GeometryError> {
        for gpu in rows::gpus(text, name, Some(Evidence::UserDefined))? {
            self.gpus.retain(|known| known.name != gpu.name);
            self.gpus.push(gpu);
        }
        Ok(())
    }

    /// All of them.
    pub fn gpus(&self) -> &[GpuModel] {
        &self.gpus
    }

    /// Adds a GPU that was read before; one of its name is replaced.
    pub fn insert(&mut self, gpu: GpuModel) {
        self.gpus.retain(|known| known.name != gpu.name);
        self.gpus.push(gpu);
    }

    /// The GPU called `name`, in full or by the beginning of one name only; case and punctuation do not matter.
    pub fn find(&self, name: &str) -> Result<&GpuModel, UnknownGpu> {
        let wanted = bare(name);
        if let Some(gpu) = self.gpus.iter().find(|gpu| bare(&gpu.name) == wanted) {
            return Ok(gpu);
        }
        let found: Vec<&GpuModel> = self.gpus.iter().filter(|gpu| is_called(gpu, &wanted)).collect();
        match found[..] {
            [gpu] if !wanted.is_empty() => Ok(gpu),
            [_, _, ..] if !wanted.is_empty() => Err(UnknownGpu::Ambiguous {
                name: name.to_owned(),
                of: found.iter().map(|gpu| gpu.name.clone()).collect(),
            }),
            _ => Err(self.unknown(name, &wanted)),
        }
    }

    fn unknown(&self, name: &str, wanted: &str) -> UnknownGpu {
        // Jaro-Winkler favours a shared beginning, which is where GPU names differ.
        const ALIKE: f64 = 0.75;
        let mut scored: Vec<_> =
            self.gpus.iter().map(|gpu| (strsim::jaro_winkler(wanted, &bare(&gpu.name)), &gpu.name)).collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        UnknownGpu::Unknown {
            name: name.to_owned(),
            alike: scored
                .iter()
                .filter(|(score, _)| *score >= ALIKE)
                .take(2)
                .map(|(_, name)| (*name).clone())
                .collect(),
            known: self.gpus.iter().map(|gpu| gpu.name.clone()).collect(),
        }
    }
}

/// Whether a GPU's name, or the other name that stands in parentheses, begins like this.
fn is_called(gpu: &GpuModel, wanted: &str) -> bool {
    let other = gpu.name.split_once('(').map(|(_, other)| bare(other));
    bare(&gpu.name).starts_with(wanted) || other.is_some_and(|other| other.starts_with(wanted))
}

/// A name without case and punctuation.
fn bare(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}
