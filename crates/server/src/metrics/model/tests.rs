use downbeat_oip::Reason;
use downbeat_profile::Span;

use crate::metrics::Metrics;

fn series_of(metrics: &Metrics, model: &str) -> usize {
    let label = format!("model=\"{model}\"");
    metrics.render().lines().filter(|line| line.contains(&label)).count()
}

#[test]
fn the_series_of_a_model_end_when_it_is_unloaded_and_not_when_it_is_loaded_again() {
    let metrics = Metrics::new().unwrap();
    let slo = Span::from_millis(100);
    let kept = metrics.model("kept", "1", slo);
    let series = series_of(&metrics, "kept");
    let first = metrics.model("swapped", "1", slo);
    assert_eq!(series_of(&metrics, "swapped"), series);
    first.failed(Reason::Expired);
    let second = metrics.model("swapped", "1", slo);
    drop(first);
    second.failed(Reason::Expired);
    assert_eq!(series_of(&metrics, "swapped"), series);
    let expired = "nv_inference_request_failure{model=\"swapped\",reason=\"expired\",version=\"1\"} 2";
    assert!(metrics.render().contains(expired), "{}", metrics.render());
    drop(second);
    assert_eq!(series_of(&metrics, "swapped"), 0);
    assert_eq!(series_of(&metrics, "kept"), series);
    drop(kept);
    assert_eq!(series_of(&metrics, "kept"), 0);
}

#[test]
fn statistics_tell_how_long_failures_took() {
    let metrics = Metrics::new().unwrap();
    let meter = metrics.model("m", "1", Span::from_millis(100));
    meter.failed(Reason::Expired);
    meter.spent_on_failure(Span::from_millis(30));
    let fail = meter.statistics().inference_stats.unwrap().fail.unwrap();
    assert_eq!((fail.count, fail.ns), (1, 30_000_000));
}
