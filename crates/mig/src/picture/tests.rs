use super::*;
use crate::Catalogue;

#[test]
fn every_unit_has_its_width_whatever_the_labels() {
    let catalogue = Catalogue::builtin();
    let gpu = catalogue.find("A100-40GB").unwrap();
    let slice = |name: &str, start, label: &str| Labelled {
        placed: Placed { start, profile: gpu.profile(name).unwrap() },
        label: label.to_owned(),
    };
    let drawn = picture(gpu, &[slice("3g", 4, "bert"), slice("2g", 0, "a-very-long-name-of-a-service")], 5);
    assert_eq!(drawn, "[2g a-ver]··········[3g bert           ]");
    assert_eq!(drawn.chars().count(), 8 * 5);
    assert_eq!(picture(gpu, &[], 3), "·".repeat(24));
    let twice = picture(gpu, &[slice("1g.5gb", 0, "a"), slice("1g.10gb", 2, "a")], 6);
    assert_eq!(twice, "[1g a]······[1g.10gb a ]························");
}
