//! Kubernetes: a pod per instance that asks for its slice by resource name.

use std::fmt::Write;

use super::product::affinity;
use super::{labels, named_instances, quoted, worker};
use crate::plan::Plan;

/// Pods with `nvidia.com/mig-*` limits, on nodes with the type of GPU that was planned: slices of two types may be
/// called the same. The image is the user's to fill in; the service, model and place are labels and annotations.
pub fn kubernetes(plan: &Plan) -> String {
    let mut text = String::new();
    let labels = labels(plan);
    for (name, gpu, instance) in named_instances(plan, &labels) {
        // A `+` may not stand in a resource's name; NVIDIA's device plugin writes a dot instead.
        let resource = format!("nvidia.com/mig-{}", instance.profile.replace('+', "."));
        let _ = write!(
            text,
            "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n  labels:\n    app.kubernetes.io/managed-by: downbeat\n    \
             downbeat/service: {}\n  annotations:\n    downbeat/service: {}\n    downbeat/model: {}\n    downbeat/gpu: {}\n    \
             downbeat/node: {}\n    downbeat/start: {}\nspec:\n{}  containers:\n    - name: worker\n{}      resources:\n        limits:\n          {resource}: \"1\"\n",
            quoted(&labels[instance.service.as_str()]),
            quoted(&instance.service),
            quoted(&instance.model),
            quoted(&gpu.gpu.to_string()),
            quoted(&gpu.node.to_string()),
            quoted(&instance.start.to_string()),
            affinity(&gpu.gpu_type, "  "),
            worker(gpu, instance, "      "),
        );
    }
    text
}
