//! What strangers can send, tried with anything at all.
//!
//! A target takes bytes and must come back, whatever they are; where they make sense, it checks what must then be true.
//! `make fuzz` lets AFL++ look for bytes that break one. What it found interesting is in `corpus/`, and `cargo test`
//! runs all of it; what once broke something is there as `regression-*`.

#![allow(clippy::unwrap_used, reason = "a target says what is wrong by panicking")]

mod files;
mod requests;

use std::path::{Path, PathBuf};

/// Takes bytes and panics where something is wrong.
pub type Target = fn(&[u8]);

/// Every target by its name.
pub const TARGETS: [(&str, Target); 11] = [
    ("rest", requests::rest),
    ("rest-raw", requests::rest_raw),
    ("grpc", requests::grpc),
    ("compressed", requests::compressed),
    ("link", downbeat_server::fuzzing::link),
    ("config", files::config),
    ("onnx", files::onnx),
    ("scenario", files::scenario),
    ("profile", files::profile),
    ("plan", files::plan),
    ("layout", files::layout),
];

/// The target of that name.
pub fn target(name: &str) -> Option<Target> {
    TARGETS.into_iter().find(|(known, _)| *known == name).map(|(_, target)| target)
}

/// Where the inputs of a target are kept.
pub fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
}
