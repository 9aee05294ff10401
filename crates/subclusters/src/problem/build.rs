//! From the text of a file to a checked problem.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use downbeat_mig::{Catalogue, GpuModel};
use downbeat_profile::{Beyond, LARGEST_BATCH, LatencyProfile, Measurement, ProfileFile};
use toml::Spanned;

use super::file::{ModelFile, ProblemFile, ProfileEntry};
use super::source::{ProblemError, Source, suggestion};
use super::{Device, Model, Problem};

/// The most GPUs: room for the largest cluster, not for a slip of the finger.
const MOST_GPUS: u32 = 1_000_000;
/// The highest rate that is believed.
const MOST_RPS: f64 = 1e9;
/// The longest time that is believed: an hour.
const LONGEST_MS: f64 = 3.6e6;
/// The most memory that is believed: a pebibyte.
const MOST_MIB: f64 = (1u64 << 30) as f64;

/// Reads and checks a whole problem.
pub(super) fn problem(text: &str, origin: &Path) -> Result<Problem, ProblemError> {
    let source = Source::new(text, origin);
    let file: ProblemFile = source.parse()?;
    let gpu = gpu(&file, &source)?;
    let mut notes = Vec::new();
    if let Some(gpu) = gpu.as_ref().filter(|gpu| file.slices.is_some() && gpu.is_inferred()) {
        notes.push(format!(
            "the placements of {} are inferred from its family, not captured from one",
            gpu.name
        ));
    }
    let (devices, units_per_gpu) = devices(&file, &source, gpu.as_ref())?;
    let measured = Measured::read(&file, &source, gpu.as_ref())?;
    let reader =
        Reader { source: &source, devices: &devices, gpu: gpu.as_ref(), measured: measured.as_ref() };
    Ok(Problem {
        name: origin.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        gpus: file.gpus.as_ref().map(|gpus| source.whole("", "gpus", gpus, 1, MOST_GPUS)).transpose()?,
        models: reader.models(&file)?,
        devices,
        units_per_gpu,
        gpu: gpu.map(Arc::new),
        notes,
    })
}

fn gpu(file: &ProblemFile, source: &Source<'_>) -> Result<Option<GpuModel>, ProblemError> {
    let Some(name) = &file.gpu else { return Ok(None) };
    let found = Catalogue::builtin().find(name.get_ref()).cloned();
    found.map(Some).map_err(|error| source.invalid(Some(name.span()), error))
}

/// The devices that sub-clusters are made of, and how many units a GPU has.
fn devices(
    file: &ProblemFile,
    source: &Source<'_>,
    gpu: Option<&GpuModel>,
) -> Result<(Vec<Device>, u32), ProblemError> {
    let Some(slices) = &file.slices else {
        let memory_mib = match (&file.gpu_memory_mib, gpu.and_then(|gpu| Some(&gpu.profiles[gpu.whole()?]))) {
            (Some(memory), _) => source.positive("", "gpu_memory_mib", memory, MOST_MIB)?,
            (None, Some(whole)) => whole.memory_mib,
            (None, None) => {
                let message = "gpu_memory_mib is missing; give it, or gpu = \"H200-141GB\"";
                return Err(source.invalid(file.gpu.as_ref().map(Spanned::span), message));
            }
        };
        return Ok((vec![Device { name: "gpu".to_owned(), memory_mib, units: 1, slice: None }], 1));
    };
    let Some(gpu) = gpu else {
        return Err(
            source.invalid(Some(slices.span()), "slices needs gpu = \"H200-141GB\" or another GPU by name")
        );
    };
    if let Some(memory) = &file.gpu_memory_mib {
        let message = "gpu_memory_mib cannot be given with slices; theirs is known";
        return Err(source.invalid(Some(memory.span()), message));
    }
    let mut names = BTreeSet::new();
    let device = |slice: &Spanned<String>| {
        let Some(index) = gpu.profile(slice.get_ref()) else {
            let known: Vec<&str> = gpu.profiles.iter().map(|profile| profile.name.as_str()).collect();
            let near = suggestion(slice.get_ref(), &known);
            let message = format!("slices: {} has no slice {:?}{near}", gpu.name, slice.get_ref());
            return Err(source.invalid(Some(slice.span()), message));
        };
        if !names.insert(index) {
            let message = format!("slices: {:?} is given twice", slice.get_ref());
            return Err(source.invalid(Some(slice.span()), message));
        }
        let profile = &gpu.profiles[index];
        Ok(Device {
            name: profile.name.clone(),
            memory_mib: profile.memory_mib,
            units: u32::from(profile.compute).max(1),
            slice: Some(index),
        })
    };
    let devices = slices.get_ref().iter().map(device).collect::<Result<Vec<Device>, ProblemError>>()?;
    if devices.is_empty() {
        return Err(
            source.invalid(Some(slices.span()), "slices names none; give some, such as [\"1g\", \"2g\"]")
        );
    }
    Ok((devices, u32::from(gpu.compute)))
}

