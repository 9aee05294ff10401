use super::*;
use crate::report::{ChangeReport, GpuStay, InstanceLife, LogLine, ServiceDay, StepRun, Window};

fn report() -> DayReport {
    let service = ServiceDay {
        name: "<b>search</b>".to_owned(),
        model: "bert".to_owned(),
        slo_ms: 60.0,
        requests: 12_345,
        in_slo: 0.999,
        in_slo_worst_minute: 0.98,
        instances_least: 1,
        instances_most: 3,
    };
    let minute = DayMinute {
        gpus: 1,
        coming: 1,
        rate_rps: vec![100.0],
        capacity_rps: vec![200.0],
        in_slo: vec![0.998],
        instances: vec![2],
    };
    let step = StepRun {
        id: 1,
        kind: "create".to_owned(),
        gpu: 1,
        what: "create 3g search on GPU 1@0".to_owned(),
        from_s: 100.0,
        until_s: Some(200.0),
        failed: false,
    };
    DayReport {
        day: "office".to_owned(),
        seed: 1,
        duration_s: 600.0,
        epoch_s: 300.0,
        driver: "nvml".to_owned(),
        provision_s: 60.0,
        gpu_hours: 0.3,
        gpus_least: 1,
        gpus_most: 2,
        fixed_gpus: 3,
        fixed_gpu_hours: 0.5,
        saved: 0.4,
        requests: 12_345,
        lost: 0,
        bad: 12,
        in_slo: 0.999,
        service_minutes: 10,
        missed: 1,
        missed_unexcused: 0,
        windows: vec![Window { why: "failure".to_owned(), from_s: 300.0, until_s: 400.0 }],
        services: vec![service],
        minutes: vec![minute; 10],
        changes: vec![ChangeReport {
            at_s: 95.0,
            ended_s: Some(200.0),
            cause: "epoch".to_owned(),
            why: "From 1 to 2 GPUs".to_owned(),
            demand_rps: vec![150.0],
            gpus: 2,
            proved_optimal: true,
            expected_s: 97.0,
            spares: 0,
            planned_steps: 1,
            steps: vec![step],
            notes: Vec::new(),
        }],
        log: vec![LogLine { at_s: 300.0, what: "kept: 2 GPUs serve what is expected".to_owned() }],
        instances: vec![InstanceLife {
            gpu: 1,
            start: 0,
            size: 4,
            units: 8,
            profile: "3g.20gb".to_owned(),
            service: "<b>search</b>".to_owned(),
            asked_s: 100.0,
            from_s: Some(200.0),
            until_s: None,
        }],
        gpus: vec![GpuStay { gpu: 1, from_s: 95.0, until_s: None }],
        violations: Vec::new(),
        notes: Vec::new(),
        wall_s: 1.0,
    }
}

#[test]
fn the_page_shows_load_gpus_layouts_requests_in_slo_and_steps() {
    let page = day_page(&report());
    for part in
        ["The load", "GPUs", "Layouts over the day", "What users see", "Steps over the day", "Every decision"]
    {
        assert!(page.contains(part), "{part}");
    }
    assert!(page.contains("create 3g search on GPU 1@0"));
    assert!(page.contains("99.9 %") && page.contains("98 %"));
    assert!(page.contains("From 1 to 2 GPUs") && page.contains("kept: 2 GPUs"));
}

#[test]
fn names_are_escaped_and_nothing_is_fetched() {
    let page = day_page(&report());
    assert!(!page.contains("<b>search") && page.contains("&lt;b&gt;search"));
    assert!(!page.contains("http://") && !page.contains("https://"));
}

#[test]
fn a_day_on_which_nothing_changes_has_a_page_too() {
    let quiet = DayReport { changes: Vec::new(), instances: Vec::new(), ..report() };
    let page = day_page(&quiet);
    assert!(page.contains("Nothing was changed.") && page.contains("Nothing ever ran."));
}
