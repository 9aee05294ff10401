//! From devices to GPUs: whole ones, or as few as the slices can be cut from.

#[cfg(test)]
mod tests;

use downbeat_mig::{Multiset, Partitions};
use downbeat_milp::{Backend, Limits, MilpError, Program};
use serde::{Deserialize, Serialize};

use crate::problem::Problem;

/// One GPU that is cut into slices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlicedGpu {
    /// Its number.
    pub gpu: u32,
    /// Its slices, by start.
    pub slices: Vec<PlacedSlice>,
}

/// A slice and whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedSlice {
    /// The slice profile: `2g.35gb`.
    pub profile: String,
    /// The memory unit it begins at.
    pub start: u8,
    /// The sub-cluster.
    pub subcluster: String,
}

/// Cuts as few GPUs as possible into the slices that each sub-cluster wants: its name, a device by its index, and how
/// many.
pub(crate) fn cut(
    problem: &Problem,
    wanted: &[(String, usize, u32)],
    backend: &Backend,
) -> Result<Vec<SlicedGpu>, MilpError> {
    let Some(gpu) = problem.gpu.as_deref() else { return Ok(Vec::new()) };
    let profiles: Vec<usize> = problem.devices.iter().filter_map(|device| device.slice).collect();
    let partitions = Partitions::of(gpu, &profiles);
    let multisets = partitions.maximal_multisets();
    let mut left: Vec<Vec<&str>> = vec![Vec::new(); gpu.profiles.len()];
    for (name, device, count) in wanted {
        if let Some(profile) = problem.devices[*device].slice {
            left[profile].extend(std::iter::repeat_n(name.as_str(), *count as usize));
        }
    }
    let counts = cover(&multisets, &left.iter().map(Vec::len).collect::<Vec<_>>(), backend)?;
    // The first sub-cluster takes the first slices: those of one lie close together.
    left.iter_mut().for_each(|names| names.reverse());
    let mut cut = Vec::new();
    for (multiset, count) in multisets.iter().zip(counts) {
        for _ in 0..count {
            let placed = partitions.place(multiset).unwrap_or_default();
            let slices: Vec<PlacedSlice> = placed
                .iter()
                .filter_map(|placed| {
                    let subcluster = left[placed.profile].pop()?.to_owned();
                    let profile = gpu.profiles[placed.profile].name.clone();
                    Some(PlacedSlice { profile, start: placed.start, subcluster })
                })
                .collect();
            cut.push(SlicedGpu { gpu: cut.len() as u32, slices });
        }
    }
    Ok(cut)
}

/// How many GPUs to cut in each way, the fewest in all.
fn cover(multisets: &[Multiset], wanted: &[usize], backend: &Backend) -> Result<Vec<u32>, MilpError> {
    let mut program = Program::default();
    let most = wanted.iter().sum::<usize>() as f64;
    let ways: Vec<_> = multisets.iter().map(|_| program.integer(1.0, 0.0, most)).collect();
    for (profile, &count) in wanted.iter().enumerate().filter(|(_, count)| **count > 0) {
        let terms: Vec<_> = (multisets.iter().zip(&ways))
            .filter(|(multiset, _)| multiset[profile] > 0)
            .map(|(multiset, &way)| (way, f64::from(multiset[profile])))
            .collect();
        program.at_least(&terms, count as f64);
    }
    let answer = backend.solve(&program, &Limits::none())?;
    let Some(values) = answer.values else {
        return Err(MilpError::Failed {
            backend: backend.name(),
            why: "the slices cannot be cut from this GPU at all".to_owned(),
        });
    };
    Ok(values.iter().map(|value| value.round() as u32).collect())
}