/// The measurements, and what they call the GPU.
struct Measured {
    file: ProfileFile,
    device: String,
}

impl Measured {
    fn read(
        file: &ProblemFile,
        source: &Source<'_>,
        gpu: Option<&GpuModel>,
    ) -> Result<Option<Measured>, ProblemError> {
        let Some(path) = &file.profiles else { return Ok(None) };
        let full = source.file("profiles", path)?;
        let measured = ProfileFile::read(&full)?;
        let mut devices: Vec<&str> = measured.classes().map(downbeat_profile::DeviceClass::device).collect();
        devices.dedup();
        let bare = |name: &str| -> String {
            name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
        };
        let device = match (&file.device, gpu) {
            (Some(named), _) if devices.contains(&named.get_ref().as_str()) => named.get_ref().clone(),
            (Some(named), _) => {
                let near = suggestion(named.get_ref(), &devices);
                let message = format!("{} has no device {:?}{near}", measured.name(), named.get_ref());
                return Err(source.invalid(Some(named.span()), message));
            }
            (None, gpu) => {
                let own = |device: &&&str| gpu.is_some_and(|gpu| bare(&gpu.name).starts_with(&bare(device)));
                match (devices.iter().filter(own).max_by_key(|device| device.len()), &devices[..]) {
                    (Some(device), _) => (*device).to_owned(),
                    (None, [only]) => (*only).to_owned(),
                    (None, several) => {
                        let message = format!(
                            "{} has several devices; say device = {:?} or another of {}",
                            measured.name(),
                            several.first().copied().unwrap_or_default(),
                            several.join(", ")
                        );
                        return Err(source.invalid(Some(path.span()), message));
                    }
                }
            }
        };
        Ok(Some(Measured { device, file: measured }))
    }

    /// What was measured of a model on a device: by the slice's full name, its short one, or as the undivided GPU.
    fn of(&self, model: &str, device: &Device, gpu: Option<&GpuModel>) -> Option<&[Measurement]> {
        let slice = device.slice.or(gpu.and_then(GpuModel::whole)).and_then(|index| gpu?.profiles.get(index));
        let mut classes: Vec<String> = Vec::new();
        if let Some(slice) = slice {
            classes.push(format!("{}/{}", self.device, slice.name));
            classes.push(format!("{}/{}", self.device, slice.short_name()));
        }
        if device.slice.is_none() {
            classes.push(self.device.clone());
        }
        classes.iter().find_map(|class| self.file.measurements(model, class))
    }
}

/// What is known of a model: its profiles by device, and its memory as far as that was measured.
struct Found {
    profiles: Vec<Option<LatencyProfile>>,
    weights_mib: Option<f64>,
    activation_mib: Option<f64>,
}

struct Reader<'a> {
    source: &'a Source<'a>,
    devices: &'a [Device],
    gpu: Option<&'a GpuModel>,
    measured: Option<&'a Measured>,
}

