//! NVIDIA's mig-parted: a file of named layouts, and which node has which.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::quoted;
use crate::plan::{GpuLayout, Plan};

/// How many slices of each profile a GPU has.
type Cut<'a> = BTreeMap<&'a str, u32>;

/// A mig-parted configuration with one named layout per node; nodes that are cut alike share one.
///
/// mig-parted is told how many slices of each profile a GPU has, in the order that creates them; it chooses the starts itself. The label
/// `nvidia.com/mig.config` of each node is listed in comments.
pub fn mig_parted(plan: &Plan) -> String {
    let mut nodes: BTreeMap<u32, Vec<&GpuLayout>> = BTreeMap::new();
    for gpu in &plan.layout {
        nodes.entry(gpu.node).or_default().push(gpu);
    }
    let mut names: BTreeMap<Vec<Cut<'_>>, (String, Vec<u32>)> = BTreeMap::new();
    for (node, gpus) in &nodes {
        let cuts: Vec<Cut<'_>> = gpus.iter().map(|gpu| devices(gpu)).collect();
        let next = format!("downbeat-{}", names.len());
        names.entry(cuts).or_insert((next, Vec::new())).1.push(*node);
    }
    let mut layouts: Vec<_> = names.iter().collect();
    layouts.sort_by_key(|(_, (_, nodes))| nodes.first().copied());
    let mut text = String::from("version: v1\nmig-configs:\n");
    for (cuts, (name, nodes)) in layouts {
        let nodes: Vec<String> = nodes.iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "  # nvidia.com/mig.config={name} on node {}", nodes.join(", "));
        let _ = writeln!(text, "  {name}:");
        for (first, last, cut) in runs(cuts) {
            let devices: Vec<String> = (first..=last).map(|device| device.to_string()).collect();
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

fn devices(gpu: &GpuLayout) -> Cut<'_> {
    let mut devices = BTreeMap::new();
    for instance in &gpu.instances {
        *devices.entry(instance.profile.as_str()).or_default() += 1;
    }
    devices
}

/// Neighbouring GPUs that are cut alike, as (first, last, cut).
fn runs<'a, 'b>(cuts: &'a [Cut<'b>]) -> Vec<(usize, usize, &'a Cut<'b>)> {
    let mut runs: Vec<(usize, usize, &Cut<'b>)> = Vec::new();
    for (index, cut) in cuts.iter().enumerate() {
        match runs.last_mut() {
            Some((_, last, same)) if *same == cut => *last = index,
            _ => runs.push((index, index, cut)),
        }
    }
    runs
}
