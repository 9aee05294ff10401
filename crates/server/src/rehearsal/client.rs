//! Clients: what they ask, over which protocol, and whether the answer is theirs.

use axum::body::{Body, Bytes};
use axum::http::Request;
use axum::response::Response;
use downbeat_oip::proto::{InferParameter, model_infer_request::InferInputTensor};
use downbeat_oip::proto::{ModelInferRequest, ModelInferResponse, infer_parameter::ParameterChoice};
use http_body_util::BodyExt;
use prost::Message;
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

/// What a client asks.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) model: &'static str,
    rows: u64,
    columns: u64,
    /// What its tensor is filled with, so that it knows its own answer.
    fill: u8,
    /// Within how many microseconds it wants the answer.
    pub(super) timeout_us: Option<u64>,
    priority: u64,
    grpc: bool,
    binary: bool,
    /// Whether it makes no sense.
    broken: bool,
}

/// What a client was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Its own answer.
    Answer,
    /// A status: of HTTP, or of gRPC less than 100.
    Refusal(u16, String),
}

impl Question {
    pub(super) fn draw(random: &mut Xoshiro256PlusPlus) -> Question {
        let model = ["fixed", "free", "single"][random.random_range(0..3)];
        Question {
            model,
            rows: if model == "single" { 1 } else { random.random_range(1..=5) },
            columns: if model == "fixed" { 4 } else { random.random_range(1..=3) },
            fill: random.random_range(0..=200),
            timeout_us: random.random_bool(0.3).then(|| random.random_range(1_000..300_000)),
            priority: random.random_range(0..=3),
            grpc: random.random_bool(0.5),
            binary: random.random_bool(0.5),
            broken: random.random_bool(0.03),
        }
    }

    pub(super) fn is_grpc(&self) -> bool {
        self.grpc
    }

    fn shape(&self) -> Vec<u64> {
        if self.model == "single" { vec![self.columns] } else { vec![self.rows, self.columns] }
    }

    fn data(&self) -> Vec<u8> {
        vec![self.fill; (self.rows * self.columns) as usize]
    }

    pub(super) fn request(&self) -> Request<Body> {
        if self.grpc { self.grpc_request() } else { self.http_request() }
    }

    fn http_request(&self) -> Request<Body> {
        let (shape, data) = (self.shape(), self.data());
        let name = if self.broken { "nonsense" } else { "x" };
        let content = if self.binary {
            format!(r#""parameters":{{"binary_data_size":{}}}"#, data.len())
        } else {
            format!(r#""data":{data:?}"#)
        };
        let timeout = self.timeout_us.map_or(String::new(), |us| format!(r#","timeout":{us}"#));
        let json = format!(
            r#"{{"parameters":{{"binary_data_output":true,"priority":{}{timeout}}},"inputs":[{{"name":"{name}","datatype":"UINT8","shape":{shape:?},{content}}}]}}"#,
            self.priority
        );
        let mut request = Request::post(format!("/v2/models/{}/infer", self.model));
        let mut body = json.into_bytes();
        if self.binary {
            request = request.header("inference-header-content-length", body.len());
            body.extend_from_slice(&data);
        }
        request.body(body.into()).unwrap()
    }

    fn grpc_request(&self) -> Request<Body> {
        let number =
            |value: u64| InferParameter { parameter_choice: Some(ParameterChoice::Uint64Param(value)) };
        let input = InferInputTensor {
            name: if self.broken { "nonsense" } else { "x" }.to_owned(),
            datatype: "UINT8".to_owned(),
            shape: self.shape().into_iter().map(|size| size as i64).collect(),
            ..InferInputTensor::default()
        };
        let message = ModelInferRequest {
            model_name: self.model.to_owned(),
            inputs: vec![input],
            raw_input_contents: vec![self.data().into()],
            parameters: [("priority".to_owned(), number(self.priority))].into(),
            ..ModelInferRequest::default()
        };
        let mut body = vec![0];
        body.extend_from_slice(&(message.encoded_len() as u32).to_be_bytes());
        message.encode(&mut body).unwrap();
        let mut request = Request::post("/inference.GRPCInferenceService/ModelInfer")
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        if let Some(us) = self.timeout_us {
            request = request.header("grpc-timeout", format!("{us}u"));
        }
        request.body(body.into()).unwrap()
    }

    /// Reads an answer; panics if it is somebody else's.
    pub(super) async fn read(&self, response: Response) -> Told {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let collected = response.into_body().collect().await.unwrap();
        let trailers = collected.trailers().cloned().unwrap_or_default();
        let body = collected.to_bytes();
        let told = if self.grpc {
            let said =
                |name: &str| headers.get(name).or(trailers.get(name)).map(|value| value.to_str().unwrap());
            match said("grpc-status") {
                Some("0") => Told::Answer,
                Some(code) => {
                    Told::Refusal(code.parse().unwrap(), said("grpc-message").unwrap_or("").to_owned())
                }
                None => panic!("a call without a status: {headers:?} {trailers:?}"),
            }
        } else if status == 200 {
            Told::Answer
        } else {
            Told::Refusal(status, String::from_utf8(body.to_vec()).unwrap())
        };
        if told == Told::Answer {
            assert!(!self.broken, "nonsense was answered");
            self.check(&body, headers.get("inference-header-content-length").map(|it| it.to_str().unwrap()));
        }
        told
    }

    fn check(&self, body: &Bytes, header_length: Option<&str>) {
        let output = if self.grpc {
            let message = ModelInferResponse::decode(&body[5..]).unwrap();
            assert_eq!(
                message.outputs[0].shape,
                self.shape().iter().map(|&size| size as i64).collect::<Vec<_>>()
            );
            message.raw_output_contents[0].to_vec()
        } else {
            body[header_length.unwrap().parse::<usize>().unwrap()..].to_vec()
        };
        let expected: Vec<u8> = self.data().iter().map(|byte| byte + 1).collect();
        assert_eq!(output, expected, "the answer of another request");
    }
}
