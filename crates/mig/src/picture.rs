//! A partition as a line of text.

#[cfg(test)]
mod tests;

use crate::{GpuModel, Placed};

/// A slice and what is written into it.
#[derive(Clone, Debug)]
pub struct Labelled {
    /// Where it lies.
    pub placed: Placed,
    /// What runs in it.
    pub label: String,
}

/// The GPU's memory units from left to right, `unit_width` characters each: a box per slice with its name, in short
/// where that is plain, and label, dots where nothing is.
///
/// Slices that are not on the GPU are left out, and of labels too long for their box the end.
pub fn picture(gpu: &GpuModel, slices: &[Labelled], unit_width: usize) -> String {
    let width = unit_width.max(2);
    let mut slices: Vec<&Labelled> = slices.iter().collect();
    slices.sort_by_key(|slice| slice.placed);
    let plain = gpu.plain();
    let mut line = String::new();
    let mut at = 0;
    for slice in slices {
        let Some(profile) = gpu.profiles.get(slice.placed.profile) else { continue };
        if slice.placed.start < at || slice.placed.start + profile.size > gpu.units {
            continue;
        }
        line += &hole(slice.placed.start - at, width);
        let inside = usize::from(profile.size) * width - 2;
        // In full where the short name is that of another slice.
        let name =
            if plain.contains(&slice.placed.profile) { profile.short_name() } else { profile.name.clone() };
        let text: String = format!("{name} {}", slice.label).chars().take(inside).collect();
        line += &format!("[{text:<inside$}]");
        at = slice.placed.start + profile.size;
    }
    line + &hole(gpu.units.saturating_sub(at), width)
}

fn hole(units: u8, width: usize) -> String {
    "·".repeat(usize::from(units) * width)
}
