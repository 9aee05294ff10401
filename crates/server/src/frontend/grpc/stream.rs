//! Streams of requests. Each is answered once, in the order in which they came; one that fails says so in its answer
//! and the stream goes on.

use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use downbeat_oip::proto::{ModelInferRequest, ModelInferResponse, ModelStreamInferResponse};
use downbeat_oip::{Failure, InferResponse, Parameter, Reason, grpc};
use futures_util::{FutureExt, Stream, StreamExt};
use tokio::time::Instant;
use tonic::{Status, Streaming};

use super::limits::is_too_big;
use crate::service::Service;

/// Requests of one stream that may be under way. Further ones wait in the connection, whose windows are bounded.
const UNDER_WAY_MAX: usize = 256;

pub(super) type Answers = Pin<Box<dyn Stream<Item = Result<ModelStreamInferResponse, Status>> + Send>>;

/// The answers to a stream of requests. `timeout` is what the client gives the whole stream.
pub(super) fn answers<S: Service>(
    service: Arc<S>,
    requests: Streaming<ModelInferRequest>,
    timeout: Option<Duration>,
) -> Answers {
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let answers = requests.map(move |message| match message {
        Ok(message) => answer(Arc::clone(&service), message, deadline).map(Ok).boxed(),
        Err(status) => {
            // What is left of the stream cannot be read: it ends here.
            if is_too_big(&status) {
                service.rejected("", Reason::TooBig);
                let message = format!("a message is larger than the server's limit: {}", status.message());
                return ready(Err(Status::resource_exhausted(message))).boxed();
            }
            ready(Err(status)).boxed()
        }
    });
    answers.buffered(UNDER_WAY_MAX).boxed()
}

async fn answer<S: Service>(
    service: Arc<S>,
    message: ModelInferRequest,
    deadline: Option<Instant>,
) -> ModelStreamInferResponse {
    let id = message.id.clone();
    match run(&*service, message, deadline).await {
        Ok(mut response) => {
            // Triton's way to say that nothing follows for this request. Downbeat answers each once, so that this is
            // always so, and the empty final response that a client may ask for is never needed.
            response.parameters.insert("triton_final_response".to_owned(), Parameter::Bool(true));
            ModelStreamInferResponse {
                infer_response: Some(grpc::encode(response)),
                ..ModelStreamInferResponse::default()
            }
        }
        Err(failure) => ModelStreamInferResponse {
            error_message: failure.message,
            // The id tells the client which of its requests this is about.
            infer_response: Some(ModelInferResponse { id, ..ModelInferResponse::default() }),
        },
    }
}

async fn run<S: Service>(
    service: &S,
    message: ModelInferRequest,
    deadline: Option<Instant>,
) -> Result<InferResponse, Failure> {
    let model = message.model_name.clone();
    let request = grpc::decode(message).inspect_err(|failure| service.rejected(&model, failure.reason))?;
    let timeout = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    service.infer(request, timeout).await
}
