//! Which measured batches fit into a slice's memory.

use downbeat_mig::SliceProfile;
use downbeat_profile::Measurement;

/// What a batch needs: what the user says of the service, or else what was measured.
pub(super) fn needed_mib(point: &Measurement, memory_mib: Option<f64>) -> f64 {
    memory_mib.or(point.peak_mib).or(point.weights_mib).unwrap_or(0.0)
}

/// The `(batch, latency_ms)` points whose memory fits.
pub(super) fn points_that_fit(
    measured: &[Measurement],
    slice: &SliceProfile,
    memory_mib: Option<f64>,
) -> Vec<(u32, f64)> {
    let fits = |point: &&Measurement| needed_mib(point, memory_mib) <= slice.memory_mib;
    measured.iter().filter(fits).map(|point| (point.batch, point.latency_ms)).collect()
}
