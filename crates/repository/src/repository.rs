//! A directory of models.

mod labels;
mod place;

use std::fs;
use std::path::{Path, PathBuf};

use downbeat_oip::config::WrittenConfig;
use downbeat_oip::proto::ModelConfig;

use crate::complete::{self, check, complete, find};
use crate::header::Header;
use crate::settings::{Settings, refuse_unsupported};
use crate::tensors::{Role, Slot, slots};
use crate::{Backend, ModelDefinition, ModelError, Version, parse_config, versions};

/// The largest batch that a configuration may ask for.
const LARGEST_BATCH: i32 = 65_536;

const CONFIG_FILE: &str = "config.pbtxt";
const MODEL_FILE: &str = "model.onnx";

/// A model repository. It holds no state: every question is asked of the disk.
#[derive(Clone, Debug)]
pub struct Repository {
    path: PathBuf,
}

impl Repository {
    /// The repository in this directory.
    pub fn open(path: &Path) -> Result<Repository, ModelError> {
        if !path.exists() {
            return Err(ModelError::new(
                path,
                "there is no such model repository; name a directory that holds models",
            ));
        }
        if !path.is_dir() {
            return Err(ModelError::new(path, "is a file; name the directory that holds the models"));
        }
        if path.join(CONFIG_FILE).exists() {
            return Err(ModelError::new(
                path,
                "is a model; name the directory that holds it as the repository",
            ));
        }
        Ok(Repository { path: path.to_owned() })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The names of its models, sorted: its directories, except hidden ones.
    pub fn models(&self) -> Result<Vec<String>, ModelError> {
        let unreadable =
            |error: std::io::Error| ModelError::new(&self.path, format!("cannot be read: {error}"));
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let name = entry.file_name().into_string().ok().filter(|name| !name.starts_with('.'));
            names.extend(name.filter(|_| entry.path().is_dir()));
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Reads a model. A `config` takes the place of its configuration file.
    pub fn read(&self, name: &str, config: Option<WrittenConfig>) -> Result<ModelDefinition, ModelError> {
        // Names come from clients too.
        let directory = place::beneath(&self.path, name)
            .filter(|directory| directory.is_dir())
            .ok_or_else(|| ModelError::new(&self.path, format!("has no model {name:?}")))?;
        let file = directory.join(CONFIG_FILE);
        // Where the problem is, when it is the configuration.
        let source = if config.is_none() && file.exists() { &file } else { &directory };
        let config = match config {
            Some(config) => config,
            None => read_config(&file)?,
        };
        Reading { name, directory: &directory, source }.definition(config)
    }
}

/// The configuration in a file; an empty one where there is no file.
fn read_config(file: &Path) -> Result<WrittenConfig, ModelError> {
    match fs::read_to_string(file) {
        Ok(text) => parse_config(&text, file),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(WrittenConfig::default()),
        Err(error) => Err(ModelError::new(file, format!("cannot be read: {error}"))),
    }
}

/// A model that is being read.
struct Reading<'a> {
    name: &'a str,
    directory: &'a Path,
    /// What errors in the configuration are blamed on.
    source: &'a Path,
}

impl Reading<'_> {
    fn definition(&self, written: WrittenConfig) -> Result<ModelDefinition, ModelError> {
        let WrittenConfig { mut config, says_max_batch } = written;
        let wrong = |problem: String| ModelError::new(self.source, problem);
        self.check_name(&config)?;
        refuse_unsupported(&config).map_err(wrong)?;
        let present = versions::present(self.directory)?;
        let backend = self.backend(&config, &present)?;
        let mut settings = Settings::of(&config, backend).map_err(wrong)?;
        let numbers = versions::chosen(config.version_policy.as_ref(), &present).map_err(wrong)?;

        self.name.clone_into(&mut config.name);
        self.check_tensors(&mut config)?;
        let (versions, header) = match backend {
            Backend::Onnx => self.complete_onnx(&mut config, says_max_batch, &numbers)?,
            Backend::Emulated => (self.complete_emulated(&mut config, &numbers)?, None),
        };
        if backend == Backend::Onnx && !says_max_batch && config.max_batch_size > 0 {
            settings.notices.push(complete::notice());
        }
        let batching = config.max_batch_size > 0;
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        let (mut input_reshapes, mut output_reshapes) = (Vec::new(), Vec::new());
        for slot in slots(&mut config) {
            let declared = header.as_ref().and_then(|header| find(header, slot.role, slot.name));
            let spec = slot.spec(batching, declared).ok_or_else(|| wrong(untyped(&slot)))?;
            match slot.role {
                Role::Input => {
                    inputs.push(spec);
                    input_reshapes.extend(slot.reshape(batching));
                }
                Role::Output => {
                    outputs.push(spec);
                    output_reshapes.extend(slot.reshape(batching));
                }
            }
        }
        Ok(ModelDefinition {
            name: self.name.to_owned(),
            backend,
            max_batch: config.max_batch_size as u32,
            labels: labels::read(self.directory, &config)?,
            config,
            versions,
            inputs,
            outputs,
            input_reshapes,
            output_reshapes,
            slo: settings.slo,
            max_wait: settings.max_wait,
            queue_limit: settings.queue_limit,
            priorities: settings.priorities,
            notices: settings.notices,
        })
    }

