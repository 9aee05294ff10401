//! Goodput: the highest rate that passes, by bisection.

#[cfg(test)]
mod tests;

/// How far down the search goes from where it began before it says that no rate passes.
const LOWEST: f64 = 1.0 / 1024.0;

/// A search for the highest rate that passes. Told of each rate whether it did, it says which to try next.
///
/// From the first rate on it doubles while rates pass, or halves while they fail; then the gap between the highest rate
/// that passed and the lowest that failed is halved until it is `precision` of the former.
#[derive(Clone, Debug)]
pub struct Search {
    first: f64,
    precision: f64,
    highest: f64,
    passed: Option<f64>,
    failed: Option<f64>,
}

/// How often, at one rate, a run that failed while the machine stood still is made again before it counts.
const EXCUSED_MAX: u32 = 6;

/// The runs at one rate, until one passes or the rate has failed.
///
/// A rate that fails is tried again with other arrivals, a few times. Where the machine stood still meanwhile, that it
/// failed says nothing of the server: the same arrivals again, and the run does not count.
#[derive(Clone, Debug)]
pub(crate) struct Attempts {
    tries: u32,
    failed: u32,
    excused: u32,
}

impl Attempts {
    pub(crate) fn new(tries: u32) -> Attempts {
        Attempts { tries: tries.max(1), failed: 0, excused: 0 }
    }

    /// Which arrivals to try next, from 0; none where the rate has failed.
    pub(crate) fn next(&self) -> Option<u64> {
        (self.failed < self.tries).then_some(self.failed.into())
    }

    /// The run failed, maybe while the machine `stalled`. Whether that counts.
    pub(crate) fn failed(&mut self, stalled: bool) -> bool {
        let counts = !stalled || self.excused >= EXCUSED_MAX;
        *(if counts { &mut self.failed } else { &mut self.excused }) += 1;
        counts
    }
}

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Found {
    /// This rate passed, and one that is at most the precision higher failed.
    Knee(f64),
    /// Even the highest rate allowed passed.
    AtLeast(f64),
    /// No rate passed.
    Nothing,
}

impl Search {
    /// A search that begins at `first` and tries nothing above `highest`; both and the precision are above 0.
    pub fn new(first: f64, precision: f64, highest: f64) -> Search {
        Search { first: first.min(highest), precision, highest, passed: None, failed: None }
    }

    /// The rate to try next, or what was found.
    pub fn next_rate(&self) -> Result<f64, Found> {
        match (self.passed, self.failed) {
            (None, None) => Ok(self.first),
            (Some(passed), None) if passed >= self.highest => Err(Found::AtLeast(passed)),
            (Some(passed), None) => Ok((passed * 2.0).min(self.highest)),
            (None, Some(failed)) if failed <= self.first * LOWEST => Err(Found::Nothing),
            (None, Some(failed)) => Ok(failed / 2.0),
            (Some(passed), Some(failed)) if failed <= passed * (1.0 + self.precision) => {
                Err(Found::Knee(passed))
            }
            (Some(passed), Some(failed)) => Ok((passed + failed) / 2.0),
        }
    }

    /// Tells whether a rate passed.
    pub fn tried(&mut self, rate: f64, passed: bool) {
        *(if passed { &mut self.passed } else { &mut self.failed }) = Some(rate);
    }
}
