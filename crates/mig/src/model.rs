//! One GPU model: its slice profiles and the rule of placement.

#[cfg(test)]
mod tests;

use std::fmt;

/// How a placement is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// Printed by the driver of a real GPU.
    Captured,
    /// Concluded from other GPUs of the family.
    Inferred,
    /// Said by the user.
    UserDefined,
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Evidence::Captured => "captured",
            Evidence::Inferred => "inferred",
            Evidence::UserDefined => "user-defined",
        })
    }
}

/// A kind of slice that a GPU can be cut into.
#[derive(Clone, Debug, PartialEq)]
pub struct SliceProfile {
    /// As the driver names it: `3g.71gb`, `1g.18gb+me`.
    pub name: String,
    /// The compute slices it takes.
    pub compute: u8,
    /// The memory units it covers.
    pub size: u8,
    /// Where it may begin; ascending, at least one.
    pub starts: Vec<u8>,
    /// The memory it has, in MiB. The smallest figure where drivers differ; from the name where no capture is known.
    pub memory_mib: f64,
    /// Its streaming multiprocessors, where known.
    pub sms: Option<u32>,
    /// The most slices of this profile that a GPU may have.
    pub most: u8,
    /// How its placement is known.
    pub evidence: Evidence,
}

impl SliceProfile {
    /// The part of the name before the memory: `3g` of `3g.71gb`, `1g+me` of `1g.18gb+me`.
    pub fn short_name(&self) -> String {
        match self.name.split_once('.') {
            Some((compute, memory)) => {
                let suffix = memory.find(['+', '-']).map_or("", |at| &memory[at..]);
                format!("{compute}{suffix}")
            }
            None => self.name.clone(),
        }
    }

    /// Whether it has attributes beyond compute and memory, such as `+me` or `+gfx`.
    pub fn is_special(&self) -> bool {
        self.name.contains(['+', '-'])
    }
}

/// A slice at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Placed {
    /// The memory unit it begins at.
    pub start: u8,
    /// Index of its profile in [`GpuModel::profiles`].
    pub profile: usize,
}

/// A GPU that can be partitioned.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuModel {
    /// Its name: `H200-141GB`.
    pub name: String,
    /// How many memory units it has.
    pub units: u8,
    /// How many compute slices it has.
    pub compute: u8,
    /// The slices it can be cut into; at least one.
    pub profiles: Vec<SliceProfile>,
}

impl GpuModel {
    /// The profile called `name`, in full or in short where that is unique: `3g.71gb`, `3g`.
    pub fn profile(&self, name: &str) -> Option<usize> {
        let exact = self.profiles.iter().position(|profile| profile.name == name);
        exact.or_else(|| {
            let plain = self.plain();
            plain.into_iter().find(|&index| self.profiles[index].short_name() == name)
        })
    }

    /// The profiles without special attributes, and of those with equal compute the one with the least memory: the five
    /// sizes of a seven-slice GPU.
    pub fn plain(&self) -> Vec<usize> {
        let plainer = |a: &SliceProfile, b: &SliceProfile| a.compute == b.compute && a.size < b.size;
        (0..self.profiles.len())
            .filter(|&index| {
                let profile = &self.profiles[index];
                let rival = |other: &SliceProfile| !other.is_special() && plainer(other, profile);
                !profile.is_special() && !self.profiles.iter().any(rival)
            })
            .collect()
    }

    /// The profile that is the whole GPU, where it is known.
    pub fn whole(&self) -> Option<usize> {
        self.plain().into_iter().find(|&index| self.profiles[index].size == self.units)
    }

    /// Whether profiles of it are known to be missing from the table: one that can be cut into slices can also be left
    /// whole.
    pub fn is_incomplete(&self) -> bool {
        self.whole().is_none()
    }

    /// Whether any placement of it was inferred and not captured.
    pub fn is_inferred(&self) -> bool {
        self.profiles.iter().any(|profile| profile.evidence == Evidence::Inferred)
    }

    /// The rule of placement: every slice at an allowed start and inside the GPU, no two on one unit, no more compute
    /// than there is, no profile more often than it may be.
    pub fn allows(&self, placed: &[Placed]) -> bool {
        let mut units = vec![false; usize::from(self.units)];
        let mut counts = vec![0u8; self.profiles.len()];
        let mut compute = 0u32;
        for slice in placed {
            let Some(profile) = self.profiles.get(slice.profile) else { return false };
            if !profile.starts.contains(&slice.start) {
                return false;
            }
            let covered = usize::from(slice.start)..usize::from(slice.start) + usize::from(profile.size);
            let Some(covered) = units.get_mut(covered) else { return false };
            if covered.iter().any(|&taken| taken) {
                return false;
            }
            covered.fill(true);
            counts[slice.profile] = counts[slice.profile].saturating_add(1);
            if counts[slice.profile] > profile.most {
                return false;
            }
            compute += u32::from(profile.compute);
        }
        compute <= u32::from(self.compute)
    }

    /// The units that no slice covers.
    pub fn holes(&self, placed: &[Placed]) -> Vec<u8> {
        let covers = |unit: u8, slice: &Placed| {
            let size = self.profiles.get(slice.profile).map_or(0, |profile| profile.size);
            (slice.start..slice.start.saturating_add(size)).contains(&unit)
        };
        (0..self.units).filter(|&unit| !placed.iter().any(|slice| covers(unit, slice))).collect()
    }
}
