//! The GPUs of a problem, and what was measured on them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use downbeat_mig::{Catalogue, GpuModel};
use downbeat_profile::ProfileFile;
use toml::Spanned;

use super::super::Pool;
use super::super::file::{PoolFile, ProblemFile};
use super::super::source::{ProblemError, Source, suggestion};

/// The most GPUs of a pool: room for the largest cluster, not for a slip of the finger.
pub(super) const MOST_GPUS: u32 = 1_000_000;

type Name<'a> = Option<&'a Spanned<String>>;
type Names<'a> = Option<&'a [Spanned<String>]>;

/// The pools of a file: those it lists, or the one that its `gpu` names.
pub(super) fn pools(
    file: &ProblemFile,
    source: &Source<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<Pool>, ProblemError> {
    let mut reader = Reader { file, source, catalogue: catalogue(file, source)?, profiles: BTreeMap::new() };
    let pools = match (&file.gpu, file.pool.as_deref()) {
        (Some(gpu), None | Some([])) => vec![reader.pool(&PoolFile {
            gpu: gpu.clone(),
            count: file.count.clone(),
            cost: None,
            gpus_per_node: file.gpus_per_node.clone(),
            profiles: None,
            device: None,
            exclude_slices: None,
            include_slices: None,
        })?],
        (Some(gpu), Some(_)) => {
            return Err(source.invalid(Some(gpu.span()), "gpu and [[pool]] cannot both be given"));
        }
        (None, None | Some([])) => {
            return Err(source.invalid(None, "gpu is missing; give gpu = \"H200-141GB\", or [[pool]]"));
        }
        (None, Some(pools)) => {
            if let Some(count) = &file.count {
                let message = "count beside [[pool]] would be ignored; give each [[pool]] its own count";
                return Err(source.invalid(Some(count.span()), message));
            }
            pools.iter().map(|pool| reader.pool(pool.get_ref())).collect::<Result<_, _>>()?
        }
    };
    for pool in &pools {
        notes.extend(doubts(&pool.gpu));
    }
    notes.sort();
    notes.dedup();
    Ok(pools)
}

/// What is not certain about a GPU's geometry.
fn doubts(gpu: &GpuModel) -> Vec<String> {
    let mut doubts = Vec::new();
    if gpu.is_incomplete() {
        doubts.push(format!(
            "{} is known incompletely: its larger slices are not in the table, and not planned with",
            gpu.name
        ));
    }
    if gpu.is_inferred() {
        doubts.push(format!(
            "the placements of {} are inferred from its family, not captured from one",
            gpu.name
        ));
    }
    doubts
}

fn catalogue(file: &ProblemFile, source: &Source<'_>) -> Result<Catalogue, ProblemError> {
    let mut catalogue = Catalogue::builtin();
    if let Some(models) = &file.gpu_models {
        let path = source.file("gpu_models", models)?;
        catalogue.add_file(&path)?;
    }
    Ok(catalogue)
}

/// The class of devices that a profile of a pool's GPU is measured as: by its full name, or by its short one.
pub(in crate::problem) fn class_of(pool: &Pool, profile: usize) -> Option<String> {
    let profile = &pool.gpu.profiles[profile];
    let classes =
        [format!("{}/{}", pool.device, profile.name), format!("{}/{}", pool.device, profile.short_name())];
    classes.into_iter().find(|class| pool.measured.classes().any(|known| known.as_str() == class))
}

struct Reader<'a> {
    file: &'a ProblemFile,
    source: &'a Source<'a>,
    catalogue: Catalogue,
    profiles: BTreeMap<PathBuf, Arc<ProfileFile>>,
}

