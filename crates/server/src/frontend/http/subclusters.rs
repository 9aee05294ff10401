//! Sub-clusters: what there is, and moving models between them.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use downbeat_oip::{Failure, Reason};
use serde::{Deserialize, Serialize};

use super::model::ModelPath;
use super::repository::{done, read};
use super::{App, reply};
use crate::service::{Service, SubclusterState};

#[derive(Serialize)]
struct Subclusters {
    subclusters: BTreeMap<String, SubclusterState>,
}

pub(super) async fn list<S: Service>(State(app): State<Arc<App<S>>>) -> Response {
    reply::json(StatusCode::OK, &Subclusters { subclusters: app.service.subclusters() })
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct MoveRequest {
    /// The sub-cluster to move to.
    to: String,
}

pub(super) async fn move_model<S: Service>(
    State(app): State<Arc<App<S>>>,
    path: ModelPath,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let result = async {
        let request: MoveRequest = read(&app, &headers, body).await?;
        if request.to.is_empty() {
            let message = "say where to: {\"to\": \"name of a sub-cluster\"}";
            return Err(Failure::new(Reason::Invalid, message));
        }
        app.service.move_model(&path.model, &request.to).await
    };
    done(result.await)
}
