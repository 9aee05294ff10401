use rand::RngExt;

use super::*;
use crate::layout::{Gpu, ServiceName};
use crate::random::Random;
use crate::replay::play_every_interleaving;

fn h200(catalogue: &Catalogue) -> downbeat_mig::GpuModel {
    catalogue.find("H200").unwrap().clone()
}

/// GPUs given as lists of (profile, start, service, throughput).
fn layout(gpus: &[&[(&str, u8, &str, f64)]]) -> Layout {
    let instance = |&(profile, start, service, throughput_rps): &(&str, u8, &str, f64)| Instance {
        profile: profile.to_owned(),
        start,
        service: service.to_owned(),
        model: "m".to_owned(),
        batch: 1,
        throughput_rps,
    };
    let gpus = gpus.iter().enumerate().map(|(gpu, instances)| Gpu {
        gpu: gpu as u32,
        node: 0,
        gpu_type: "A100-40GB".to_owned(),
        instances: instances.iter().map(instance).collect(),
        idle: Vec::new(),
    });
    let gpus: Vec<Gpu> = gpus.collect();
    let names: std::collections::BTreeSet<String> =
        gpus.iter().flat_map(|gpu| &gpu.instances).map(|instance| instance.service.clone()).collect();
    Layout { gpus, services: names.into_iter().map(ServiceName::new).collect() }
}

fn kinds(transition: &Transition) -> Vec<StepKind> {
    transition.steps.iter().map(|step| step.kind).collect()
}

const SEVEN: [(&str, u8, &str, f64); 7] = [
    ("1g.5gb", 0, "a", 10.0),
    ("1g.5gb", 1, "a", 10.0),
    ("1g.5gb", 2, "a", 10.0),
    ("1g.5gb", 3, "a", 10.0),
    ("1g.5gb", 4, "a", 10.0),
    ("1g.5gb", 5, "a", 10.0),
    ("1g.5gb", 6, "a", 10.0),
];

#[test]
fn equal_layouts_need_no_steps() {
    let same = layout(&[&SEVEN]);
    let found = plan(&same, &same, &Catalogue::builtin(), &Options::default()).unwrap();
    assert!(found.steps.is_empty());
    assert_eq!(found.expected_s, 0.0);
}

#[test]
fn a_full_gpu_is_recut_over_a_spare_and_its_throughput_never_falls() {
    let (from, to) = (layout(&[&SEVEN]), layout(&[&[("7g.40gb", 0, "a", 70.0)]]));
    let found = plan(&from, &to, &Catalogue::builtin(), &Options::default()).unwrap();
    assert_eq!(found.spares.len(), 1);
    // One large instance stands in for the seven: created on the spare, and migrated when they are gone.
    assert_eq!(found.steps.len(), 9);
    assert_eq!(found.lower_bound, 8);
    assert_eq!(kinds(&found)[0], StepKind::Create);
    assert_eq!(*kinds(&found).last().unwrap(), StepKind::Migrate);
    // 47 + 50 to create, 38 to delete all seven at once, 48 + 50 to migrate to another node.
    assert_eq!(found.expected_s, 97.0 + 38.0 + 98.0);
    assert_eq!(found.critical_path.len(), 3);
}

#[test]
fn too_few_spares_is_an_answer_that_says_how_many_would_do() {
    let (from, to) = (layout(&[&SEVEN]), layout(&[&[("7g.40gb", 0, "a", 70.0)]]));
    let options = Options { spare_max: Some(0), ..Options::default() };
    let error = plan(&from, &to, &Catalogue::builtin(), &options).unwrap_err();
    assert_eq!(error, PlanError::TooFewSpares { allowed: 0, needed: 1 });
    assert!(error.to_string().contains("--spare 1"));
}

#[test]
fn a_service_that_shrinks_frees_its_room_at_once() {
    let to = layout(&[&[("3g.20gb", 4, "a", 30.0)]]);
    let found = plan(&layout(&[&SEVEN]), &to, &Catalogue::builtin(), &Options::default()).unwrap();
    // Four of the seven pay for three times ten; the three at the end go first.
    assert!(found.spares.is_empty());
    assert_eq!(found.steps.len(), found.lower_bound);
}

#[test]
fn mig_parted_touches_no_gpu_whose_slices_are_already_right() {
    let from = layout(&[&[("3g.20gb", 0, "a", 30.0), ("3g.20gb", 4, "b", 30.0)], &SEVEN]);
    let to = layout(&[&[("3g.20gb", 0, "a", 30.0), ("3g.20gb", 4, "a", 30.0)], &SEVEN]);
    let comparison = Comparison { services_may_differ: true, ..Comparison::default() };
    let options = Options { driver: Driver::MigParted, comparison, ..Options::default() };
    let found = plan(&from, &to, &Catalogue::builtin(), &options).unwrap();
    assert_eq!(kinds(&found), [StepKind::Delete, StepKind::Create]);
    assert_eq!(found.steps[1].after, [1]);
}

