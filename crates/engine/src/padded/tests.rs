use downbeat_oip::DataType;

use super::*;

/// Gives back its input, and takes batches of one size only: that of the first.
#[derive(Default)]
struct OneSize {
    size: Option<u64>,
}

impl Model for OneSize {
    fn run(&mut self, inputs: &[Tensor], rows: u32) -> Result<Vec<Tensor>, EngineError> {
        let size = *self.size.get_or_insert(inputs[0].shape[0]);
        assert_eq!((size, size), (inputs[0].shape[0], rows.into()));
        Ok(inputs.iter().map(|input| Tensor { name: "y".to_owned(), ..input.clone() }).collect())
    }
}

fn tensor(name: &str, datatype: DataType, shape: &[u64], data: Vec<u8>) -> Tensor {
    Tensor { name: name.to_owned(), datatype, shape: shape.to_vec(), data: data.into() }
}

#[test]
fn every_copy_sees_one_size_and_clients_see_their_own_rows() {
    let mut model = Padded::load(&[1, 2, 4, 6], || Ok(OneSize::default())).unwrap();
    for rows in [3u32, 1, 6, 2, 5, 4, 3, 1] {
        let data: Vec<u8> = (0..2 * rows as u8).collect();
        let shape = [u64::from(rows), 2];
        let outputs = model.run(&[tensor("x", DataType::Uint8, &shape, data.clone())], rows).unwrap();
        assert_eq!(outputs, [tensor("y", DataType::Uint8, &shape, data)]);
    }
    let seven = tensor("x", DataType::Uint8, &[7, 1], vec![0; 7]);
    assert!(model.run(&[seven], 7).is_err());
}

#[test]
fn strings_of_different_lengths_are_filled_up_too() {
    let mut model = Padded::load(&[4], || Ok(OneSize::default())).unwrap();
    let data = [3, 0, 0, 0, b'a', b'b', b'c', 0, 0, 0, 0, 1, 0, 0, 0, b'z'].to_vec();
    let strings = tensor("x", DataType::Bytes, &[3, 1], data.clone());
    assert_eq!(model.run(&[strings], 3).unwrap(), [tensor("y", DataType::Bytes, &[3, 1], data)]);
}

#[test]
fn an_output_without_a_row_for_each_row_is_an_error() {
    struct Sum;
    impl Model for Sum {
        fn run(&mut self, _: &[Tensor], _: u32) -> Result<Vec<Tensor>, EngineError> {
            Ok(vec![tensor("sum", DataType::Uint8, &[1], vec![1])])
        }
    }
    let mut model = Padded::load(&[4], || Ok(Sum)).unwrap();
    assert!(model.run(&[tensor("x", DataType::Uint8, &[3], vec![1, 2, 3])], 3).is_err());
}

#[test]
fn sizes_in_between_take_as_long_as_the_next_one() {
    let size = |batch, median_ms| Measured { batch, median_ms, spread: 0.0, repeats: 1 };
    let steps = in_steps(vec![size(1, 1.0), size(2, 1.5), size(4, 2.0), size(6, 9.0)]);
    let points: Vec<_> = steps.iter().map(|size| (size.batch, size.median_ms)).collect();
    assert_eq!(points, [(1, 1.0), (2, 1.5), (3, 2.0), (4, 2.0), (5, 9.0), (6, 9.0)]);
}
