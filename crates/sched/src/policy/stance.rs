//! The rules that `adaptive` can follow.

use std::fmt;

/// What [`Adaptive`](super::Adaptive) follows on a class of devices: its own rule, unless somebody who tried the others
/// on the same requests says that one of them loses fewer.
///
/// No rule that decides by what it sees now is the best everywhere: whether it is right to hurry depends on what that
/// does to all that follows. Those that are simpler than `adaptive` are ahead of it here and there, each somewhere
/// else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stance {
    /// `adaptive`'s own.
    #[default]
    Own,
    /// [`Deferred`](super::Deferred) with [`WindowDrop`](super::WindowDrop).
    Deferred,
    /// [`Deferred`](super::Deferred) with [`TimeoutDrop`](super::TimeoutDrop).
    Lenient,
    /// [`Guarded`](super::Guarded) with k = 1 and [`WindowDrop`](super::WindowDrop).
    Guarded1,
    /// The same with k = 2.
    Guarded2,
    /// The same with k = 4.
    Guarded4,
    /// [`Eager`](super::Eager) with [`WindowDrop`](super::WindowDrop).
    Eager,
}

impl Stance {
    /// All of them, `adaptive`'s own first.
    pub const ALL: [Stance; 7] = [
        Stance::Own,
        Stance::Deferred,
        Stance::Lenient,
        Stance::Guarded1,
        Stance::Guarded2,
        Stance::Guarded4,
        Stance::Eager,
    ];

    /// Its name in metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Stance::Own => "own",
            Stance::Deferred => "deferred",
            Stance::Lenient => "lenient",
            Stance::Guarded1 => "guarded-1",
            Stance::Guarded2 => "guarded-2",
            Stance::Guarded4 => "guarded-4",
            Stance::Eager => "eager",
        }
    }

    /// A small number for it, to be carried elsewhere.
    pub const fn number(self) -> u64 {
        self as u64
    }

    /// The stance with this [`number`](Self::number); `adaptive`'s own where there is none.
    pub fn from_number(number: u64) -> Stance {
        Stance::ALL.get(number as usize).copied().unwrap_or_default()
    }

    /// How many times the work that waits per device windows open early; `None` where `adaptive` says how early.
    pub(super) fn head_starts(self) -> Option<f64> {
        match self {
            Stance::Own => None,
            Stance::Deferred | Stance::Lenient => Some(0.0),
            Stance::Guarded1 => Some(1.0),
            Stance::Guarded2 => Some(2.0),
            Stance::Guarded4 => Some(4.0),
            Stance::Eager => Some(f64::INFINITY),
        }
    }
}

impl fmt::Display for Stance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
