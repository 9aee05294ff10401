//! A set of device classes.

use crate::ClassId;

/// A set of device classes, of which there are at most [`CLASS_LIMIT`](crate::CLASS_LIMIT).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassSet(u64);

impl ClassSet {
    /// The set whose members are the set bits.
    pub const fn from_bits(bits: u64) -> ClassSet {
        ClassSet(bits)
    }

    /// A bit for each member.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Whether `class` is in it.
    pub const fn contains(self, class: ClassId) -> bool {
        class.0 < 64 && self.0 >> class.0 & 1 == 1
    }

    /// Puts `class` in, or takes it out.
    pub const fn set(&mut self, class: ClassId, member: bool) {
        if class.0 < 64 {
            self.0 = self.0 & !(1 << class.0) | (member as u64) << class.0;
        }
    }

    /// What is in one of the two and not in the other.
    pub const fn difference(self, other: ClassSet) -> ClassSet {
        ClassSet(self.0 ^ other.0)
    }
}
