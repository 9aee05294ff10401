use super::*;

fn reshape(from: &[i64], to: &[i64]) -> Reshape {
    Reshape { name: "x".to_owned(), from: from.to_vec(), to: to.to_vec() }
}

#[test]
fn open_sizes_are_carried_over_in_order() {
    let reshape = reshape(&[-1, 4, -1], &[-1, 2, 2, -1]);
    assert!(reshape.is_sound());
    assert_eq!(reshape.apply(&[3, 4, 7]), Some(vec![3, 2, 2, 7]));
}

#[test]
fn a_dimension_of_1_may_come_and_go() {
    assert_eq!(reshape(&[-1, 1], &[-1]).apply(&[5, 1]), Some(vec![5]));
    assert_eq!(reshape(&[1000], &[1, 1000, 1, 1]).apply(&[1000]), Some(vec![1, 1000, 1, 1]));
}

#[test]
fn a_tensor_of_another_shape_is_refused() {
    let reshape = reshape(&[-1, 4], &[-1, 2, 2]);
    for shape in [&[3u64][..], &[3, 5], &[3, 4, 1]] {
        assert_eq!(reshape.apply(shape), None);
    }
}

#[test]
fn shapes_with_other_numbers_of_elements_are_unsound() {
    assert!(!reshape(&[4], &[2, 3]).is_sound());
    assert!(!reshape(&[-1, 4], &[4]).is_sound());
    assert!(!reshape(&[i64::MAX, 3], &[3]).is_sound());
}
