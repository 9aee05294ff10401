//! Requests.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::data::Target;
use super::skim::skim;
use crate::tensor::{element_count, shape_from_wire};
use crate::{DataType, Failure, InferRequest, Parameter, Reason, RequestedOutput, Room, Tensor};

/// Which outputs of a response go in binary form, and which in JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputForms {
    /// Whether outputs are binary of which nothing is said.
    pub(super) default_binary: bool,
    /// Outputs of which something is said.
    pub(super) binary: BTreeMap<String, bool>,
}

impl OutputForms {
    /// Whether this output goes in binary form.
    pub fn is_binary(&self, output: &str) -> bool {
        self.binary.get(output).copied().unwrap_or(self.default_binary)
    }
}

type Parameters = BTreeMap<String, Parameter>;

#[derive(Deserialize)]
struct JsonRequest<'a> {
    #[serde(default)]
    id: String,
    #[serde(default)]
    parameters: Parameters,
    #[serde(borrow)]
    inputs: Vec<JsonInput<'a>>,
    #[serde(default)]
    outputs: Vec<JsonOutput>,
}

#[derive(Deserialize)]
struct JsonInput<'a> {
    name: String,
    shape: Vec<i64>,
    #[serde(borrow)]
    datatype: Cow<'a, str>,
    #[serde(default)]
    parameters: Parameters,
    /// Left as it is until the type is known, which may come later.
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct JsonOutput {
    name: String,
    #[serde(default)]
    parameters: Parameters,
}

/// Reads the body of a request to a model. `header_length` is the value of `Inference-Header-Content-Length`: without
/// it, all of the body is JSON. (A length of 0 means that none of it is: [`decode_raw`](super::decode_raw).)
pub fn decode(
    model: &str,
    version: &str,
    header_length: Option<usize>,
    body: &Bytes,
) -> Result<(InferRequest, OutputForms), Failure> {
    decode_within(model, version, header_length, body, &mut |_| Ok(()))
}

/// [`decode`], which asks for [`Room`] before it takes any: for what the JSON says, and for the tensors in it. Those
/// behind it stay where they are, in `body`.
pub fn decode_within(
    model: &str,
    version: &str,
    header_length: Option<usize>,
    body: &Bytes,
    room: &mut Room<'_>,
) -> Result<(InferRequest, OutputForms), Failure> {
    let header_length = header_length.unwrap_or(body.len());
    if header_length > body.len() {
        return Err(invalid(format!(
            "Inference-Header-Content-Length is {header_length}, but the body has only {} bytes",
            body.len()
        )));
    }
    let text = std::str::from_utf8(&body[..header_length]).map_err(|error| {
        invalid(format!("the request's JSON is not UTF-8 from byte {}", error.valid_up_to()))
    })?;
    // The library would also take an array of what an object holds.
    if text.trim_start().starts_with('[') {
        return Err(invalid("the request is an array; it must be a JSON object with \"inputs\"".to_owned()));
    }
    room(skim(text))?;
    let json: JsonRequest<'_> = serde_json::from_str(text).map_err(|error| explain(text, &error))?;

    let mut binary = body.slice(header_length..);
    let inputs =
        json.inputs.into_iter().map(|input| input.read(&mut binary, room)).collect::<Result<Vec<_>, _>>()?;
    if !binary.is_empty() {
        return Err(invalid(format!("{} bytes follow the last tensor of the request", binary.len())));
    }

    let mut parameters = json.parameters;
    let mut forms = OutputForms {
        default_binary: take_bool(&mut parameters, "binary_data_output", "the request")?.unwrap_or(false),
        ..OutputForms::default()
    };
    let outputs = json.outputs.into_iter().map(|output| output.read(&mut forms)).collect::<Result<_, _>>()?;

    let request = InferRequest {
        model: model.to_owned(),
        version: version.to_owned(),
        id: json.id,
        parameters,
        inputs,
        outputs,
    };
    request.check()?;
    Ok((request, forms))
}