    fn check_name(&self, config: &ModelConfig) -> Result<(), ModelError> {
        if config.name.is_empty() || config.name == self.name {
            return Ok(());
        }
        let problem = format!(
            "the name {:?} is not that of the directory, {:?}; make them the same, or leave the name out",
            config.name, self.name
        );
        Err(ModelError::new(self.source, problem))
    }

    /// What runs the model: as the configuration says, or by the file in its newest version.
    fn backend(&self, config: &ModelConfig, present: &[u64]) -> Result<Backend, ModelError> {
        let supported =
            "Downbeat runs platform \"onnxruntime_onnx\" (backend \"onnxruntime\") and backend \"emulated\"";
        match (config.platform.as_str(), config.backend.as_str()) {
            ("onnxruntime_onnx", "" | "onnxruntime") | ("", "onnxruntime") => Ok(Backend::Onnx),
            ("", "emulated") => Ok(Backend::Emulated),
            ("", "") => {
                let Some(newest) = present.last() else {
                    let problem = if self.source == self.directory {
                        "holds no model: it has neither config.pbtxt nor a version, such as 1/model.onnx"
                    } else {
                        "no version is there; put the model file into the directory 1 beside it"
                    };
                    return Err(ModelError::new(self.source, problem));
                };
                let file = self.directory.join(newest.to_string()).join(MODEL_FILE);
                if file.exists() || config.default_model_filename.ends_with(".onnx") {
                    return Ok(Backend::Onnx);
                }
                let problem = format!(
                    "is not there, and the configuration does not say what else runs the model; {supported}"
                );
                Err(ModelError::new(&file, problem))
            }
            (platform, backend) => {
                let problem =
                    format!("platform {platform:?} with backend {backend:?} is not supported; {supported}");
                Err(ModelError::new(self.source, problem))
            }
        }
    }

