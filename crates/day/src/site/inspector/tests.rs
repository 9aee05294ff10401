//! A transition that keeps its promise, and what the inspector says when its steps are tampered with.

use downbeat_transition::{Gpu, Options, ServiceName, plan};

use super::*;

fn instance(profile: &str, start: u8, service: &str, throughput_rps: f64) -> Instance {
    Instance {
        profile: profile.to_owned(),
        start,
        service: service.to_owned(),
        model: "m".to_owned(),
        batch: 4,
        throughput_rps,
    }
}

fn layout(gpus: &[&[Instance]]) -> Layout {
    let gpu = |(number, instances): (usize, &&[Instance])| Gpu {
        gpu: number as u32,
        node: 0,
        gpu_type: "A100-40GB".to_owned(),
        instances: instances.to_vec(),
        idle: Vec::new(),
    };
    let services = ["a", "b"].map(ServiceName::new).to_vec();
    Layout { gpus: gpus.iter().enumerate().map(gpu).collect(), services }
}

/// From one large and one small instance to the other way round.
fn change() -> (Layout, Undertaking) {
    let from = layout(&[&[instance("3g.20gb", 0, "a", 30.0), instance("1g.5gb", 4, "b", 10.0)], &[]]);
    let to = layout(&[&[instance("3g.20gb", 0, "b", 30.0), instance("1g.5gb", 4, "a", 10.0)], &[]]);
    let transition = plan(&from, &to, &Catalogue::builtin(), &Options::default()).unwrap();
    (from.clone(), Undertaking::new(from, transition))
}

/// Plays the steps one after the other; what the inspector says.
fn played(tamper: impl Fn(&mut Step), order: impl Fn(&mut Vec<Step>)) -> Vec<String> {
    let (from, undertaking) = change();
    let mut inspector = Inspector::new(&Catalogue::builtin(), &from, &undertaking.target(), &undertaking);
    let mut steps = undertaking.transition().steps.clone();
    steps.iter_mut().for_each(tamper);
    order(&mut steps);
    steps.iter().flat_map(|step| [inspector.begin(step), inspector.end(step)]).flatten().collect()
}

#[test]
fn a_transition_as_it_was_planned_is_fine() {
    assert_eq!(played(|_| {}, |_| {}), Vec::<String>::new());
}

#[test]
fn deleting_first_takes_throughput_away() {
    let said = played(|_| {}, |steps| steps.sort_by_key(|step| step.kind != StepKind::Delete));
    assert!(said.iter().any(|said| said.contains("requests per second")), "{said:?}");
}

#[test]
fn a_slice_at_a_place_that_is_not_allowed_is_seen() {
    let shift = |step: &mut Step| {
        if step.kind == StepKind::Create {
            step.makes.push(Slice { profile: "3g.20gb".to_owned(), start: 1 });
        }
    };
    let said = played(shift, |_| {});
    assert!(said.iter().any(|said| said.contains("cut as it must not be")), "{said:?}");
}

#[test]
fn an_instance_without_a_slice_is_seen() {
    let said = played(|step| step.makes.clear(), |_| {});
    assert!(said.iter().any(|said| said.contains("has no slice")), "{said:?}");
}
