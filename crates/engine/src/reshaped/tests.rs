use bytes::Bytes;
use downbeat_oip::DataType;

use super::*;

/// Gives back its input as its output, and checks the shape that it sees.
struct Echo {
    expected: Vec<u64>,
}

impl Model for Echo {
    fn run(&mut self, inputs: &[Tensor], _rows: u32) -> Result<Vec<Tensor>, EngineError> {
        assert_eq!(inputs[0].shape, self.expected);
        Ok(vec![Tensor { name: "y".to_owned(), ..inputs[0].clone() }])
    }
}

fn reshaped() -> Reshaped<Echo> {
    let reshape = |name: &str, from: &[i64], to: &[i64]| Reshape {
        name: name.to_owned(),
        from: from.to_vec(),
        to: to.to_vec(),
    };
    let inputs = vec![reshape("x", &[-1, 4], &[-1, 2, 2])];
    let outputs = vec![reshape("y", &[-1, 2, 2], &[-1, 1, 4])];
    Reshaped::new(Echo { expected: vec![3, 2, 2] }, inputs, outputs)
}

fn tensor(name: &str, shape: &[u64], bytes: usize) -> Tensor {
    let data = Bytes::from((0..bytes as u8).collect::<Vec<u8>>());
    Tensor { name: name.to_owned(), datatype: DataType::Uint8, shape: shape.to_vec(), data }
}

#[test]
fn the_model_sees_its_shape_and_the_client_its_own() {
    let outputs = reshaped().run(&[tensor("x", &[3, 4], 12)], 3).unwrap();
    assert_eq!(outputs, [tensor("y", &[3, 1, 4], 12)]);
}

#[test]
fn a_tensor_of_another_shape_is_an_error() {
    let error = reshaped().run(&[tensor("x", &[3, 5], 15)], 3).unwrap_err();
    assert!(error.0.starts_with("the tensor \"x\" has the shape [3, 5]"), "{error}");
}
