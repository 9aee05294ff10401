//! Percentiles of times.

use std::time::Duration;

/// Times in milliseconds. Some may be negative: an answer can come before the last moment.
#[derive(Debug, Default)]
pub(crate) struct Spread {
    ms: Vec<f64>,
}

impl Spread {
    pub(crate) fn add(&mut self, time: Duration) {
        self.add_ms(time.as_secs_f64() * 1e3);
    }

    pub(crate) fn add_ms(&mut self, ms: f64) {
        self.ms.push(ms);
    }

    pub(crate) fn len(&self) -> usize {
        self.ms.len()
    }

    /// The values below which these shares of all times lie, as text; 1 is the largest.
    pub(crate) fn shares<const N: usize>(&mut self, shares: [f64; N]) -> [String; N] {
        self.ms.sort_by(f64::total_cmp);
        let last = self.ms.len().saturating_sub(1);
        shares.map(|share| {
            let at = (share * last as f64).round() as usize;
            self.ms.get(at).map_or_else(|| "-".to_owned(), |ms| format!("{ms:.2}"))
        })
    }
}

impl Extend<f64> for Spread {
    fn extend<I: IntoIterator<Item = f64>>(&mut self, ms: I) {
        self.ms.extend(ms);
    }
}

impl IntoIterator for Spread {
    type Item = f64;
    type IntoIter = std::vec::IntoIter<f64>;

    fn into_iter(self) -> Self::IntoIter {
        self.ms.into_iter()
    }
}
