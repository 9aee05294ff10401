use std::path::Path;

use downbeat_milp::Backend;

use super::cut;
use crate::problem::Problem;

fn sliced() -> Problem {
    let text = "gpu = \"H200-141GB\"\nslices = [\"1g\", \"2g\", \"3g\"]\nprofiles = \"h200.csv\"\n\
                [[model]]\nname = \"a\"\nmeasured = \"resnet50\"\nrate_rps = 10\nslo_ms = 50\n";
    let profiles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles/problem.toml");
    Problem::parse(text, &profiles).unwrap()
}

/// Two 3g fill a GPU and leave no room for a 1g; three 2g leave room for one.
#[test]
fn slices_are_cut_from_as_few_gpus_as_placements_allow() {
    let problem = sliced();
    let gpus = |one: u32, two: u32, three: u32| {
        let wanted = [("x".to_owned(), 0, one), ("y".to_owned(), 1, two), ("z".to_owned(), 2, three)];
        let wanted: Vec<_> = wanted.into_iter().filter(|wanted| wanted.2 > 0).collect();
        let cut = cut(&problem, &wanted, &Backend::microlp()).unwrap();
        let of = |name: &str| {
            cut.iter().flat_map(|gpu| &gpu.slices).filter(|slice| slice.subcluster == name).count() as u32
        };
        assert_eq!((of("x"), of("y"), of("z")), (one, two, three));
        cut.len()
    };
    assert_eq!(gpus(7, 0, 0), 1);
    assert_eq!(gpus(8, 0, 0), 2);
    assert_eq!(gpus(0, 0, 2), 1);
    assert_eq!(gpus(1, 0, 2), 2, "3g + 3g leave no room");
    assert_eq!(gpus(1, 3, 0), 1);
    assert_eq!(gpus(14, 0, 0), 2);
}
