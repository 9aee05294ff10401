use downbeat_mig::Catalogue;

use crate::random::Random;
use crate::{Options, StepTimes, plan};

#[test]
fn steps_begin_when_what_they_wait_for_has_ended_and_the_critical_path_has_no_gaps() {
    let catalogue = Catalogue::builtin();
    let gpu = catalogue.find("H200").unwrap();
    for seed in 0..20 {
        let mut random = Random::new(gpu, 4, seed);
        let (from, to) = (random.layout(6, 0.0), random.layout(6, 0.0));
        let found = plan(&from, &to, &catalogue, &Options::default()).unwrap();
        for step in &found.steps {
            let ready = step.after.iter().map(|&id| found.steps[id as usize - 1].end_s).fold(0.0, f64::max);
            assert_eq!(step.start_s, ready);
            assert!(step.end_s + step.slack_s <= found.expected_s + 1e-9);
        }
        let path: Vec<_> = found.critical_path.iter().map(|&id| &found.steps[id as usize - 1]).collect();
        assert!(
            (path.iter().map(|step| step.expected_s).sum::<f64>() - found.expected_s).abs() < 1e-9,
            "seed {seed}"
        );
        assert!(path.iter().all(|step| step.slack_s < 1e-9));
        assert!(path.windows(2).all(|pair| pair[1].after.contains(&pair[0].id)));
    }
}

#[test]
fn newer_step_times_make_the_same_transition_quicker() {
    let catalogue = Catalogue::builtin();
    let gpu = catalogue.find("H200").unwrap();
    let mut random = Random::new(gpu, 3, 8);
    let (from, to) = (random.layout(5, 0.0), random.layout(5, 0.0));
    let expected =
        |times| plan(&from, &to, &catalogue, &Options { times, ..Options::default() }).unwrap().expected_s;
    assert!(expected(StepTimes::PAPER_2024) < expected(StepTimes::PAPER_2021));
}
