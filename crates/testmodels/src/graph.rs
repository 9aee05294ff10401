//! Builds ONNX models, one line per input, node and output.

use downbeat_oip::DataType;
use prost::Message;

use crate::onnx::{
    AttributeProto, Dimension, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto,
    TensorShapeProto, TypeProto, TypeSequence, TypeTensor, ValueInfoProto,
};

/// Old enough for any runtime that Downbeat takes, new enough for every operator and type in use here.
const IR_VERSION: i64 = 8;
const OPSET: i64 = 17;

/// An ONNX model under construction.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    graph: GraphProto,
    ir_version: Option<i64>,
}

impl Graph {
    /// A model without inputs, nodes and outputs.
    pub fn new() -> Graph {
        let graph = GraphProto { name: "test".to_owned(), ..GraphProto::default() };
        Graph { graph, ir_version: None }
    }

    /// Adds an input; -1 stands for any size.
    #[must_use]
    pub fn input(mut self, name: &str, datatype: DataType, shape: &[i64]) -> Graph {
        self.graph.input.push(tensor_info(name, datatype, shape));
        self
    }

    /// Adds an output; -1 stands for any size.
    #[must_use]
    pub fn output(mut self, name: &str, datatype: DataType, shape: &[i64]) -> Graph {
        self.graph.output.push(tensor_info(name, datatype, shape));
        self
    }

    /// Adds an output that is a sequence of tensors.
    #[must_use]
    pub fn sequence_output(mut self, name: &str, datatype: DataType) -> Graph {
        let element = TypeProto { tensor_type: Some(tensor_type(datatype, &[])), sequence_type: None };
        let sequence = TypeSequence { elem_type: Some(Box::new(element)) };
        self.graph.output.push(ValueInfoProto {
            name: name.to_owned(),
            r#type: Some(TypeProto { tensor_type: None, sequence_type: Some(Box::new(sequence)) }),
        });
        self
    }

    /// Adds a node: the operator, its inputs, its outputs.
    #[must_use]
    pub fn node(mut self, operator: &str, inputs: &[&str], outputs: &[&str]) -> Graph {
        self.graph.node.push(NodeProto {
            input: inputs.iter().map(ToString::to_string).collect(),
            output: outputs.iter().map(ToString::to_string).collect(),
            op_type: operator.to_owned(),
            attribute: Vec::new(),
        });
        self
    }

    /// Gives the node added last an attribute.
    #[must_use]
    pub fn attribute(mut self, name: &str, value: i64) -> Graph {
        if let Some(node) = self.graph.node.last_mut() {
            node.attribute.push(AttributeProto {
                name: name.to_owned(),
                i: Some(value),
                r#type: AttributeProto::INT,
            });
        }
        self
    }

    /// Adds a constant; `data` is little-endian.
    #[must_use]
    pub fn weights(mut self, name: &str, datatype: DataType, shape: &[i64], data: Vec<u8>) -> Graph {
        self.graph.initializer.push(TensorProto {
            dims: shape.to_vec(),
            data_type: element_type(datatype),
            name: name.to_owned(),
            raw_data: data,
        });
        self
    }

    /// Writes this version of the file format. Before version 4, initializers are listed among the inputs.
    #[must_use]
    pub fn ir_version(mut self, version: i64) -> Graph {
        self.ir_version = Some(version);
        self
    }

    /// The model file.
    pub fn encode(self) -> Vec<u8> {
        ModelProto {
            ir_version: self.ir_version.unwrap_or(IR_VERSION),
            graph: Some(self.graph),
            opset_import: vec![OperatorSetIdProto { version: OPSET }],
        }
        .encode_to_vec()
    }
}

fn tensor_info(name: &str, datatype: DataType, shape: &[i64]) -> ValueInfoProto {
    let tensor = tensor_type(datatype, shape);
    ValueInfoProto {
        name: name.to_owned(),
        r#type: Some(TypeProto { tensor_type: Some(tensor), sequence_type: None }),
    }
}

/// Dynamic axes get a name of their own each, except the first, which all tensors share: the batch.
fn tensor_type(datatype: DataType, shape: &[i64]) -> TypeTensor {
    let dim = shape
        .iter()
        .enumerate()
        .map(|(axis, &size)| match (axis, size) {
            (0, -1) => Dimension { dim_value: None, dim_param: Some("batch".to_owned()) },
            (_, -1) => Dimension { dim_value: None, dim_param: Some(format!("axis{axis}")) },
            _ => Dimension { dim_value: Some(size), dim_param: None },
        })
        .collect();
    TypeTensor { elem_type: element_type(datatype), shape: Some(TensorShapeProto { dim }) }
}

/// ONNX's number of an element type.
fn element_type(datatype: DataType) -> i32 {
    match datatype {
        DataType::Fp32 => 1,
        DataType::Uint8 => 2,
        DataType::Int8 => 3,
        DataType::Uint16 => 4,
        DataType::Int16 => 5,
        DataType::Int32 => 6,
        DataType::Int64 => 7,
        DataType::Bytes => 8,
        DataType::Bool => 9,
        DataType::Fp16 => 10,
        DataType::Fp64 => 11,
        DataType::Uint32 => 12,
        DataType::Uint64 => 13,
        DataType::Bf16 => 16,
    }
}
