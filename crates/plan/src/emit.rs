//! Plans in the words of other tools: mig-parted, Kubernetes pods, dynamic resource allocation.
//!
//! YAML is written as JSON values, which YAML takes as they are: a name with a colon or a quote in it needs no rules of ours.

mod dra;
mod kubernetes;
mod mig_parted;
mod product;
#[cfg(test)]
mod tests;

pub use dra::dra;
pub use kubernetes::kubernetes;
pub use mig_parted::mig_parted;

use crate::plan::{GpuLayout, Instance, Plan};

/// A name as Kubernetes takes it: lower-case letters, digits and dashes, at most 50 characters so that a suffix fits.
fn label(name: &str) -> String {
    let dashed: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .take(50)
        .collect();
    let trimmed = dashed.trim_matches('-');
    if trimmed.is_empty() { "service".to_owned() } else { trimmed.to_owned() }
}

/// Text in double quotes, as both JSON and YAML read it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Every instance with its GPU and a name that no other has.
fn named_instances(plan: &Plan) -> Vec<(String, &GpuLayout, &Instance)> {
    let mut named: Vec<(String, &GpuLayout, &Instance)> = Vec::new();
    for gpu in &plan.layout {
        for instance in &gpu.instances {
            // The place makes it unique, whatever services are called.
            let name = format!("{}-g{}-s{}", label(&instance.service), gpu.gpu, instance.start);
            named.push((name, gpu, instance));
        }
    }
    named
}