#[test]
fn renumbering_leaves_alone_what_only_changed_its_number() {
    let whole: &[(&str, u8, &str, f64)] = &[("7g.40gb", 0, "b", 70.0)];
    let (from, to) = (layout(&[&SEVEN, whole]), layout(&[whole, &SEVEN]));
    let comparison = Comparison { renumber: true, ..Comparison::default() };
    let options = Options { comparison, ..Options::default() };
    let found = plan(&from, &to, &Catalogue::builtin(), &options).unwrap();
    assert!(found.steps.is_empty());
    assert_eq!(found.renumbered, [(1, 0), (0, 1)]);
}

#[test]
fn instances_that_two_plans_count_differently_count_for_the_lower_figure() {
    let from = layout(&[&[("3g.20gb", 0, "a", 30.0)]]);
    let to = layout(&[&[("3g.20gb", 0, "a", 33.0), ("3g.20gb", 4, "a", 33.0)]]);
    let found = plan(&from, &to, &Catalogue::builtin(), &Options::default()).unwrap();
    assert_eq!(kinds(&found), [StepKind::Create]);
    assert!(found.notes[0].contains("the lower figure"), "{:?}", found.notes);
}

/// `plan` replays what it finds and fails where that fails, so that succeeding is the property.
#[test]
fn transitions_between_random_layouts_keep_the_promise_with_either_driver() {
    let catalogue = Catalogue::builtin();
    let mut played = 0;
    for gpu in ["H200", "A30", "RTX PRO 6000"] {
        let gpu = catalogue.find(gpu).unwrap();
        for seed in 0..60 {
            let mut size = Random::new(gpu, 1, 1000 + seed);
            let (a, b) = (size.rng.random_range(1..=7), size.rng.random_range(1..=7));
            let services = size.rng.random_range(1..=(2 * a.min(b) as usize).min(4));
            let mut random = Random::new(gpu, services, seed);
            let from = random.layout(a, 0.2);
            let to = if seed % 3 == 0 { random.rearranged(&from) } else { random.layout(b, 0.2) };
            for driver in [Driver::Nvml, Driver::MigParted] {
                let comparison = Comparison { services_may_differ: true, renumber: seed % 2 == 0 };
                let options = Options { driver, comparison, ..Options::default() };
                let found = plan(&from, &to, &catalogue, &options)
                    .unwrap_or_else(|error| panic!("{} seed {seed} {driver:?}: {error}", gpu.name));
                assert!(found.steps.len() >= found.lower_bound, "{} seed {seed} {driver:?}", gpu.name);
                let target = renumbered(&to, &found.renumbered);
                if found.steps.len() <= 12 {
                    let all = play_every_interleaving(&from, &target, &found, &catalogue, 20_000);
                    played += usize::from(all.unwrap().is_some());
                }
            }
        }
    }
    assert!(played > 20, "{played} were small enough to play every interleaving");
}

#[test]
fn planning_is_a_function_of_its_input() {
    let catalogue = Catalogue::builtin();
    let gpu = h200(&catalogue);
    let mut random = Random::new(&gpu, 5, 3);
    let (from, to) = (random.layout(6, 0.0), random.layout(6, 0.0));
    let once = plan(&from, &to, &catalogue, &Options::default()).unwrap();
    assert_eq!(once, plan(&from, &to, &catalogue, &Options::default()).unwrap());
}

#[test]
fn a_cluster_of_two_gpu_types_changes_as_one() {
    let catalogue = Catalogue::builtin();
    let types = [catalogue.find("H200").unwrap(), catalogue.find("A30").unwrap()];
    for seed in 0..20 {
        // The services are the same on both types, so that an instance on one can pay for one on the other.
        let both = |layouts: [Layout; 2]| {
            let [mut all, other] = layouts;
            all.gpus.extend(other.gpus.into_iter().map(|gpu| Gpu {
                gpu: gpu.gpu + 10,
                node: gpu.node + 10,
                ..gpu
            }));
            all
        };
        let mut random = types.map(|gpu| Random::new(gpu, 3, seed));
        let mut draw = || both([random[0].layout(3, 0.0), random[1].layout(3, 0.0)]);
        let (from, to) = (draw(), draw());
        for driver in [Driver::Nvml, Driver::MigParted] {
            let found = plan(&from, &to, &catalogue, &Options { driver, ..Options::default() });
            let found = found.unwrap_or_else(|error| panic!("seed {seed} {driver:?}: {error}"));
            assert!(found.steps.len() >= found.lower_bound);
        }
    }
}
