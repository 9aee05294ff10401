//! Requests and answers as bytes: what differs between the protocols, apart from connections.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use downbeat_oip::proto::{InferParameter, ModelInferResponse, infer_parameter::ParameterChoice};
use downbeat_oip::{InferRequest, Reason, grpc, rest};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, TE};
use hyper::{Method, Request, Response, Uri};
use prost::Message;
use serde::Deserialize;
use tonic::Status;

use crate::outcome::{reason_of_grpc, reason_of_http};
use crate::target::{Protocol, Target};

/// Where the JSON of a body ends.
pub(crate) const HEADER_LENGTH: HeaderName = HeaderName::from_static("inference-header-content-length");

/// The longest part of an error message that is kept.
const MESSAGE_LENGTH: usize = 300;

/// A request in its protocol's form, to be sent as often as wanted. Copies share the bytes.
#[derive(Clone, Debug)]
pub(crate) struct Letter {
    method: Method,
    uri: Uri,
    headers: Arc<HeaderMap>,
    body: Bytes,
}

/// How the server answered.
#[derive(Debug)]
pub(crate) enum Answer {
    /// With a result, and what it says of the time it took.
    Result(Option<Timing>),
    /// Without one, with the sentence that says why.
    Refused(Reason, String),
}

/// Where the time went, as Downbeat's answers say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    pub(crate) queue: Duration,
    pub(crate) compute: Duration,
}

impl Letter {
    pub(crate) fn get(target: &Target, path: &str) -> Result<Letter, String> {
        Letter::new(target, Method::GET, path, HeaderMap::new(), Bytes::new())
    }

    /// A gRPC call of one message.
    pub(crate) fn call(target: &Target, method: &str, message: &impl Message) -> Result<Letter, String> {
        let mut body = BytesMut::with_capacity(5 + message.encoded_len());
        // Not compressed; the length.
        body.put_u8(0);
        body.put_u32(
            u32::try_from(message.encoded_len()).map_err(|_| "a message of 4 GiB and more".to_owned())?,
        );
        message.encode(&mut body).map_err(|error| error.to_string())?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(TE, HeaderValue::from_static("trailers"));
        let path = format!("/inference.GRPCInferenceService/{method}");
        Letter::new(target, Method::POST, &path, headers, body.freeze())
    }

    /// An inference request. `binary` is about tensors over HTTP; over gRPC they always are.
    pub(crate) fn infer(target: &Target, request: InferRequest, binary: bool) -> Result<Letter, String> {
        match target.protocol {
            Protocol::Grpc => Letter::call(target, "ModelInfer", &grpc::encode_request(request)),
            Protocol::Http => {
                let encoded = rest::encode_request(&request, binary).map_err(|failure| failure.message)?;
                let mut headers = HeaderMap::new();
                let kind = if binary { "application/octet-stream" } else { "application/json" };
                headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
                if let Some(length) = encoded.header_length {
                    headers.insert(HEADER_LENGTH, HeaderValue::from(length));
                }
                let mut body = BytesMut::from(&encoded.json[..]);
                encoded.binary.iter().for_each(|tensor| body.extend_from_slice(tensor));
                let path = format!("{}/infer", model_path(&request.model, &request.version));
                Letter::new(target, Method::POST, &path, headers, body.freeze())
            }
        }
    }

    fn new(
        target: &Target,
        method: Method,
        path: &str,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Letter, String> {
        let Target { protocol, authority, prefix } = target;
        let uri = match protocol {
            Protocol::Http => {
                let host = HeaderValue::from_str(authority).map_err(|error| error.to_string())?;
                headers.insert(HOST, host);
                format!("{prefix}{path}")
            }
            Protocol::Grpc => format!("http://{authority}{path}"),
        };
        let uri = uri.parse().map_err(|error| format!("{uri}: {error}"))?;
        Ok(Letter { method, uri, headers: Arc::new(headers), body })
    }

    pub(crate) fn request(&self) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = HeaderMap::clone(&self.headers);
        request
    }
}

