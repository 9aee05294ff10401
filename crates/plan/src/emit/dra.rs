//! Kubernetes' dynamic resource allocation: a claim template per service and slice profile, and pods that claim from
//! it.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{label, labels, product, quoted, worker};
use crate::plan::{GpuLayout, Instance, Plan};

/// `ResourceClaimTemplate`s that select MIG devices of NVIDIA's driver by profile, and a `Deployment` of as many
/// replicas as the plan has instances for each.
pub fn dra(plan: &Plan) -> String {
    let mut wanted: BTreeMap<(&str, &str, &str), (u32, &GpuLayout, &Instance)> = BTreeMap::new();
    for gpu in &plan.layout {
        for instance in &gpu.instances {
            let key = (instance.service.as_str(), instance.profile.as_str(), gpu.gpu_type.as_str());
            wanted.entry(key).or_insert((0, gpu, instance)).0 += 1;
        }
    }
    let mut text = String::new();
    let labels = labels(plan);
    let mut taken: BTreeMap<String, u32> = BTreeMap::new();
    for ((service, profile, gpu_type), (replicas, gpu, instance)) in wanted {
        let base = format!("{}-{}", labels[service], label(profile));
        let number = taken.entry(base.clone()).or_default();
        *number += 1;
        let name = if *number == 1 { base } else { format!("{base}-{number}") };
        let expression = format!(
            "device.attributes['gpu.nvidia.com'].profile == '{profile}' && {}",
            product::selector(gpu_type)
        );
        let _ = write!(
            text,
            "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata:\n  name: {name}\n  annotations:\n    \
             downbeat/gpu-type: {}\nspec:\n  spec:\n    devices:\n      requests:\n        - name: slice\n          exactly:\n            \
             deviceClassName: mig.nvidia.com\n            selectors:\n              - cel:\n                  expression: {}\n\
             ---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\n  annotations:\n    downbeat/service: {}\n    \
             downbeat/model: {}\nspec:\n  replicas: {replicas}\n  selector:\n    matchLabels: {{downbeat/worker: {name}}}\n  template:\n    \
             metadata:\n      labels: {{downbeat/worker: {name}}}\n    spec:\n      resourceClaims:\n        - name: slice\n          \
             resourceClaimTemplateName: {name}\n      containers:\n        - name: worker\n{}          resources:\n            claims:\n              - name: slice\n",
            quoted(gpu_type),
            quoted(&expression),
            quoted(service),
            quoted(&instance.model),
            worker(gpu, instance, "          "),
        );
    }
    text
}
