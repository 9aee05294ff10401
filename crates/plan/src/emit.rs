//! Plans in the words of other tools: mig-parted, Kubernetes pods, dynamic resource allocation.
//!
//! YAML is written as JSON values, which YAML takes as they are: a name with a colon or a quote in it needs no rules of
//! ours.

mod dra;
mod kubernetes;
mod mig_parted;
mod product;
#[cfg(test)]
mod tests;

pub use dra::dra;
pub use kubernetes::kubernetes;
pub use mig_parted::mig_parted;

use std::collections::{BTreeMap, BTreeSet};

use crate::plan::{GpuLayout, Instance, Plan};

/// A name as Kubernetes takes it: lower-case letters, digits and dashes, at most 40 characters so that suffixes fit.
fn label(name: &str) -> String {
    let dashed: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .take(40)
        .collect();
    let trimmed = dashed.trim_matches('-');
    if trimmed.is_empty() { "service".to_owned() } else { trimmed.to_owned() }
}

/// A label for each service. Two whose names become the same are told apart: who selects pods by it gets those of one
/// service.
fn labels(plan: &Plan) -> BTreeMap<&str, String> {
    let instances = plan.layout.iter().flat_map(|gpu| &gpu.instances);
    let services: BTreeSet<&str> = instances.map(|instance| instance.service.as_str()).collect();
    let mut taken = BTreeSet::new();
    let mut labels = BTreeMap::new();
    for service in services {
        let base = label(service);
        let numbered = (2..).map(|number| format!("{base}-{number}"));
        let free = std::iter::once(base.clone()).chain(numbered).find(|name| taken.insert(name.clone()));
        labels.insert(service, free.unwrap_or(base));
    }
    labels
}

/// What a worker's container runs: it joins the server as a device of its slice's class, in a sub-cluster with its
/// model's name, so that the server loads that model there and no other. `indent` is that of the container's keys.
fn worker(gpu: &GpuLayout, instance: &Instance, indent: &str) -> String {
    let device = format!("cuda:0@{}/{}#{}", gpu.gpu_type, instance.profile, label(&instance.model));
    format!(
        "{indent}image: {IMAGE}\n{indent}args: [\"worker\", \"--connect\", {}, \"--device\", {}]\n{indent}env:\n{indent}  - name: \
         DOWNBEAT_WORKER_TOKEN\n{indent}    valueFrom: {{secretKeyRef: {{name: downbeat, key: worker-token}}}}\n",
        quoted(SERVER),
        quoted(&device),
    )
}

/// To be replaced by the user's own.
const IMAGE: &str = "downbeat:latest";

/// The server's address for workers, as a Kubernetes Service of that name has it.
const SERVER: &str = "downbeat:8003";

/// Text in double quotes, as both JSON and YAML read it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Every instance with its GPU and a name that no other has.
fn named_instances<'a>(
    plan: &'a Plan,
    labels: &BTreeMap<&str, String>,
) -> Vec<(String, &'a GpuLayout, &'a Instance)> {
    let mut named: Vec<(String, &GpuLayout, &Instance)> = Vec::new();
    for gpu in &plan.layout {
        for instance in &gpu.instances {
            // The place makes it unique, whatever services are called.
            let name = format!("{}-g{}-s{}", labels[instance.service.as_str()], gpu.gpu, instance.start);
            named.push((name, gpu, instance));
        }
    }
    named
}
