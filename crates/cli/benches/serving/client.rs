//! A client of either protocol.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use downbeat_oip::proto::grpc_inference_service_client::GrpcInferenceServiceClient;
use downbeat_oip::proto::infer_parameter::ParameterChoice;
use downbeat_oip::proto::model_infer_request::InferInputTensor;
use downbeat_oip::proto::{InferParameter, ModelInferRequest, ServerLiveRequest};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

use crate::server::Server;

/// A row of the models' input: four numbers.
const ROW: &[u8] = &[0; 16];

#[derive(Clone, Copy, Debug)]
pub(crate) enum Protocol {
    /// HTTP/1.1 with keep-alive and binary tensors.
    Http,
    Grpc,
}

impl Protocol {
    pub(crate) const ALL: [Protocol; 2] = [Protocol::Http, Protocol::Grpc];
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Http => "HTTP",
            Protocol::Grpc => "gRPC",
        })
    }
}

/// How a request says when it is due.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    /// The model's SLO.
    Slo,
    /// The parameter `timeout`.
    Parameter(Duration),
    /// The deadline of the call, which HTTP does not have.
    Call(Duration),
}

/// How a request was answered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// With a result, for which a device was busy for so long.
    Result { busy: Duration },
    /// It could not meet its deadline.
    Expired,
    /// In another way.
    Other(String),
}

/// A connection to a server.
pub(crate) enum Connection {
    Http(SendRequest<Full<Bytes>>),
    Grpc(GrpcInferenceServiceClient<Channel>),
}

impl Connection {
    pub(crate) async fn open(server: &Server, protocol: Protocol) -> Connection {
        match protocol {
            Protocol::Http => {
                let stream = TcpStream::connect(server.http).await.expect("a connection");
                stream.set_nodelay(true).expect("a socket");
                let (sender, connection) = handshake(TokioIo::new(stream)).await.expect("a connection");
                tokio::spawn(connection);
                Connection::Http(sender)
            }
            Protocol::Grpc => {
                let endpoint = Endpoint::from_shared(format!("http://{}", server.grpc)).expect("an address");
                let channel = endpoint.tcp_nodelay(true).connect().await.expect("a connection");
                Connection::Grpc(GrpcInferenceServiceClient::new(channel))
            }
        }
    }

    /// Asks for nothing: what remains is the way there and back.
    pub(crate) async fn live(&mut self) {
        match self {
            Connection::Http(sender) => {
                let request = Request::get("/v2/health/live").header("host", "bench").body(Full::default());
                sender.ready().await.expect("a connection");
                let response = sender.send_request(request.expect("a request")).await.expect("an answer");
                response.into_body().collect().await.expect("an answer");
            }
            Connection::Grpc(client) => {
                client.server_live(ServerLiveRequest {}).await.expect("an answer");
            }
        }
    }

    /// Sends one row to a model.
    pub(crate) async fn infer(&mut self, model: &str, limit: Limit) -> Answer {
        match self {
            Connection::Http(sender) => infer_http(sender, model, limit).await,
            Connection::Grpc(client) => infer_grpc(client, model, limit).await,
        }
    }
}

async fn infer_http(sender: &mut SendRequest<Full<Bytes>>, model: &str, limit: Limit) -> Answer {
    let timeout = match limit {
        Limit::Slo => String::new(),
        Limit::Parameter(limit) | Limit::Call(limit) => format!(r#""timeout":{},"#, limit.as_micros()),
    };
    let json = format!(
        r#"{{"parameters":{{{timeout}"binary_data_output":true}},"inputs":[{{"name":"x","datatype":"FP32","shape":[1,4],"parameters":{{"binary_data_size":{}}}}}]}}"#,
        ROW.len()
    );
    let request = Request::post(format!("/v2/models/{model}/infer"))
        .header("host", "bench")
        .header("inference-header-content-length", json.len())
        .body(Full::from([json.as_bytes(), ROW].concat()))
        .expect("a request");
    sender.ready().await.expect("a connection");
    let response = sender.send_request(request).await.expect("an answer");
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.expect("an answer").to_bytes();
    match status {
        200 => Answer::Result { busy: Duration::from_micros(number_after(&body, b"downbeat_compute_us\":")) },
        504 => Answer::Expired,
        _ => Answer::Other(String::from_utf8_lossy(&body).into_owned()),
    }
}

/// The number behind a key; parsing all of the JSON would be work that a client of binary tensors need not do.
fn number_after(body: &[u8], key: &[u8]) -> u64 {
    let at = body.windows(key.len()).position(|window| window == key).expect("the key") + key.len();
    body[at..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0, |n, byte| n * 10 + u64::from(byte - b'0'))
}

async fn infer_grpc(client: &mut GrpcInferenceServiceClient<Channel>, model: &str, limit: Limit) -> Answer {
    let mut message = ModelInferRequest {
        model_name: model.to_owned(),
        inputs: vec![InferInputTensor {
            name: "x".to_owned(),
            datatype: "FP32".to_owned(),
            shape: vec![1, 4],
            ..InferInputTensor::default()
        }],
        raw_input_contents: vec![Bytes::from_static(ROW)],
        ..ModelInferRequest::default()
    };
    if let Limit::Parameter(limit) = limit {
        let value = ParameterChoice::Int64Param(limit.as_micros() as i64);
        message.parameters.insert("timeout".to_owned(), InferParameter { parameter_choice: Some(value) });
    }
    let mut request = tonic::Request::new(message);
    if let Limit::Call(limit) = limit {
        request.set_timeout(limit);
    }
    match client.model_infer(request).await {
        Ok(response) => {
            let busy = response.into_inner().parameters.remove("downbeat_compute_us");
            match busy.and_then(|busy| busy.parameter_choice) {
                Some(ParameterChoice::Uint64Param(us)) => Answer::Result { busy: Duration::from_micros(us) },
                other => Answer::Other(format!("downbeat_compute_us is {other:?}")),
            }
        }
        Err(status) if status.code() == Code::DeadlineExceeded => Answer::Expired,
        Err(status) => Answer::Other(status.to_string()),
    }
}
