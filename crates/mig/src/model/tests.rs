use crate::{Catalogue, Placed};

#[test]
fn slices_that_overlap_or_begin_elsewhere_are_refused() {
    let catalogue = Catalogue::builtin();
    let gpu = catalogue.find("A100-40GB").unwrap();
    let at = |name: &str, start| Placed { start, profile: gpu.profile(name).unwrap() };
    assert!(gpu.allows(&[at("4g", 0), at("3g", 4)]), "current drivers allow 4g and 3g");
    assert!(gpu.allows(&[at("3g", 0), at("3g", 4)]));
    assert!(!gpu.allows(&[at("3g", 0), at("3g", 0)]));
    assert!(!gpu.allows(&[at("3g", 4), at("4g", 4)]));
    assert!(!gpu.allows(&[at("2g", 6)]), "2g may not begin at 6");
    assert!(!gpu.allows(&[at("7g", 0), at("1g", 6)]));
    assert!(!gpu.allows(&[at("3g", 0), at("3g", 4), at("1g", 6)]));
}

#[test]
fn a_media_engine_is_given_once() {
    let catalogue = Catalogue::builtin();
    let gpu = catalogue.find("A100-40GB").unwrap();
    let me = gpu.profile("1g.5gb+me").unwrap();
    assert!(gpu.allows(&[Placed { start: 0, profile: me }]));
    assert!(!gpu.allows(&[Placed { start: 0, profile: me }, Placed { start: 1, profile: me }]));
}

#[test]
fn compute_is_counted_beside_memory() {
    // Four double-memory 1g slices use all memory but only four of seven compute slices; a fifth slice has no unit
    // left.
    let catalogue = Catalogue::builtin();
    let gpu = catalogue.find("A100-40GB").unwrap();
    let double = gpu.profile("1g.10gb").unwrap();
    let four: Vec<_> = [0, 2, 4, 6].map(|start| Placed { start, profile: double }).into();
    assert!(gpu.allows(&four));
    assert!(gpu.holes(&four).is_empty());
    assert_eq!(gpu.holes(&four[..3]), [6, 7]);
}

#[test]
fn plain_profiles_are_one_of_each_compute_size() {
    let catalogue = Catalogue::builtin();
    let names = |gpu: &str| {
        let gpu = catalogue.find(gpu).unwrap();
        gpu.plain().into_iter().map(|index| gpu.profiles[index].short_name()).collect::<Vec<_>>()
    };
    assert_eq!(names("H200-141GB"), ["1g", "2g", "3g", "4g", "7g"]);
    assert_eq!(names("A30"), ["1g", "2g", "4g"]);
    assert_eq!(names("RTX-PRO-6000"), ["1g", "2g", "4g"]);
    assert_eq!(names("B300"), ["1g", "2g", "3g"], "4g and 7g are not in the table");
    assert!(catalogue.find("B300").unwrap().is_incomplete());
    assert!(!catalogue.find("B200").unwrap().is_incomplete());
}
