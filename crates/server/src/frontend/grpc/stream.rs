//! Streams of requests. Each is answered once, in the order in which they came; one that fails says so in its answer
//! and the stream goes on. When the server stops, a stream ends once what it was asked is answered.

use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use downbeat_oip::proto::{ModelInferRequest, ModelInferResponse, ModelStreamInferResponse};
use downbeat_oip::{Failure, InferResponse, Parameter, Reason, grpc};
use futures_util::{FutureExt, Stream, StreamExt, stream};
use tokio::time::Instant;
use tonic::{Status, Streaming};

use super::closing::Closing;
use super::limits::{is_undecodable, undecodable};
use crate::admission::Permit;
use crate::frontend::places::Places;
use crate::service::Service;

/// Requests of one stream that may be under way. Further ones wait in the connection, whose windows are bounded.
const UNDER_WAY_MAX: usize = 256;

pub(super) type Answers = Pin<Box<dyn Stream<Item = Result<ModelStreamInferResponse, Status>> + Send>>;

/// The requests of a stream.
pub(super) struct Requests {
    pub(super) messages: Streaming<ModelInferRequest>,
    /// The places of the messages that have come in.
    pub(super) arrived: Places,
    /// When no more are taken.
    pub(super) closing: Closing,
}

/// The answers to a stream of requests, and their places in `outgoing`. `timeout` is what the client gives the whole
/// stream.
pub(super) fn answers<S: Service>(
    service: Arc<S>,
    requests: Requests,
    outgoing: Places,
    timeout: Option<Duration>,
) -> Answers {
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let Requests { messages, arrived, closing } = requests;
    let over = Arc::new(AtomicBool::new(false));
    let closed = closing.wait().map({
        let over = Arc::clone(&over);
        move |()| over.store(true, Ordering::Relaxed)
    });
    let answers = messages.take_until(closed).map(move |message| match message {
        Ok(message) => {
            let place = arrived.next().unwrap_or_default();
            answer(Arc::clone(&service), message, place, deadline).map(Ok).boxed()
        }
        Err(status) => {
            // What is left of the stream cannot be read: it ends here.
            if is_undecodable(&status) {
                service.rejected("", Reason::Invalid);
                return ready(Err(super::status::status(undecodable(&status)))).boxed();
            }
            ready(Err(status)).boxed()
        }
    });
    let answers = answers.buffered(UNDER_WAY_MAX).map(move |answer| {
        let (answer, place) = answer?;
        outgoing.add(place);
        Ok(answer)
    });
    // Who ends the stream is told why, if it is not the client.
    let end = async move { over.load(Ordering::Relaxed).then(|| Err(Closing::status())) };
    answers.chain(stream::once(end).filter_map(ready)).boxed()
}

async fn answer<S: Service>(
    service: Arc<S>,
    message: ModelInferRequest,
    place: Permit,
    deadline: Option<Instant>,
) -> (ModelStreamInferResponse, Permit) {
    let id = message.id.clone();
    let answer = match run(&*service, message, &place, deadline).await {
        Ok(mut response) => {
            // Triton's way to say that nothing follows for this request. Downbeat answers each once, so that this is
            // always so, and the empty final response that a client may ask for is never needed.
            response.parameters.insert("triton_final_response".to_owned(), Parameter::Bool(true));
            ModelStreamInferResponse {
                infer_response: Some(grpc::encode(response)),
                ..ModelStreamInferResponse::default()
            }
        }
        Err(failure) => {
            place.insist((failure.message.len() + id.len()) as u64);
            ModelStreamInferResponse {
                error_message: failure.message,
                // The id tells the client which of its requests this is about.
                infer_response: Some(ModelInferResponse { id, ..ModelInferResponse::default() }),
            }
        }
    };
    (answer, place)
}

async fn run<S: Service>(
    service: &S,
    message: ModelInferRequest,
    place: &Permit,
    deadline: Option<Instant>,
) -> Result<InferResponse, Failure> {
    let model = message.model_name.clone();
    let request = grpc::decode(message).inspect_err(|failure| service.rejected(&model, failure.reason))?;
    let timeout = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    service.infer(request, place, timeout).await
}
