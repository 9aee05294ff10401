use downbeat_mig::Catalogue;
use rand::RngExt;

use super::*;
use crate::random::Random;
use crate::{Comparison, Driver, Options, plan};

/// Random transitions are stopped at random moments, with a step failed or not; what remains is planned, and so on
/// until nothing does.
#[test]
fn from_wherever_a_transition_was_left_another_one_finishes_the_job() {
    let catalogue = Catalogue::builtin();
    let gpu = catalogue.find("H200").unwrap();
    for seed in 0..24 {
        let mut random = Random::new(gpu, 3, seed);
        let (from, to) = (random.layout(4, 0.1), random.layout(4, 0.1));
        let driver = if seed % 2 == 0 { Driver::Nvml } else { Driver::MigParted };
        let comparison = Comparison { services_may_differ: true, ..Comparison::default() };
        let options = Options { driver, comparison, ..Options::default() };
        let mut state = from;
        for stop in 0..3 {
            let transition = plan(&state, &to, &catalogue, &options)
                .unwrap_or_else(|error| panic!("seed {seed}, stop {stop}: {error}"));
            let (mut ended, mut failed) = (Vec::new(), Vec::new());
            for step in &transition.steps {
                if !step.after.iter().all(|before| ended.contains(before)) {
                    continue;
                }
                match random.rng.random_range(0..10) {
                    0 => failed.push(step.id),
                    1 | 2 => {}
                    _ => ended.push(step.id),
                }
            }
            state = state_after(&state, &transition, &ended, &failed).unwrap();
        }
        let rest =
            plan(&state, &to, &catalogue, &options).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let all: Vec<u32> = rest.steps.iter().map(|step| step.id).collect();
        let end = state_after(&state, &rest, &all, &[]).unwrap();
        assert!(
            plan(&end, &to, &catalogue, &options).unwrap().steps.iter().all(|step| step.instance.is_none())
        );
    }
}

/// Stopped after its first, second, ... step, what remains of a transition ends where the whole would have.
#[test]
fn after_every_prefix_of_a_transition_the_rest_can_be_planned() {
    let catalogue = Catalogue::builtin();
    let gpu = catalogue.find("H200").unwrap();
    for seed in 0..6 {
        let mut random = Random::new(gpu, 3, 500 + seed);
        let (from, to) = (random.layout(3, 0.1), random.layout(2, 0.0));
        let driver = if seed % 2 == 0 { Driver::Nvml } else { Driver::MigParted };
        let comparison = Comparison { services_may_differ: true, ..Comparison::default() };
        let options = Options { driver, comparison, ..Options::default() };
        let whole = plan(&from, &to, &catalogue, &options).unwrap();
        let ids: Vec<u32> = whole.steps.iter().map(|step| step.id).collect();
        for length in 0..=ids.len() {
            let state = state_after(&from, &whole, &ids[..length], &[]).unwrap();
            let rest = plan(&state, &to, &catalogue, &options)
                .unwrap_or_else(|error| panic!("seed {seed}, after {length} steps: {error}"));
            let all: Vec<u32> = rest.steps.iter().map(|step| step.id).collect();
            let end = state_after(&state, &rest, &all, &[]).unwrap();
            let running = |layout: &Layout| {
                let on = |gpu: &Gpu| {
                    let number = gpu.gpu;
                    let names = gpu.instances.iter().map(move |instance| {
                        (number, instance.start, instance.profile.clone(), instance.service.clone())
                    });
                    names.collect::<Vec<_>>()
                };
                layout.gpus.iter().flat_map(on).collect::<std::collections::BTreeSet<_>>()
            };
            assert_eq!(running(&end), running(&to), "seed {seed}, after {length} steps");
        }
    }
}

#[test]
fn a_state_that_cannot_be_is_refused() {
    let catalogue = Catalogue::builtin();
    let gpu = catalogue.find("H200").unwrap();
    let mut random = Random::new(gpu, 2, 5);
    let (from, to) = (random.layout(2, 0.0), random.layout(2, 0.0));
    let transition = plan(&from, &to, &catalogue, &Options::default()).unwrap();
    let later = transition.steps.iter().find(|step| !step.after.is_empty()).unwrap();
    let too_early = state_after(&from, &transition, &[later.id], &[]);
    assert!(matches!(too_early, Err(ResumeError::TooEarly { id, .. }) if id == later.id));
    let unknown = state_after(&from, &transition, &[1000], &[]);
    assert!(matches!(unknown, Err(ResumeError::NoSuchStep { id: 1000, .. })));
    let both = state_after(&from, &transition, &[1], &[1]);
    assert_eq!(both, Err(ResumeError::EndedAndFailed { id: 1 }));
}
