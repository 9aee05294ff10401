use downbeat_mig::Catalogue;

use super::*;
use crate::layout::{Instance, Slice};
use crate::random::Random;

fn good() -> Layout {
    let catalogue = Catalogue::builtin();
    Random::new(catalogue.find("H200").unwrap(), 3, 1).layout(3, 0.0)
}

/// What is said about a good layout and a bad one.
fn said(spoil: impl Fn(&mut Layout)) -> String {
    let mut bad = good();
    spoil(&mut bad);
    Case::new(&good(), &bad, &Catalogue::builtin(), Comparison::default()).unwrap_err().to_string()
}

#[test]
fn plans_for_different_gpu_types_are_refused() {
    let catalogue = Catalogue::builtin();
    let other = Random::new(catalogue.find("A100-40GB").unwrap(), 3, 1).layout(3, 0.0);
    let error = Case::new(&good(), &other, &catalogue, Comparison::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the plans are for different GPU types: the first for H200-141GB, the second for A100-40GB; plan both for the same"
    );
}

#[test]
fn services_on_one_side_only_are_refused_unless_that_is_said_to_be_meant() {
    let mut more = good();
    more.gpus[0].instances[0].service = "extra".to_owned();
    let (from, catalogue) = (good(), Catalogue::builtin());
    let error = Case::new(&from, &more, &catalogue, Comparison::default()).unwrap_err();
    assert!(
        error.to_string().starts_with("service \"extra\" is in the second plan and not in the first"),
        "{error}"
    );
    let meant = Comparison { services_may_differ: true, ..Comparison::default() };
    assert!(Case::new(&from, &more, &catalogue, meant).is_ok());
}

#[test]
fn illegal_layouts_are_refused_with_the_gpu_and_what_is_wrong() {
    type Spoil = fn(&mut Layout);
    let cases: [(&str, Spoil); 8] = [
        ("the second plan: GPU 0: it is there twice", |bad| {
            let first = bad.gpus[0].clone();
            bad.gpus.push(first);
        }),
        ("overlap", |bad| {
            let again = bad.gpus[1].instances[0].clone();
            bad.gpus[1].instances.push(again);
        }),
        ("may not begin at 1, only at", |bad| {
            bad.gpus[1].instances = vec![Instance {
                profile: "3g.71gb".to_owned(),
                start: 1,
                ..bad.gpus[1].instances[0].clone()
            }];
        }),
        ("has no slice \"9g.999gb\"", |bad| bad.gpus[0].instances[0].profile = "9g.999gb".to_owned()),
        ("that is not a throughput", |bad| bad.gpus[0].instances[0].throughput_rps = -1.0),
        ("that is not a throughput", |bad| bad.gpus[0].instances[0].throughput_rps = f64::NAN),
        ("has no service", |bad| bad.gpus[0].instances[0].service = String::new()),
        ("overlap", |bad| {
            let slice = bad.gpus[0].instances[0].slice();
            bad.gpus[0].idle.push(Slice { ..slice });
        }),
    ];
    for (expected, spoil) in cases {
        let message = said(spoil);
        assert!(message.contains(expected), "{message:?} does not contain {expected:?}");
    }
}

#[test]
fn a_plan_that_lists_instances_which_its_layout_does_not_have_is_refused() {
    let listed = |bad: &mut Layout| {
        let of = |service: &str| {
            let instances = good().gpus.into_iter().flat_map(|gpu| gpu.instances);
            instances.filter(|instance| instance.service == service).count() as u32
        };
        for service in &mut bad.services {
            service.instances = Some(of(&service.name));
        }
    };
    let mut plan = good();
    listed(&mut plan);
    assert!(Case::new(&good(), &plan, &Catalogue::builtin(), Comparison::default()).is_ok());
    let message = said(|bad| {
        listed(bad);
        bad.gpus.clear();
    });
    assert!(message.contains("and 0 in the layout: the plan contradicts itself"), "{message}");
}

#[test]
fn a_gpu_on_another_node_or_of_an_unknown_type_is_refused() {
    let message = said(|bad| bad.gpus[0].node = 7);
    assert!(message.contains("on node 0 in the first plan and on node 7 in the second"), "{message}");
    let message = said(|bad| bad.gpus.iter_mut().for_each(|gpu| gpu.gpu_type = "H2000".to_owned()));
    assert!(message.contains("did you mean"), "{message}");
}

#[test]
fn the_json_of_a_plan_is_a_layout() {
    let plan = r#"{"problem": "p", "gpus": 1, "proved_optimal": true,
        "layout": [{"gpu": 4, "node": 1, "type": "A30-24GB", "instances": [
            {"profile": "2g.12gb", "start": 2, "service": "s", "model": "m", "batch": 8, "throughput_rps": 12.5}]}],
        "services": [{"name": "s", "model": "m", "demand_rps": 10.0, "provided_rps": 12.5}]}"#;
    let layout = Layout::parse(plan).unwrap();
    assert_eq!((layout.gpus[0].gpu, layout.instance_count()), (4, 1));
    assert_eq!(layout.services[0].name, "s");
}
