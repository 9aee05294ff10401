use downbeat_mig::Catalogue;
use proptest::prelude::*;
use rand::RngExt;

use super::precedence::Event;
use super::*;
use crate::random::Random;
use crate::step::{Step, StepKind};
use crate::{Driver, Options, plan};

/// A random small transition, its layouts and a source of randomness.
fn small(
    seed: u64,
    driver: Driver,
) -> Option<(Layout, Layout, Transition, rand_xoshiro::Xoshiro256PlusPlus)> {
    let catalogue = Catalogue::builtin();
    let gpu = catalogue.find("A30-24GB").unwrap();
    let mut random = Random::new(gpu, 2, seed);
    let (from, to) = (random.layout(2, 0.1), random.layout(2, 0.1));
    let found = plan(&from, &to, &catalogue, &Options { driver, ..Options::default() }).ok()?;
    Some((from, to, found, random.rng))
}

/// The analysis of all interleavings at once says what playing each of them says, for transitions that were tampered
/// with.
#[test]
fn the_analysis_of_interleavings_agrees_with_playing_every_one() {
    let catalogue = Catalogue::builtin();
    let (mut fine, mut wrong) = (0, 0);
    for seed in 0..400 {
        let driver = if seed % 2 == 0 { Driver::Nvml } else { Driver::MigParted };
        let Some((from, to, mut transition, mut rng)) = small(seed, driver) else { continue };
        if transition.steps.is_empty() || transition.steps.len() > 9 {
            continue;
        }
        for _ in 0..rng.random_range(0..3) {
            let step = rng.random_range(0..transition.steps.len());
            let after = &mut transition.steps[step].after;
            if !after.is_empty() {
                after.remove(rng.random_range(0..after.len()));
            }
        }
        let ground = Ground::new(&from, &to, &transition, &catalogue).unwrap();
        let precedence = Precedence::of(&transition.steps).unwrap();
        let analysed = interleavings::check(&ground, &from, &transition, &precedence);
        match every::play(&ground, &from, &transition, 60_000) {
            every::Outcome::AllFine(_) => {
                fine += 1;
                assert_eq!(analysed, Ok(()), "seed {seed}");
            }
            every::Outcome::Wrong(how) => {
                wrong += 1;
                assert!(analysed.is_err(), "seed {seed}: {how}");
            }
            every::Outcome::TooMany => {}
        }
    }
    assert!(fine > 30 && wrong > 30, "{fine} fine, {wrong} wrong");
}

#[test]
fn transitions_that_were_tampered_with_are_refused() {
    let catalogue = Catalogue::builtin();
    type Tamper = fn(&mut Vec<Step>);
    let tampers: [(&str, Tamper); 5] = [
        ("the last step is missing", |steps| drop(steps.pop())),
        ("nothing waits for anything", |steps| steps.iter_mut().for_each(|step| step.after.clear())),
        ("steps wait for later ones", |steps| {
            let last = steps.len() as u32;
            steps[0].after.push(last);
        }),
        ("an instance goes to another GPU", |steps| {
            let come = steps.iter_mut().find(|step| step.kind != StepKind::Delete && step.instance.is_some());
            if let Some(step) = come {
                step.gpu = if step.gpu == 0 { 1 } else { 0 };
            }
        }),
        ("a step is done twice", |steps| {
            let mut again = steps[0].clone();
            again.id = steps.len() as u32 + 1;
            steps.push(again);
        }),
    ];
    let gpu = catalogue.find("H200").unwrap();
    let mut random = Random::new(gpu, 3, 2);
    let (from, to) = (random.layout(3, 0.0), random.layout(3, 0.0));
    for driver in [Driver::Nvml, Driver::MigParted] {
        let good = plan(&from, &to, &catalogue, &Options { driver, ..Options::default() }).unwrap();
        assert_eq!(check(&from, &to, &good, &catalogue), Ok(()));
        for (what, tamper) in tampers {
            let mut bad = good.clone();
            tamper(&mut bad.steps);
            assert!(check(&from, &to, &bad, &catalogue).is_err(), "{driver:?}: {what}");
        }
    }
}

proptest! {
    /// Brute force over all moments of a few events in a random order.
    #[test]
    fn the_worst_moment_is_the_worst_of_all_moments(
        edges in prop::collection::vec(any::<bool>(), 15),
        weights in prop::collection::vec((0usize..6, any::<bool>(), -9i64..10), 1..9),
    ) {
        let mut steps = Vec::new();
        let mut edge = edges.into_iter();
        for id in 1..=6u32 {
            let after = (1..id).filter(|_| edge.next().unwrap_or(false)).collect();
            steps.push(waiting(id, after));
        }
        let precedence = Precedence::of(&steps).unwrap();
        let mut sums = BTreeMap::new();
        for (step, is_end, weight) in weights {
            *sums.entry(Event { step, is_end }).or_insert(0) += weight;
        }
        let weights: Vec<(Event, i64)> = sums.into_iter().collect();
        let events: Vec<Event> = (0..6).flat_map(|step| [Event::begin(step), Event::end(step)]).collect();
        let mut worst = 0;
        for moment in 0u32..1 << events.len() {
            let has = |event: &Event| moment >> (event.step * 2 + usize::from(event.is_end)) & 1 == 1;
            let closed = events.iter().filter(|event| has(event)).all(|event| {
                events.iter().filter(|before| precedence.precedes(**before, *event)).all(has)
            });
            if closed {
                worst = worst.max(weights.iter().filter(|(event, _)| has(event)).map(|(_, weight)| weight).sum());
            }
        }
        prop_assert_eq!(closure::largest(&precedence, &weights), worst);
    }
}

fn waiting(id: u32, after: Vec<u32>) -> Step {
    Step {
        id,
        kind: StepKind::Repartition,
        phase: crate::Phase::Exchange,
        gpu: 0,
        node: 0,
        gpu_type: String::new(),
        instance: None,
        from: None,
        removes: Vec::new(),
        makes: Vec::new(),
        after,
        why: String::new(),
        expected_s: 1.0,
        start_s: 0.0,
        end_s: 0.0,
        slack_s: 0.0,
    }
}