    /// Completes the configuration from the newest file, checks it against all, and gives the versions and the newest
    /// file's header.
    fn complete_onnx(
        &self,
        config: &mut ModelConfig,
        says_max_batch: bool,
        numbers: &[u64],
    ) -> Result<(Vec<Version>, Option<Header>), ModelError> {
        let wrong = |problem: String| ModelError::new(self.source, problem);
        let Some(newest) = numbers.last() else {
            let problem =
                "has no version; put the model file into a directory with a number for a name, such as 1";
            return Err(ModelError::new(self.directory, problem));
        };
        if config.default_model_filename.is_empty() {
            MODEL_FILE.clone_into(&mut config.default_model_filename);
        }
        "onnxruntime_onnx".clone_into(&mut config.platform);
        "onnxruntime".clone_into(&mut config.backend);
        let newest = Header::read(&self.model_file(*newest, config)?)?;
        self.check_batch(config)?;
        complete(config, says_max_batch, &newest).map_err(wrong)?;
        let mut versions = Vec::new();
        for &number in numbers {
            let file = self.model_file(number, config)?;
            let called = format!("{number}/{}", config.default_model_filename);
            check(config, &Header::read(&file)?, &called).map_err(wrong)?;
            versions.push(Version { number, file: Some(file) });
        }
        Ok((versions, Some(newest)))
    }

    /// An emulated model has no files, so it needs no versions either: it has version 1.
    fn complete_emulated(
        &self,
        config: &mut ModelConfig,
        numbers: &[u64],
    ) -> Result<Vec<Version>, ModelError> {
        self.check_batch(config)?;
        if config.input.is_empty() || config.output.is_empty() {
            let problem = "an emulated model has no file to take its inputs and outputs from; declare at least one of each";
            return Err(ModelError::new(self.source, problem));
        }
        let numbers = if numbers.is_empty() { &[1] } else { numbers };
        Ok(numbers.iter().map(|&number| Version { number, file: None }).collect())
    }

    fn check_batch(&self, config: &ModelConfig) -> Result<(), ModelError> {
        if (0..=LARGEST_BATCH).contains(&config.max_batch_size) {
            return Ok(());
        }
        let size = config.max_batch_size;
        Err(ModelError::new(
            self.source,
            format!("max_batch_size is {size}; it must be between 0 and {LARGEST_BATCH}"),
        ))
    }

    /// Whether names are there and unique, and dimensions make sense.
    fn check_tensors(&self, config: &mut ModelConfig) -> Result<(), ModelError> {
        let wrong = |problem: String| Err(ModelError::new(self.source, problem));
        let mut seen = Vec::new();
        for slot in slots(config) {
            let role = slot.role.name();
            if slot.name.is_empty() {
                return wrong(format!("an {role} has no name; give it one"));
            }
            if seen.contains(&(slot.role, slot.name)) {
                return wrong(format!("the {role} {:?} is there twice; remove one", slot.name));
            }
            if let Some(size) = slot.dims.iter().find(|&&size| size < -1) {
                return wrong(format!(
                    "the {role} {:?} has the dimension {size}; use -1 for any size",
                    slot.name
                ));
            }
            // With a batch or without, both shapes grow alike.
            if slot.reshape(false).is_some_and(|reshape| !reshape.is_sound()) {
                return wrong(format!(
                    "the {role} {:?} has dims {:?} and a reshape to {:?}, which has another number of elements",
                    slot.name,
                    slot.dims,
                    slot.model_dims()
                ));
            }
            seen.push((slot.role, slot.name));
        }
        Ok(())
    }

    /// The model file of a version. Large models keep their weights beside it, in a directory with the file's name.
    fn model_file(&self, version: u64, config: &ModelConfig) -> Result<PathBuf, ModelError> {
        let directory = self.directory.join(version.to_string());
        let name = &config.default_model_filename;
        let file = place::beneath(&directory, name).ok_or_else(|| {
            ModelError::new(
                self.source,
                format!("default_model_filename is {name:?}; it must be the name of a file"),
            )
        })?;
        let file = if file.is_dir() { file.join(MODEL_FILE) } else { file };
        if file.is_file() {
            return Ok(file);
        }
        let problem = "is not there; put the model there, or name its file in default_model_filename";
        Err(ModelError::new(&file, problem))
    }
}

fn untyped(slot: &Slot<'_>) -> String {
    format!("the {} {:?} has no data_type; give it one, such as TYPE_FP32", slot.role.name(), slot.name)
}

#[cfg(test)]
mod tests;