impl JsonInput<'_> {
    /// The tensor; takes its content off `binary` if it is there.
    fn read(self, binary: &mut Bytes, room: &mut Room<'_>) -> Result<Tensor, Failure> {
        let name = self.name;
        refuse_shared_memory("input", &name, &self.parameters)?;
        let datatype = DataType::from_name(&self.datatype)
            .ok_or_else(|| invalid(format!("input '{name}' has the unknown type '{}'", self.datatype)))?;
        let shape = shape_from_wire(&name, &self.shape)?;
        let count = element_count(&name, &shape)?;
        let data = match (self.data, self.parameters.get("binary_data_size")) {
            (Some(data), None) => {
                let target = Target { name: &name, datatype, shape: &shape, count };
                room(target.bytes_max(data.get()))?;
                target.read(data.get())?
            }
            (None, Some(size)) => {
                let size = size.as_count().ok_or_else(|| {
                    invalid(format!(
                        "'binary_data_size' of input '{name}' must be an integer, and not negative"
                    ))
                })?;
                match usize::try_from(size) {
                    Ok(size) if size <= binary.len() => binary.split_to(size),
                    _ => {
                        return Err(invalid(format!(
                            "input '{name}' says that it has {size} bytes of binary data, but only {} follow",
                            binary.len()
                        )));
                    }
                }
            }
            (Some(_), Some(_)) => {
                return Err(invalid(format!(
                    "input '{name}' has both 'data' and 'binary_data_size': only one can be its content"
                )));
            }
            (None, None) => {
                return Err(invalid(format!(
                    "input '{name}' has no content: give 'data', or 'binary_data_size' in its parameters"
                )));
            }
        };
        Ok(Tensor::new(name, datatype, shape, data)?)
    }
}

impl JsonOutput {
    fn read(mut self, forms: &mut OutputForms) -> Result<RequestedOutput, Failure> {
        let name = self.name;
        refuse_shared_memory("output", &name, &self.parameters)?;
        if let Some(binary) = take_bool(&mut self.parameters, "binary_data", &format!("output '{name}'"))? {
            forms.binary.insert(name.clone(), binary);
        }
        let classes = requested_classes(&name, &self.parameters)?;
        Ok(RequestedOutput { name, classes })
    }
}

/// The `classification` parameter of an output; 0 where there is none.
pub(crate) fn requested_classes(output: &str, parameters: &Parameters) -> Result<u32, Failure> {
    let Some(classes) = parameters.get("classification") else { return Ok(0) };
    classes.as_count().and_then(|classes| u32::try_from(classes).ok()).ok_or_else(|| {
        invalid(format!("'classification' of output '{output}' must be a number of classes, from 0"))
    })
}

/// An input or output in shared memory would have no content here: better say so than miss it.
pub(crate) fn refuse_shared_memory(what: &str, name: &str, parameters: &Parameters) -> Result<(), Failure> {
    if parameters.contains_key("shared_memory_region") {
        return Err(Failure::new(
            Reason::Unimplemented,
            format!(
                "{what} '{name}' is in shared memory, which Downbeat does not support: send it in the request"
            ),
        ));
    }
    Ok(())
}

fn take_bool(parameters: &mut Parameters, name: &str, whose: &str) -> Result<Option<bool>, Failure> {
    match parameters.remove(name) {
        None => Ok(None),
        Some(Parameter::Bool(value)) => Ok(Some(value)),
        Some(_) => Err(invalid(format!("'{name}' of {whose} must be true or false"))),
    }
}

/// What is wrong with the JSON. NaN and infinity, which many writers emit though JSON has none, get advice.
fn explain(text: &str, error: &serde_json::Error) -> Failure {
    let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
    // The parser stops at a name's first letter, or one behind it.
    let near = |back: usize| line.get(error.column().saturating_sub(back)..).unwrap_or_default();
    let unspeakable =
        ["NaN", "Infinity"].iter().any(|name| [1, 2].iter().any(|&back| near(back).starts_with(name)));
    let advice =
        if unspeakable { ": JSON has no NaN and no infinity; send the tensor as binary" } else { "" };
    invalid(format!("the request's JSON is wrong: {error}{advice}"))
}

fn invalid(message: String) -> Failure {
    Failure::new(Reason::Invalid, message)
}
