//! Inference.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use downbeat_oip::rest::{OutputForms, decode, decode_raw, encode};
use downbeat_oip::{Failure, InferRequest, InferResponse, Reason};

use super::model::ModelPath;
use super::{App, body, reply};
use crate::frontend::offload::offload;
use crate::service::Service;

pub(super) async fn infer<S: Service>(
    State(app): State<Arc<App<S>>>,
    path: ModelPath,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let (request, forms) = match read(&app, &path, &headers, body).await {
        Ok(read) => read,
        Err(failure) => {
            // Of a model that is not there, nothing else is worth saying.
            let unknown = app.service.is_model_ready(&path.model, &path.version).err();
            let failure = unknown.unwrap_or(failure);
            app.service.rejected(&path.model, failure.reason);
            return reply::failure(&failure);
        }
    };
    let result = match app.service.infer(request, None).await {
        // An answer that cannot be written is refused, but not counted as rejected: the service has counted it.
        Ok(response) => write(response, forms).await,
        Err(failure) => Err(failure),
    };
    result.unwrap_or_else(|failure| reply::failure(&failure))
}

async fn read<S: Service>(
    app: &App<S>,
    path: &ModelPath,
    headers: &HeaderMap,
    body: Body,
) -> Result<(InferRequest, OutputForms), Failure> {
    let header_length = header_length(headers)?;
    let body = body::read(headers, body, &app.settings).await?;
    let ModelPath { model, version } = path;
    if header_length == Some(0) {
        let inputs = app.service.metadata(model, version)?.inputs;
        let batched = app.service.config(model, version)?.max_batch_size > 0;
        return decode_raw(model, version, &inputs, batched, body);
    }
    // Binary tensors are not looked at: only the JSON takes time.
    let json_bytes = header_length.unwrap_or(body.len());
    let ModelPath { model, version } = path.clone();
    offload(json_bytes, move || decode(&model, &version, header_length, &body)).await
}

async fn write(response: InferResponse, forms: OutputForms) -> Result<Response, Failure> {
    let json_bytes = response
        .outputs
        .iter()
        .filter(|output| !forms.is_binary(&output.name))
        .map(|output| output.data.len())
        .sum();
    offload(json_bytes, move || encode(&response, &forms)).await.map(reply::inference)
}

fn header_length(headers: &HeaderMap) -> Result<Option<usize>, Failure> {
    let Some(value) = headers.get(reply::HEADER_LENGTH) else { return Ok(None) };
    let length = value.to_str().ok().and_then(|text| text.trim().parse().ok()).ok_or_else(|| {
        Failure::new(
            Reason::Invalid,
            "Inference-Header-Content-Length must be the length of the JSON in bytes",
        )
    })?;
    Ok(Some(length))
}
