use super::*;

#[test]
fn the_levels_of_a_model_count_from_its_default() {
    let three = |default| Some(Priorities { levels: 3, default });
    // Whatever a model calls its default, nobody is ahead of anybody who did not ask for it.
    for priorities in [None, three(1), three(2), three(3)] {
        assert_eq!(priority(priorities, 0), DEFAULT_PRIORITY);
    }
    assert_eq!([1, 2, 3].map(|level| priority(three(2), level)), [127, 128, 129].map(Priority));
    assert_eq!([1, 2, 3].map(|level| priority(None, level)), [128, 129, 130].map(Priority));
    assert_eq!(priority(three(1), 77), Priority(130), "the last one");
    let many = Some(Priorities { levels: 1_000, default: 500 });
    assert_eq!([1, 1_000].map(|level| priority(many, level)), [1, 255].map(Priority));
}
