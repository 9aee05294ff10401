//! `make bench-subclusters`: how good and how quick divisions into sub-clusters are. Parts can be named: `estimate`,
//! `exact`, `large`, `rivals`, `slices`.

#![allow(clippy::print_stdout, clippy::disallowed_types, reason = "a benchmark prints, and measures time")]

mod estimate;
mod exact;
mod large;
mod slices;
mod workload;

use std::path::{Path, PathBuf};

use downbeat_milp::Backend;

/// What all parts share.
pub(crate) struct Bench {
    pub(crate) backend: Backend,
    pub(crate) root: PathBuf,
}

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wanted = |part: &str| asked.is_empty() || asked.iter().any(|argument| argument == part);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let library = root.join(".tools/highs/libhighs.so");
    let backend = Backend::best(library.is_file().then_some(&library)).unwrap_or_else(|_| Backend::microlp());
    println!("programs are solved by {}\n", backend.name());
    let bench = Bench { backend, root };
    if wanted("estimate") {
        estimate::run(&bench);
    }
    if wanted("exact") {
        exact::run(&bench);
    }
    if wanted("large") {
        large::run(&bench);
    }
    if wanted("rivals") {
        large::rivals(&bench);
    }
    if wanted("slices") {
        slices::run(&bench);
    }
}
