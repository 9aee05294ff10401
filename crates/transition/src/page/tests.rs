use downbeat_mig::Catalogue;

use super::*;
use crate::random::Random;
use crate::{Options, plan};

#[test]
fn every_step_is_drawn_once_and_listed_once_and_names_are_escaped() {
    let catalogue = Catalogue::builtin();
    let gpu = catalogue.find("H200").unwrap();
    let mut random = Random::new(gpu, 3, 1);
    let (mut from, mut to) = (random.layout(4, 0.0), random.layout(4, 0.0));
    for layout in [&mut from, &mut to] {
        for service in &mut layout.services {
            service.name = format!("<b>{}", service.name);
        }
        for instance in layout.gpus.iter_mut().flat_map(|gpu| &mut gpu.instances) {
            instance.service = format!("<b>{}", instance.service);
        }
    }
    let transition = plan(&from, &to, &catalogue, &Options::default()).unwrap();
    let page = page("day & night", &transition);
    assert!(page.contains("day &amp; night") && !page.contains("<b>s"));
    assert_eq!(page.matches("class=\"step ").count(), transition.steps.len());
    assert_eq!(page.matches("<tr class=").count(), transition.steps.len());
    assert!(page.contains("critical"));
}

#[test]
fn a_transition_without_steps_says_so() {
    let catalogue = Catalogue::builtin();
    let gpu = catalogue.find("H200").unwrap();
    let same = Random::new(gpu, 3, 1).layout(2, 0.0);
    let transition = plan(&same, &same, &catalogue, &Options::default()).unwrap();
    assert!(page("same", &transition).contains("Nothing to do"));
}
