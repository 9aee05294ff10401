//! One service's slices as a cluster for the simulator.

use downbeat_profile::{Beyond, LatencyProfile};
use downbeat_sched::{Delays, Priority, Rule};
use downbeat_sim::{Arrival, GpuClass, Jitter, Model, PolicySpec, RunReport, Scenario, Span, Until};

/// Slices of one kind: how many, and l(b) on them as `(batch, latency_ms)`.
#[derive(Clone, Debug)]
pub(crate) struct Slices {
    pub(crate) name: String,
    pub(crate) count: u32,
    pub(crate) points: Vec<(u32, f64)>,
}

/// Runs the real scheduler on these slices with Poisson arrivals of about `requests` requests, after a warm-up.
pub(crate) fn run(
    slices: &[Slices],
    slo_ms: f64,
    rate_rps: f64,
    requests: f64,
    seed: u64,
    until: Until,
) -> Result<RunReport, String> {
    let warmup = Span::from_millis_f64(slo_ms * warmup_slos(slo_ms, rate_rps));
    let measured = Span::from_secs_f64(requests / rate_rps);
    let profile = |slices: &Slices| {
        let largest = slices.points.last().map_or(1, |point| point.0);
        LatencyProfile::from_points(&slices.points, largest, Beyond::Refuse)
            .map_err(|error| error.to_string())
    };
    let scenario = Scenario {
        autoscale: None,
        name: "service".to_owned(),
        classes: slices
            .iter()
            .map(|slices| GpuClass { name: slices.name.clone(), count: slices.count })
            .collect(),
        duration: warmup + measured,
        warmup,
        seed,
        delays: Delays { control: Span::ZERO, data: Span::ZERO },
        rule: Rule::ADAPTIVE,
        response_reserve: Span::ZERO,
        response: None,
        jitter: Jitter::None,
        total_rps: rate_rps,
        models: vec![Model {
            name: "model".to_owned(),
            slo: Span::from_millis_f64(slo_ms),
            share: 1.0,
            profiles: slices.iter().map(|slices| profile(slices).map(Some)).collect::<Result<_, _>>()?,
            priority: Priority::default(),
            arrival: Arrival::Poisson,
        }],
        faults: Vec::new(),
        subclusters: Vec::new(),
    };
    let policy: PolicySpec =
        "adaptive".parse().map_err(|error: downbeat_sim::PolicyError| error.to_string())?;
    policy.run(&scenario, seed, until).map_err(|error| error.to_string())
}

/// How long a run warms up, in SLOs: 20, or fewer where so many requests arrive in that time that queues are as they
/// will be, but never fewer than 4. A batch takes no longer than an SLO.
fn warmup_slos(slo_ms: f64, rate_rps: f64) -> f64 {
    let requests_per_slo = rate_rps * slo_ms / 1e3;
    (WARMUP_REQUESTS / requests_per_slo).clamp(4.0, 20.0)
}

/// Requests after which a run is warm.
const WARMUP_REQUESTS: f64 = 20_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warm_up_is_bounded_by_its_requests() {
        assert_eq!(warmup_slos(20.0, 30_000.0), 20.0, "600 requests per SLO");
        assert_eq!(warmup_slos(500.0, 4_000.0), 10.0, "2,000 requests per SLO");
        assert_eq!(warmup_slos(500.0, 1e6), 4.0);
    }
}
