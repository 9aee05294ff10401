//! From values to places on an axis.

use super::format;

/// The length of an axis in the pictures' own units; a picture is stretched to its place on the page.
pub const SIZE: f64 = 1000.0;

/// How many steps an axis has at most: more labels than that collide on a phone.
const STEPS_MAX: f64 = 6.0;

/// One axis: its range, whether it is logarithmic, what it measures and how its ticks read.
#[derive(Clone, Debug)]
pub struct Axis {
    lo: f64,
    hi: f64,
    step: Step,
    /// What is measured, with the unit.
    pub title: String,
    tick: fn(f64) -> String,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Even(f64),
    Decades,
}

impl Axis {
    /// A linear axis over `values`, widened to whole steps. Values that are not finite are left out.
    pub fn over(values: impl IntoIterator<Item = f64>, title: &str) -> Self {
        let (mut lo, mut hi) = extent(values).unwrap_or((0.0, 1.0));
        if hi - lo <= hi.abs() * 1e-9 {
            // One value: give it a neighbourhood, from zero as a rule.
            (lo, hi) = match hi {
                _ if hi > 0.0 => (0.0, hi * 1.25),
                _ if hi < 0.0 => (hi * 1.25, 0.0),
                _ => (0.0, 1.0),
            };
        }
        let step = nice_step(hi - lo);
        Self {
            lo: (lo / step).floor() * step,
            hi: (hi / step).ceil() * step,
            step: Step::Even(step),
            title: title.to_owned(),
            tick: format::tick,
        }
    }

    /// A linear axis from zero to the largest of `values`.
    pub fn from_zero(values: impl IntoIterator<Item = f64>, title: &str) -> Self {
        Self::over(values.into_iter().chain([0.0]), title)
    }

    /// A logarithmic axis of shares, from `floor` to 100 %.
    pub fn log_share(floor: f64, title: &str) -> Self {
        Self { lo: floor, hi: 1.0, step: Step::Decades, title: title.to_owned(), tick: format::percent }
    }

    /// The same axis, ending exactly at `hi`.
    pub fn ending_at(mut self, hi: f64) -> Self {
        if hi.is_finite() && hi > self.lo {
            self.hi = hi;
        }
        self
    }

    /// The same axis, from exactly `lo` to exactly `hi`.
    pub fn between(mut self, lo: f64, hi: f64) -> Self {
        self.lo = lo;
        self.ending_at(hi)
    }

    /// The same axis, for things that are counted: no ticks between whole numbers.
    pub fn whole(mut self) -> Self {
        if let Step::Even(step) = self.step {
            self.step = Step::Even(step.max(1.0));
            self.hi = self.hi.ceil();
        }
        self
    }

    /// The same axis with other labels.
    pub fn labelled(mut self, tick: fn(f64) -> String) -> Self {
        self.tick = tick;
        self
    }

    /// The end of the axis.
    pub fn end(&self) -> f64 {
        self.hi
    }

    /// The place of a value, 0 to [`SIZE`]. What lies outside the axis is put on its edge.
    pub fn at(&self, value: f64) -> f64 {
        let share = match self.step {
            Step::Even(_) => (value - self.lo) / (self.hi - self.lo),
            // A share of zero has no logarithm; `max` also turns NaN into the floor.
            Step::Decades => (value.max(self.lo) / self.lo).ln() / (self.hi / self.lo).ln(),
        };
        if share.is_finite() { share.clamp(0.0, 1.0) * SIZE } else { 0.0 }
    }

    /// The place of a value as a percentage of the axis.
    pub fn percent_at(&self, value: f64) -> f64 {
        self.at(value) * 100.0 / SIZE
    }

    /// Whether the value lies on the axis.
    pub fn holds(&self, value: f64) -> bool {
        value >= self.lo && value <= self.hi
    }

    /// The ticks, with their labels, rising.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        let values: Vec<f64> = match self.step {
            Step::Even(step) => {
                let first = (self.lo / step).ceil() as i64;
                let last = (self.hi / step + 1e-9).floor() as i64;
                (first..=last).map(|i| i as f64 * step).collect()
            }
            Step::Decades => {
                let first = self.lo.log10().round() as i32;
                (first..=0).map(|power| 10f64.powi(power)).collect()
            }
        };
        values.into_iter().map(|value| (value, (self.tick)(value))).collect()
    }
}

/// The smallest and the largest finite value.
pub fn extent(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    values.into_iter().filter(|v| v.is_finite()).fold(None, |range, v| match range {
        None => Some((v, v)),
        Some((lo, hi)) => Some((f64::min(lo, v), f64::max(hi, v))),
    })
}

/// The smallest of 1, 2, 5, 10, ... that divides `span` into few enough steps.
fn nice_step(span: f64) -> f64 {
    let rough = span / STEPS_MAX;
    let decade = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * decade >= rough);
    factor.unwrap_or(10.0) * decade
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<String> {
        axis.ticks().into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_fall_on_round_numbers() {
        assert_eq!(labels(&Axis::over([310.0, 1130.0], "x")), ["200", "400", "600", "800", "1,000", "1,200"]);
    }

    #[test]
    fn an_axis_without_a_usable_value_still_has_ticks() {
        for values in [vec![], vec![f64::NAN], vec![f64::INFINITY], vec![0.0], vec![7.0], vec![-3.0]] {
            let axis = Axis::from_zero(values.iter().copied(), "x");
            assert!(axis.ticks().len() >= 2, "{values:?}");
            assert!(axis.at(f64::NAN).is_finite());
        }
    }

    #[test]
    fn a_logarithmic_axis_gives_every_decade_the_same_room() {
        let axis = Axis::log_share(1e-4, "bad");
        assert_eq!(axis.ticks().len(), 5);
        assert!((axis.at(0.01) - SIZE / 2.0).abs() < 1e-6);
        assert_eq!(axis.at(0.0), 0.0);
        assert_eq!(axis.at(2.0), SIZE);
    }
}
