//! What an operator may choose.

use downbeat_sched::Span;
use downbeat_transition::{Driver, StepTimes};

/// How a [`Conductor`](crate::Conductor) is to behave.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// How often the layout is looked at as a whole.
    pub epoch: Span,
    /// How long a change may take, a GPU's coming included: what is expected within this time must be served by what
    /// there is.
    pub lead: Span,
    /// How long a GPU takes to come.
    pub provision: Span,
    /// What is planned for over what is expected, as a factor.
    pub headroom: f64,
    /// After how long traffic repeats itself.
    pub season: Span,
    /// How long the history is that the conductor is told of before it begins
    /// ([`Conductor::remember`](crate::Conductor::remember)): a whole number of seasons.
    pub history: Span,
    /// What changes the GPUs' slices.
    pub driver: Driver,
    /// How long steps take.
    pub times: StepTimes,
    /// The most GPUs to use on the way beyond those of the plans.
    pub spare_max: Option<usize>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            epoch: Span::from_millis(3_600_000),
            lead: Span::from_millis(600_000),
            provision: Span::from_millis(120_000),
            headroom: 1.1,
            season: Span::from_millis(86_400_000),
            history: Span::ZERO,
            driver: Driver::Nvml,
            times: StepTimes::PAPER_2021,
            spare_max: None,
        }
    }
}
