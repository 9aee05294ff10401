//! Files by names that clients and configurations give.

use std::path::{Component, Path, PathBuf};

/// The entry of a directory with this name; `None` where the name is a path that leads elsewhere.
pub(super) fn beneath(directory: &Path, name: &str) -> Option<PathBuf> {
    let mut components = Path::new(name).components();
    match (components.next(), components.next()) {
        (Some(Component::Normal(single)), None) if single == name => Some(directory.join(name)),
        _ => None,
    }
}
