use downbeat_transition::{Driver, Gpu, Instance, Phase, ServiceName, Slice, StepKind};

use super::*;

fn instance(service: &str, start: u8) -> Instance {
    Instance {
        profile: "1g.5gb".to_owned(),
        start,
        service: service.to_owned(),
        model: "m".to_owned(),
        batch: 1,
        throughput_rps: 10.0,
    }
}

fn step(id: u32, kind: StepKind, start: u8, after: &[u32]) -> Step {
    let instance = instance("a", start);
    let (makes, removes) = match kind {
        StepKind::Create => (vec![instance.slice()], Vec::new()),
        _ => (Vec::new(), vec![instance.slice()]),
    };
    Step {
        id,
        kind,
        phase: Phase::Exchange,
        gpu: 0,
        node: 0,
        gpu_type: "A100-40GB".to_owned(),
        instance: Some(instance),
        from: None,
        removes,
        makes,
        after: after.to_vec(),
        why: String::new(),
        expected_s: 1.0,
        start_s: 0.0,
        end_s: 1.0,
        slack_s: 0.0,
    }
}

/// One instance; two are to be created, and then the first one deleted.
fn undertaking() -> Undertaking {
    let gpu = Gpu {
        gpu: 0,
        node: 0,
        gpu_type: "A100-40GB".to_owned(),
        instances: vec![instance("a", 0)],
        idle: Vec::<Slice>::new(),
    };
    let from = Layout { gpus: vec![gpu], services: vec![ServiceName::new("a")] };
    let steps = vec![
        step(1, StepKind::Create, 1, &[]),
        step(2, StepKind::Create, 2, &[]),
        step(3, StepKind::Delete, 0, &[1, 2]),
    ];
    let transition = Transition {
        driver: Driver::Nvml,
        steps,
        spares: Vec::new(),
        spares_are_fewest: true,
        must_change: 3,
        lower_bound: 3,
        expected_s: 2.0,
        critical_path: vec![1, 3],
        rounds: 0,
        renumbered: Vec::new(),
        notes: Vec::new(),
    };
    Undertaking::new(from, transition)
}

fn ready(undertaking: &Undertaking) -> Vec<u32> {
    undertaking.ready().map(|step| step.id).collect()
}

fn starts(layout: &Layout) -> Vec<u8> {
    let mut starts: Vec<u8> =
        layout.gpus.iter().flat_map(|gpu| &gpu.instances).map(|instance| instance.start).collect();
    starts.sort_unstable();
    starts
}

#[test]
fn a_step_is_ready_when_all_that_it_waits_for_has_ended() {
    let mut works = undertaking();
    assert_eq!(ready(&works), [1, 2]);
    works.begin(3);
    works.begin(1);
    works.begin(2);
    assert_eq!((ready(&works), works.running().count()), (vec![], 2));
    works.end(1);
    assert_eq!((ready(&works), starts(&works.layout())), (vec![], vec![0, 1]));
    works.end(2);
    assert_eq!(ready(&works), [3]);
    works.begin(3);
    works.end(3);
    assert!(works.is_over());
    assert_eq!(starts(&works.layout()), [1, 2]);
    assert_eq!(works.layout(), works.target());
}

#[test]
fn when_it_is_stopped_what_runs_ends_and_nothing_begins() {
    let mut works = undertaking();
    works.begin(1);
    works.stop();
    assert_eq!((ready(&works), works.is_over()), (vec![], false));
    assert_eq!(works.remaining().map(|step| step.id).collect::<Vec<_>>(), [1]);
    works.end(1);
    assert!(works.is_over());
    assert_eq!(starts(&works.layout()), [0, 1]);
}

#[test]
fn a_failed_step_stops_the_rest_and_leaves_what_was_there() {
    let mut works = undertaking();
    works.begin(1);
    works.begin(2);
    works.fail(1);
    assert!(works.is_stopped() && !works.is_over());
    works.end(2);
    assert!(works.is_over());
    assert_eq!(starts(&works.layout()), [0, 2]);
}
