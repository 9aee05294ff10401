//! Where l(b) of a model on a class of devices comes from.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use downbeat_profile::{Beyond, DeviceClass, LatencyProfile, Measurement, ProfileFile, ProfileRow};

/// Profiles that people gave, and those that the server measured itself and keeps.
#[derive(Debug)]
pub(crate) struct ProfileStore {
    given: Vec<ProfileFile>,
    cache: Option<PathBuf>,
}

/// The model that a measured profile belongs to: the same file on the same device is not measured twice.
#[derive(Clone, Debug)]
pub(crate) struct ProfileKey<'a> {
    pub(crate) model: &'a str,
    pub(crate) max_batch: u32,
    /// The model's file; `None` for an emulated model.
    pub(crate) file: Option<&'a Path>,
    pub(crate) class: &'a DeviceClass,
    /// What else the latency depends on: threads per operator.
    pub(crate) variant: &'a str,
    /// The size of the dimensions that the model leaves open, where it does.
    pub(crate) open_size: Option<u64>,
}

impl ProfileStore {
    pub(crate) fn new(given: Vec<ProfileFile>, cache: Option<PathBuf>) -> ProfileStore {
        ProfileStore { given, cache }
    }

    /// The profile that people gave, else the one measured before.
    pub(crate) fn find(&self, key: &ProfileKey<'_>) -> Option<LatencyProfile> {
        let max_batch = key.max_batch.max(1);
        let look_up = |file: &ProfileFile| {
            file.profile(key.model, key.class.as_str(), Some(max_batch), Beyond::Extrapolate).ok()
        };
        self.given.iter().find_map(look_up).or_else(|| {
            let file = ProfileFile::read(&self.cached(key)?).ok()?;
            look_up(&file)
        })
    }

    /// Whether people gave profiles of this class, if maybe of other models.
    pub(crate) fn are_given_for(&self, class: &DeviceClass) -> bool {
        let is_it = |of: &DeviceClass| of == class || of.slice() == Some(class.as_str());
        self.given.iter().any(|file| file.classes().any(is_it))
    }

    /// Keeps a profile that was measured.
    pub(crate) fn keep(&self, key: &ProfileKey<'_>, points: &[(u32, f64)]) -> io::Result<Option<PathBuf>> {
        let Some(path) = self.cached(key) else { return Ok(None) };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        save(&path, rows(key.model, key.class, points))?;
        Ok(Some(path))
    }

    /// Where a profile is kept: the name holds all that the latency depends on.
    fn cached(&self, key: &ProfileKey<'_>) -> Option<PathBuf> {
        let metadata = fs::metadata(key.file?).ok()?;
        let modified = metadata.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis();
        let class = key.class.as_str().replace('/', "%2F");
        let (model, variant) = (key.model, key.variant);
        let open = key.open_size.map(|size| format!("-o{size}")).unwrap_or_default();
        let name =
            format!("{model}-{class}-{variant}-b{}{open}-{}-{modified}.csv", key.max_batch, metadata.len());
        Some(self.cache.as_ref()?.join(name))
    }
}

/// The latencies of one model on one class of devices, as rows of a profile file.
pub(crate) fn rows<'a>(
    model: &'a str,
    class: &'a DeviceClass,
    points: &'a [(u32, f64)],
) -> impl Iterator<Item = ProfileRow> + 'a {
    points.iter().map(|&(batch, latency_ms)| ProfileRow {
        model: model.to_owned(),
        class: class.clone(),
        measurement: Measurement::new(batch, latency_ms),
    })
}

/// Writes a profile file in one go: a reader never sees half of it.
pub(crate) fn save(path: &Path, rows: impl IntoIterator<Item = ProfileRow>) -> io::Result<()> {
    let file = ProfileFile::from_rows(rows, &path.to_string_lossy()).map_err(io::Error::other)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut draft = tempfile::NamedTempFile::new_in(folder)?;
    file.write(&mut draft)?;
    draft.persist(path)?;
    Ok(())
}
