//! What devices are held by: the device time lately given away, by the length of the batches.

use std::ops::Range;

use downbeat_profile::Span;

/// The device time of the batches lately started on a class of devices, by octaves of their latency.
///
/// Tells how long all devices may be held at once. With one device that is the longest batch; with many, a few long
/// batches hold a few devices, and the others come free as often as short batches end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Occupancy {
    octaves: [Octave; OCTAVES],
    /// The octaves that ever had a batch; all others are 0.
    used: Range<usize>,
    /// The share of device time that holds so many devices at once for that part of the time, as it was last asked for.
    share: f64,
    share_of: (u32, f64),
}

/// Batches whose latencies are within a factor of two; older ones count less.
#[derive(Clone, Copy, Debug, Default)]
struct Octave {
    batches: f64,
    time_ns: f64,
}

/// log2 of the latency in nanoseconds at which the second octave begins, about 65 us: all that is shorter is alike.
const FIRST_BITS: u32 = 16;

/// The last one begins at about a minute.
const OCTAVES: usize = 22;

/// How much one batch counts: what holds devices is told from the last few hundred batches.
const BATCH_WEIGHT: f64 = 1.0 / 256.0;

impl Occupancy {
    /// Takes in a batch that is started.
    pub(crate) fn add(&mut self, latency: Span) {
        for octave in &mut self.octaves[self.used.clone()] {
            octave.batches *= 1.0 - BATCH_WEIGHT;
            octave.time_ns *= 1.0 - BATCH_WEIGHT;
        }
        let bits = u64::BITS - latency.as_nanos().leading_zeros();
        let index = (bits.saturating_sub(FIRST_BITS) as usize).min(OCTAVES - 1);
        self.used = if self.used.is_empty() {
            index..index + 1
        } else {
            self.used.start.min(index)..self.used.end.max(index + 1)
        };
        let octave = &mut self.octaves[index];
        octave.batches += 1.0;
        octave.time_ns += latency.as_nanos() as f64;
    }

    /// The longest batches, to an octave, that hold all of `gpus` busy devices at once for more than `part` of the
    /// time.
    ///
    /// A busy device is held by a batch of at least some length for the share of device time that such batches have;
    /// all of them at once for that share to the power of their number.
    pub(crate) fn longest_holding_all(&mut self, gpus: u32, part: f64) -> Span {
        if self.share_of != (gpus, part) {
            self.share_of = (gpus, part);
            self.share = part.powf(1.0 / f64::from(gpus.max(1)));
        }
        let share = self.share;
        let used = &self.octaves[self.used.clone()];
        let enough_ns = share * used.iter().map(|octave| octave.time_ns).sum::<f64>();
        let mut so_far_ns = 0.0;
        for octave in used.iter().rev().filter(|octave| octave.batches > 0.0) {
            so_far_ns += octave.time_ns;
            if so_far_ns >= enough_ns {
                return Span::from_nanos((octave.time_ns / octave.batches) as u64);
            }
        }
        Span::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::Occupancy;
    use crate::Span;

    /// Of the device time, a third goes into batches of 200 ms, the rest into those of 5 ms.
    fn a_third_is_long() -> Occupancy {
        let mut occupancy = Occupancy::default();
        for step in 0..4_000 {
            occupancy.add(Span::from_millis(if step % 81 == 0 { 200 } else { 5 }));
        }
        occupancy
    }

    #[test]
    fn nothing_started_holds_nothing() {
        assert_eq!(Occupancy::default().longest_holding_all(1, 0.005), Span::ZERO);
    }

    #[test]
    fn batches_of_one_length_hold_any_number_of_devices() {
        let mut occupancy = Occupancy::default();
        (0..10).for_each(|_| occupancy.add(Span::from_millis(7)));
        for gpus in [0, 1, 8, 1_000] {
            let longest = occupancy.longest_holding_all(gpus, 0.005);
            assert!((longest.as_millis_f64() - 7.0).abs() < 0.001, "{gpus} devices: {longest:?}");
        }
    }

    /// A third to the power of 4 is 0.012, to the power of 5 it is 0.004.
    #[test]
    fn long_batches_hold_few_devices_at_once_but_not_many() {
        let longest = |gpus| a_third_is_long().longest_holding_all(gpus, 0.005).as_millis_f64().round();
        assert_eq!([1, 2, 4].map(longest), [200.0; 3]);
        assert_eq!([6, 8, 100].map(longest), [5.0; 3]);
    }
}
