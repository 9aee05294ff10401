//! Inference.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use downbeat_oip::rest::{OutputForms, decode_raw, decode_within, encode};
use downbeat_oip::{Failure, InferRequest, InferResponse, Reason};

use super::model::ModelPath;
use super::{App, body, reply};
use crate::admission::Permit;
use crate::frontend::offload::offload;
use crate::frontend::places::Places;
use crate::service::Service;

pub(super) async fn infer<S: Service>(
    State(app): State<Arc<App<S>>>,
    path: ModelPath,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let place = app.settings.admission.permit();
    let (request, forms) = match read(&app, &path, &headers, body, &place).await {
        Ok(read) => read,
        Err(failure) => {
            // Of a model that is not there, nothing else is worth saying.
            let unknown = app.service.is_model_ready(&path.model, &path.version).err();
            let failure = unknown.unwrap_or(failure);
            app.service.rejected(&path.model, failure.reason);
            return reply::failure(&failure);
        }
    };
    let result = match app.service.infer(request, &place, None).await {
        // An answer that cannot be written is refused, but not counted as rejected: the service has counted it.
        Ok(response) => write(response, forms, place).await,
        Err(failure) => Err(failure),
    };
    result.unwrap_or_else(|failure| reply::failure(&failure))
}

async fn read<S: Service>(
    app: &App<S>,
    path: &ModelPath,
    headers: &HeaderMap,
    body: Body,
    place: &Permit,
) -> Result<(InferRequest, OutputForms), Failure> {
    let header_length = header_length(headers)?;
    let body = body::read(headers, body, &app.settings, place).await?;
    let ModelPath { model, version } = path;
    if header_length == Some(0) {
        let inputs = app.service.metadata(model, version)?.inputs;
        let batched = app.service.config(model, version)?.max_batch_size > 0;
        return decode_raw(model, version, &inputs, batched, body);
    }
    // Binary tensors are not looked at: only the JSON takes time.
    let json_bytes = header_length.unwrap_or(body.len());
    let ModelPath { model, version } = path.clone();
    let room = place.share();
    let has_binary = json_bytes < body.len();
    let (request, forms, came, read) = offload(json_bytes, move || {
        let mut read = 0;
        let mut ask = |more| {
            read += more;
            room.hold_more(more)
        };
        let (request, forms) = decode_within(&model, &version, header_length, &body, &mut ask)?;
        Ok((request, forms, body.len() as u64, read))
    })
    .await?;
    // Tensors behind the JSON stay where they came in, and keep all of it.
    place.hold(if has_binary { came + read } else { read })?;
    Ok((request, forms))
}

async fn write(response: InferResponse, forms: OutputForms, place: Permit) -> Result<Response, Failure> {
    let json_bytes: usize = response
        .outputs
        .iter()
        .filter(|output| !forms.is_binary(&output.name))
        .map(|output| output.data.len())
        .sum();
    let bytes: usize = response.outputs.iter().map(|output| output.data.len()).sum();
    place.insist((bytes + JSON_FACTOR * json_bytes) as u64);
    let encoded = offload(json_bytes, move || encode(&response, &forms)).await?;
    let mut response = reply::inference(encoded);
    response.extensions_mut().insert(Places::one(place));
    Ok(response)
}

/// How much longer a tensor can be in JSON: `false,` takes six times what a BOOL does, and `\u0000` what a character
/// may.
const JSON_FACTOR: usize = 6;

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
