use downbeat_mig::Catalogue;

use crate::random::Random;
use crate::replay::check;
use crate::{Driver, Options, plan};

/// Were a step to wait for more than it must, dropping that would go unnoticed; so nearly every edge must be missed.
#[test]
fn steps_wait_for_little_more_than_they_must() {
    let catalogue = Catalogue::builtin();
    let gpu = catalogue.find("H200").unwrap();
    let (mut edges, mut needed) = (0, 0);
    for seed in 0..20 {
        let mut random = Random::new(gpu, 3, seed);
        let (from, to) = (random.layout(4, 0.0), random.layout(4, 0.0));
        for driver in [Driver::Nvml, Driver::MigParted] {
            let options = Options { driver, ..Options::default() };
            let transition = plan(&from, &to, &catalogue, &options).unwrap();
            for step in 0..transition.steps.len() {
                for edge in 0..transition.steps[step].after.len() {
                    let mut looser = transition.clone();
                    looser.steps[step].after.remove(edge);
                    edges += 1;
                    needed += usize::from(check(&from, &to, &looser, &catalogue).is_err());
                }
            }
        }
    }
    assert!(edges > 300 && needed * 10 >= edges * 8, "{needed} of {edges} edges are needed");
}
