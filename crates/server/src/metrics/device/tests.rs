use downbeat_profile::Span;

use crate::metrics::Metrics;

#[test]
fn a_device_that_comes_back_under_another_rank_is_counted_once() {
    let metrics = Metrics::new().unwrap();
    let class = "cpu".parse().unwrap();
    let first = metrics.device("cpu:0", &class, 0);
    first.up(true);
    first.up(false);
    metrics.device("cpu:0", &class, 3).up(true);
    let text = metrics.render();
    let up: Vec<&str> = text.lines().filter(|line| line.starts_with("downbeat_device_up{")).collect();
    assert_eq!(up, [r#"downbeat_device_up{class="cpu",device="cpu:0",rank="3"} 1"#]);
    // Whoever still holds the old one does no harm.
    first.busy(Span::from_millis(1), false);
    assert!(!metrics.render().contains(r#"rank="0""#));
}

#[test]
fn two_devices_of_one_name_are_both_counted() {
    let metrics = Metrics::new().unwrap();
    let class = "cpu".parse().unwrap();
    metrics.device("host/cpu:0", &class, 0).up(true);
    metrics.device("host/cpu:0", &class, 1).up(true);
    let up = metrics.render().lines().filter(|line| line.starts_with("downbeat_device_up{")).count();
    assert_eq!(up, 2);
}
