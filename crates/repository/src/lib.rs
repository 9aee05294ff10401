//! Model repositories in Triton's layout.
//!
//! A repository is a directory of models; a model is a directory with its configuration and its versions:
//!
//! ```text
//! <repository>/<model>/config.pbtxt            may be missing or partial: the rest comes from the model file
//!                     /<version>/model.onnx    a number each
//! ```
//!
//! [`Repository::read`] makes a [`ModelDefinition`] of one: its configuration completed and checked against its files,
//! with a notice for each setting that Downbeat takes but does otherwise. What it cannot serve as it is meant, it
//! refuses, in one line that says where and what to change. A model that is refused does not hide the others.

mod complete;
mod definition;
mod error;
mod header;
mod pbtxt;
mod repository;
mod settings;
mod tensors;
mod versions;

pub use complete::DEFAULT_MAX_BATCH;
pub use definition::{Backend, ModelDefinition, Priorities, Version};
pub use error::ModelError;
pub use pbtxt::parse_config;
pub use repository::Repository;