impl Reader<'_> {
    fn models(&self, file: &ProblemFile) -> Result<Vec<Model>, ProblemError> {
        let listed = file.model.as_deref().unwrap_or_default();
        if listed.is_empty() {
            let message = "there is no model; add [[model]] with name, rate_rps and slo_ms";
            return Err(self.source.invalid(None, message));
        }
        let mut names = BTreeSet::new();
        let model = |spanned: &Spanned<ModelFile>| {
            let name = &spanned.get_ref().name;
            if name.get_ref().trim().is_empty() || name.get_ref().chars().any(char::is_control) {
                return Err(self.source.invalid(Some(name.span()), "name must be text that can be printed"));
            }
            if !names.insert(name.get_ref().clone()) {
                let message = format!("model {:?} is given twice", name.get_ref());
                return Err(self.source.invalid(Some(name.span()), message));
            }
            self.model(spanned)
        };
        listed.iter().map(model).collect()
    }

    fn model(&self, spanned: &Spanned<ModelFile>) -> Result<Model, ProblemError> {
        let (source, file) = (self.source, spanned.get_ref());
        let who = format!("model {:?}: ", file.name.get_ref());
        let missing = |message: &str| source.invalid(Some(spanned.span()), format!("{who}{message}"));
        let given = |key: &str, value: &Option<Spanned<f64>>| {
            value.as_ref().map(|value| source.not_negative(&who, key, value, MOST_MIB)).transpose()
        };
        let found = match (&file.profile, &file.measured) {
            (Some(entry), None) if self.devices.iter().all(|device| device.slice.is_none()) => {
                let profiles = vec![Some(self.linear(&who, entry.get_ref(), entry)?)];
                Found { profiles, weights_mib: None, activation_mib: None }
            }
            (Some(entry), None) => {
                let message =
                    format!("{who}profile does not say for which slice; with slices give measured = MODEL");
                return Err(source.invalid(Some(entry.span()), message));
            }
            (Some(_), Some(measured)) => {
                let message = format!("{who}profile and measured cannot both be given");
                return Err(source.invalid(Some(measured.span()), message));
            }
            (None, Some(measured)) => self.looked_up(&who, measured)?,
            (None, None) => {
                return Err(missing("profile is missing; give it, or measured = MODEL and profiles"));
            }
        };
        let weights_mib = given("weights_mib", &file.weights_mib)?.or(found.weights_mib);
        let activation_mib = given("activation_mib", &file.activation_mib)?.or(found.activation_mib);
        Ok(Model {
            name: file.name.get_ref().clone(),
            rate_rps: source.positive(&who, "rate_rps", &file.rate_rps, MOST_RPS)?,
            slo_ms: source.positive(&who, "slo_ms", &file.slo_ms, LONGEST_MS)?,
            weights_mib: weights_mib
                .ok_or_else(|| missing("weights_mib is missing, and was not measured"))?,
            activation_mib: activation_mib.unwrap_or(0.0),
            profiles: found.profiles,
        })
    }

    fn linear(
        &self,
        who: &str,
        entry: &ProfileEntry,
        at: &Spanned<ProfileEntry>,
    ) -> Result<LatencyProfile, ProblemError> {
        let alpha_ms = self.source.not_negative(who, "profile.alpha_ms", &entry.alpha_ms, LONGEST_MS)?;
        let beta_ms = self.source.not_negative(who, "profile.beta_ms", &entry.beta_ms, LONGEST_MS)?;
        let max_batch = self.source.whole(who, "profile.max_batch", &entry.max_batch, 1, LARGEST_BATCH)?;
        LatencyProfile::linear(alpha_ms, beta_ms, max_batch)
            .map_err(|error| self.source.invalid(Some(at.span()), format!("{who}profile: {error}")))
    }

    /// A model's profiles by device, and the memory that was measured: weights, and the most beyond them.
    fn looked_up(&self, who: &str, name: &Spanned<String>) -> Result<Found, ProblemError> {
        let wrong = |message: String| self.source.invalid(Some(name.span()), format!("{who}{message}"));
        let Some(measured) = self.measured else {
            return Err(wrong("measured needs profiles = FILE.csv at the top of the file".to_owned()));
        };
        let model = name.get_ref();
        if !measured.file.models().any(|known| known == model) {
            let known: Vec<&str> = measured.file.models().collect();
            return Err(wrong(format!(
                "{} has no model {model:?}{}",
                measured.file.name(),
                suggestion(model, &known)
            )));
        }
        let (mut weights_mib, mut activation_mib) = (None, None);
        let mut profiles = Vec::with_capacity(self.devices.len());
        for device in self.devices {
            let points = measured.of(model, device, self.gpu).unwrap_or_default();
            for point in points {
                let beyond = point.peak_mib.unwrap_or(0.0) - point.weights_mib.unwrap_or(0.0);
                weights_mib = point.weights_mib.or(weights_mib);
                activation_mib = Some(beyond.max(activation_mib.unwrap_or(0.0)));
            }
            let pairs: Vec<(u32, f64)> = points.iter().map(|point| (point.batch, point.latency_ms)).collect();
            let Some(&(largest, _)) = pairs.last() else {
                profiles.push(None);
                continue;
            };
            let profile = LatencyProfile::from_points(&pairs, largest, Beyond::Refuse);
            profiles.push(Some(profile.map_err(|error| wrong(error.to_string()))?));
        }
        if profiles.iter().all(Option::is_none) {
            let devices: Vec<&str> = self.devices.iter().map(|device| device.name.as_str()).collect();
            let message = format!(
                "{} has no measurement of {model:?} on {}/{}",
                measured.file.name(),
                measured.device,
                devices.join(", ")
            );
            return Err(wrong(message));
        }
        Ok(Found { profiles, weights_mib, activation_mib })
    }
}
