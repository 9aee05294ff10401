//! NVIDIA's mig-parted: a file of named layouts, and which node has which.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::quoted;
use crate::plan::{GpuLayout, Plan, number_devices};

/// How many slices of each profile a GPU has.
type Cut<'a> = BTreeMap<&'a str, u32>;
/// A node's GPUs, by their index within it.
type Devices<'a> = BTreeMap<u32, Cut<'a>>;

/// A mig-parted configuration with one named layout per node; nodes that are cut alike share one.
///
/// mig-parted is told how many slices of each profile a GPU has, in the order that creates them; it chooses the starts
/// itself. The label `nvidia.com/mig.config` of each node is listed in comments. GPUs that the plan does not use are
/// not named: they stay as they are.
pub fn mig_parted(plan: &Plan) -> String {
    let mut layout = plan.layout.clone();
    number_devices(&mut layout);
    let mut nodes: BTreeMap<u32, Devices<'_>> = BTreeMap::new();
    for gpu in &layout {
        let device = gpu.device.unwrap_or_default();
        nodes.entry(gpu.node).or_default().insert(device, cut(gpu));
    }
    let mut names: BTreeMap<Devices<'_>, (String, Vec<u32>)> = BTreeMap::new();
    for (node, devices) in nodes {
        let next = format!("downbeat-{}", names.len());
        names.entry(devices).or_insert((next, Vec::new())).1.push(node);
    }
    let mut layouts: Vec<_> = names.iter().collect();
    layouts.sort_by_key(|(_, (_, nodes))| nodes.first().copied());
    let mut text = String::from("version: v1\nmig-configs:\n");
    for (devices, (name, nodes)) in layouts {
        let nodes: Vec<String> = nodes.iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "  # nvidia.com/mig.config={name} on node {}", nodes.join(", "));
        let _ = writeln!(text, "  {name}:");
        for (devices, cut) in runs(devices) {
            let devices: Vec<String> = devices.iter().map(ToString::to_string).collect();
            let _ = writeln!(text, "    - devices: [{}]", devices.join(", "));
            let _ = writeln!(text, "      mig-enabled: true");
            let _ = writeln!(text, "      mig-devices:");
            for (profile, count) in cut {
                let _ = writeln!(text, "        {}: {count}", quoted(profile));
            }
        }
    }
    text
}

fn cut(gpu: &GpuLayout) -> Cut<'_> {
    let mut cut = BTreeMap::new();
    for instance in &gpu.instances {
        *cut.entry(instance.profile.as_str()).or_default() += 1;
    }
    cut
}

/// Devices that are cut alike, one after the other.
fn runs<'a, 'b>(devices: &'a Devices<'b>) -> Vec<(Vec<u32>, &'a Cut<'b>)> {
    let mut runs: Vec<(Vec<u32>, &Cut<'b>)> = Vec::new();
    for (&device, cut) in devices {
        match runs.last_mut() {
            Some((devices, same)) if *same == cut => devices.push(device),
            _ => runs.push((vec![device], cut)),
        }
    }
    runs
}
