use super::*;
use crate::Catalogue;

fn counts(gpu: &str) -> (usize, usize, usize) {
    let catalogue = Catalogue::builtin();
    let gpu = catalogue.find(gpu).unwrap();
    let partitions = Partitions::of(gpu, &gpu.plain());
    (partitions.states().len(), partitions.maximal_states().len(), partitions.maximal_multisets().len())
}

#[test]
fn the_rule_gives_the_known_counts() {
    for gpu in ["A100-40GB", "A100-80GB", "H100-SXM5-80GB", "H100-NVL-94GB", "H200-141GB", "B200-180GB"] {
        assert_eq!(counts(gpu), (298, 19, 12), "{gpu}");
    }
    assert_eq!(counts("A30-24GB"), (26, 5, 4));
    assert_eq!(counts("RTX-PRO-6000-96GB"), (26, 5, 4));
}

#[test]
fn the_twelve_multisets_are_those_of_the_vendor() {
    let catalogue = Catalogue::builtin();
    let gpu = catalogue.find("H200").unwrap();
    let mut written: Vec<String> = Partitions::of(gpu, &gpu.plain())
        .maximal_multisets()
        .iter()
        .map(|multiset| {
            let mut slices: Vec<u8> = multiset
                .iter()
                .zip(&gpu.profiles)
                .flat_map(|(&count, profile)| std::iter::repeat_n(profile.compute, count.into()))
                .collect();
            slices.sort_by(|a, b| b.cmp(a));
            slices.iter().map(u8::to_string).collect()
        })
        .collect();
    written.sort_by(|a, b| b.cmp(a));
    assert_eq!(
        written,
        ["7", "43", "421", "4111", "33", "322", "3211", "31111", "2221", "22111", "211111", "1111111"]
    );
}

#[test]
fn every_multiset_can_be_placed_as_it_is() {
    let catalogue = Catalogue::builtin();
    for gpu in catalogue.gpus() {
        let partitions = Partitions::of(gpu, &gpu.plain());
        for multiset in partitions.multisets() {
            let state = partitions.place(&multiset).unwrap();
            assert!(gpu.allows(state));
            assert_eq!(partitions.count(state), multiset);
        }
        let mut too_many = vec![0; gpu.profiles.len()];
        too_many[gpu.plain()[0]] = gpu.compute + 1;
        assert_eq!(partitions.place(&too_many), None);
    }
}

proptest::proptest! {
    #[test]
    fn states_are_exactly_what_the_rule_allows(chosen in proptest::collection::vec((0usize..6, 0u8..9), 0..5)) {
        let catalogue = Catalogue::builtin();
        let gpu = catalogue.find("A100-40GB").unwrap();
        let plain = gpu.plain();
        let partitions = Partitions::of(gpu, &plain);
        let mut state: Vec<Placed> = chosen
            .into_iter()
            .filter_map(|(at, start)| Some(Placed { start, profile: *plain.get(at)? }))
            .collect();
        state.sort();
        let listed = partitions.states().contains(&state);
        proptest::prop_assert_eq!(listed, gpu.allows(&state));
    }
}
