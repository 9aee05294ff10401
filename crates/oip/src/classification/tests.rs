use super::*;

fn scores(shape: &[u64], values: &[f32]) -> Tensor {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Tensor::new("scores", DataType::Fp32, shape.to_vec(), data.into()).unwrap()
}

fn strings(tensor: &Tensor) -> Vec<&str> {
    tensor.elements().map(|element| std::str::from_utf8(element.unwrap()).unwrap()).collect()
}

#[test]
fn each_row_gives_its_highest_classes_with_labels_where_there_are_some() {
    let labels = ["cat".to_owned(), "dog".to_owned()];
    let scores = scores(&[2, 3], &[0.25, 0.5, 0.125, 3.0, -1.0, 7.5]);
    let classes = classify(&scores, 2, &labels, true).unwrap();
    assert_eq!((classes.datatype, &classes.shape[..]), (DataType::Bytes, &[2, 2][..]));
    assert_eq!(strings(&classes), ["0.500000:1:dog", "0.250000:0:cat", "7.500000:2", "3.000000:0:cat"]);
}

#[test]
fn without_a_batch_dimension_the_whole_tensor_is_one_row() {
    let classes = classify(&scores(&[2, 2], &[1.0, 4.0, 3.0, 2.0]), 9, &[], false).unwrap();
    assert_eq!(classes.shape, [4], "no more classes than there are");
    assert_eq!(strings(&classes), ["4.000000:1", "3.000000:2", "2.000000:3", "1.000000:0"]);
}

#[test]
fn equal_scores_keep_their_order_and_what_is_no_number_comes_last() {
    let classes = classify(&scores(&[4], &[f32::NAN, 1.0, 1.0, f32::NEG_INFINITY]), 4, &[], false).unwrap();
    assert_eq!(strings(&classes), ["1.000000:1", "1.000000:2", "-inf:3", "NaN:0"]);
}

#[test]
fn integers_are_written_whole() {
    let counts = Tensor::new("n", DataType::Int16, vec![1, 2], vec![5, 0, 255, 255].into()).unwrap();
    assert_eq!(strings(&classify(&counts, 2, &[], true).unwrap()), ["5:0", "-1:1"]);
}

#[test]
fn rows_without_classes_give_none() {
    let classes = classify(&scores(&[2, 0], &[]), 3, &[], true).unwrap();
    assert_eq!(classes.shape, [2, 0]);
    let none = classify(&scores(&[0, 3], &[]), 3, &[], true).unwrap();
    assert_eq!(none.shape, [0, 0]);
}

#[test]
fn strings_cannot_be_classified() {
    let words = Tensor::from_elements("words", vec![1], ["a"]).unwrap();
    assert_eq!(classify(&words, 1, &[], false).unwrap_err().reason, Reason::Invalid);
}