/// The path of a model; what a path cannot hold is escaped.
pub(crate) fn model_path(model: &str, version: &str) -> String {
    let mut path = format!("/v2/models/{}", escaped(model));
    if !version.is_empty() {
        path += &format!("/versions/{}", escaped(version));
    }
    path
}

fn escaped(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    name.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// A response, read to its end.
#[derive(Debug)]
pub(crate) struct Reply {
    status: u16,
    headers: HeaderMap,
    pub(crate) body: Bytes,
    trailers: Option<HeaderMap>,
}

impl Reply {
    pub(crate) async fn read(response: Response<Incoming>) -> Result<Reply, hyper::Error> {
        let (parts, body) = response.into_parts();
        let collected = body.collect().await?;
        let trailers = collected.trailers().cloned();
        Ok(Reply {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: collected.to_bytes(),
            trailers,
        })
    }

    /// What it says, if it answers an inference request.
    pub(crate) fn answer(&self, protocol: Protocol) -> Answer {
        match self.refusal(protocol) {
            Some((reason, message)) => Answer::Refused(reason, shortened(&message)),
            None => Answer::Result(match protocol {
                Protocol::Http => self.http_timing(),
                Protocol::Grpc => {
                    self.message::<ModelInferResponse>().ok().and_then(|message| grpc_timing(&message))
                }
            }),
        }
    }

    /// Why it is no result.
    pub(crate) fn refusal(&self, protocol: Protocol) -> Option<(Reason, String)> {
        match protocol {
            Protocol::Http => reason_of_http(self.status).map(|reason| (reason, self.http_error())),
            Protocol::Grpc if self.status != 200 => {
                Some((reason_of_http(self.status)?, format!("HTTP status {}", self.status)))
            }
            Protocol::Grpc => {
                let status = self.trailers.as_ref().and_then(Status::from_header_map);
                match status.or_else(|| Status::from_header_map(&self.headers)) {
                    Some(status) => reason_of_grpc(status.code() as i32)
                        .map(|reason| (reason, status.message().to_owned())),
                    None => Some((Reason::Failed, "the answer has no gRPC status".to_owned())),
                }
            }
        }
    }

    /// The message of a gRPC answer.
    pub(crate) fn message<M: Message + Default>(&self) -> Result<M, String> {
        let body = self.body.get(5..).map(|_| self.body.slice(5..)).ok_or("the answer has no message")?;
        M::decode(body).map_err(|error| error.to_string())
    }

    fn http_error(&self) -> String {
        #[derive(Deserialize)]
        struct Error {
            error: String,
        }
        let read = serde_json::from_slice::<Error>(&self.body).map(|error| error.error);
        read.unwrap_or_else(|_| format!("HTTP {}: {}", self.status, String::from_utf8_lossy(&self.body)))
    }

    fn http_timing(&self) -> Option<Timing> {
        #[derive(Deserialize)]
        struct Parameters {
            downbeat_queue_us: u64,
            downbeat_compute_us: u64,
        }
        #[derive(Deserialize)]
        struct Json {
            parameters: Parameters,
        }
        let length = self.headers.get(HEADER_LENGTH)?.to_str().ok()?.parse().ok()?;
        let Json { parameters } = serde_json::from_slice(self.body.get(..length)?).ok()?;
        Some(Timing {
            queue: Duration::from_micros(parameters.downbeat_queue_us),
            compute: Duration::from_micros(parameters.downbeat_compute_us),
        })
    }
}

fn grpc_timing(message: &ModelInferResponse) -> Option<Timing> {
    let micros = |name: &str| match message.parameters.get(name) {
        Some(InferParameter { parameter_choice: Some(ParameterChoice::Uint64Param(us)) }) => {
            Some(Duration::from_micros(*us))
        }
        _ => None,
    };
    Some(Timing { queue: micros("downbeat_queue_us")?, compute: micros("downbeat_compute_us")? })
}

fn shortened(message: &str) -> String {
    message.chars().take(MESSAGE_LENGTH).collect()
}