impl Reader<'_> {
    fn pool(&mut self, pool: &PoolFile) -> Result<Pool, ProblemError> {
        let source = self.source;
        let gpu = self.catalogue.find(pool.gpu.get_ref());
        let gpu = gpu.map_err(|error| source.invalid(Some(pool.gpu.span()), error))?.clone();
        let who = format!("pool {}: ", gpu.name);
        let count =
            pool.count.as_ref().map(|count| source.whole(&who, "count", count, 1, MOST_GPUS)).transpose()?;
        let cost = pool.cost.as_ref().map_or(Ok(1.0), |cost| source.positive(&who, "cost", cost, 1e9))?;
        let per_node = pool.gpus_per_node.as_ref().or(self.file.gpus_per_node.as_ref());
        let gpus_per_node =
            per_node.map_or(Ok(8), |n| source.whole(&who, "gpus_per_node", n, 1, MOST_GPUS))?;
        let measured = self.measured(pool.profiles.as_ref().or(self.file.profiles.as_ref()))?;
        let device =
            self.device(&gpu, &measured, pool.device.as_ref().or(self.file.device.as_ref()), &pool.gpu)?;
        let mut pool_read =
            Pool { profiles: Vec::new(), gpu: Arc::new(gpu), count, cost, gpus_per_node, measured, device };
        let lists = |own: &'_ Option<Vec<Spanned<String>>>, shared: &'_ Option<Vec<Spanned<String>>>| {
            own.clone().or(shared.clone())
        };
        let include = lists(&pool.include_slices, &self.file.include_slices);
        let exclude = lists(&pool.exclude_slices, &self.file.exclude_slices);
        pool_read.profiles = self.profiles(&pool_read, include.as_deref(), exclude.as_deref())?;
        if pool_read.profiles.is_empty() {
            let measured = pool_read.measured.name();
            let listed = exclude.iter().chain(&include).flatten().next();
            let (span, message) = match listed.filter(|_| self.has_measured_slices(&pool_read)) {
                Some(listed) => {
                    let lists = "include_slices and exclude_slices leave no slice that was measured in";
                    (listed.span(), format!("{who}{lists} {measured}"))
                }
                None => (pool.gpu.span(), format!("{who}no slice of it was measured in {measured}")),
            };
            return Err(source.invalid(Some(span), message));
        }
        Ok(pool_read)
    }

    /// Whether there would be slices to plan with if none were included or excluded by name.
    fn has_measured_slices(&self, pool: &Pool) -> bool {
        self.profiles(pool, None, None).is_ok_and(|profiles| !profiles.is_empty())
    }

    fn measured(&mut self, path: Name<'_>) -> Result<Arc<ProfileFile>, ProblemError> {
        let Some(path) = path else {
            return Err(self
                .source
                .invalid(None, "profiles is missing; name the CSV file with the measured latencies"));
        };
        let full = self.source.file("profiles", path)?;
        if let Some(read) = self.profiles.get(&full) {
            return Ok(Arc::clone(read));
        }
        let read = Arc::new(ProfileFile::read(&full)?);
        self.profiles.insert(full, Arc::clone(&read));
        Ok(read)
    }

    /// What the profile file calls this GPU: the device that the user names, or the one that the GPU's name begins
    /// with.
    fn device(
        &self,
        gpu: &GpuModel,
        measured: &ProfileFile,
        named: Name<'_>,
        at: &Spanned<String>,
    ) -> Result<String, ProblemError> {
        let mut devices: Vec<&str> = measured.classes().map(downbeat_profile::DeviceClass::device).collect();
        devices.dedup();
        if let Some(named) = named {
            if devices.contains(&named.get_ref().as_str()) {
                return Ok(named.get_ref().clone());
            }
            let message = format!(
                "{} has no device {:?}{}",
                measured.name(),
                named.get_ref(),
                suggestion(named.get_ref(), &devices)
            );
            return Err(self.source.invalid(Some(named.span()), message));
        }
        let bare = |name: &str| -> String {
            name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
        };
        let own = devices.iter().filter(|device| bare(&gpu.name).starts_with(&bare(device)));
        own.max_by_key(|device| device.len()).map(|device| (*device).to_owned()).ok_or_else(|| {
            let message = format!(
                "{} was measured on {}, not on {}; to plan with it all the same, say device = {:?}",
                measured.name(),
                devices.join(", "),
                gpu.name,
                devices.first().copied().unwrap_or_default()
            );
            self.source.invalid(Some(at.span()), message)
        })
    }

    /// The profiles to plan with: the plain ones that were measured and any that were measured by their full name or
    /// are asked for, less those excluded.
    fn profiles(
        &self,
        pool: &Pool,
        include: Names<'_>,
        exclude: Names<'_>,
    ) -> Result<Vec<usize>, ProblemError> {
        let find = |name: &Spanned<String>| {
            pool.gpu.profile(name.get_ref()).ok_or_else(|| {
                let known: Vec<&str> =
                    pool.gpu.profiles.iter().map(|profile| profile.name.as_str()).collect();
                let message = format!(
                    "{} has no slice {:?}{}",
                    pool.gpu.name,
                    name.get_ref(),
                    suggestion(name.get_ref(), &known)
                );
                self.source.invalid(Some(name.span()), message)
            })
        };
        let included = include.unwrap_or_default().iter().map(find).collect::<Result<Vec<_>, _>>()?;
        let excluded = exclude.unwrap_or_default().iter().map(find).collect::<Result<Vec<_>, _>>()?;
        let plain = pool.gpu.plain();
        let by_full_name = |index: usize| {
            let class = format!("{}/{}", pool.device, pool.gpu.profiles[index].name);
            pool.measured.classes().any(|known| known.as_str() == class)
        };
        let wanted =
            |index: &usize| plain.contains(index) || included.contains(index) || by_full_name(*index);
        let measured = |index: &usize| class_of(pool, *index).is_some();
        Ok((0..pool.gpu.profiles.len())
            .filter(|index| wanted(index) && measured(index) && !excluded.contains(index))
            .collect())
    }
}
