//! The calls of the inference service.

use std::sync::Arc;

use downbeat_oip::proto::grpc_inference_service_server::GrpcInferenceService;
use downbeat_oip::proto::model_metadata_response::TensorMetadata;
use downbeat_oip::proto::model_repository_parameter::ParameterChoice;
use downbeat_oip::proto::repository_index_response::ModelIndex;
use downbeat_oip::proto::{
    ModelConfigRequest, ModelConfigResponse, ModelInferRequest, ModelInferResponse, ModelMetadataRequest,
    ModelMetadataResponse, ModelReadyRequest, ModelReadyResponse, ModelStatisticsRequest,
    ModelStatisticsResponse, RepositoryIndexRequest, RepositoryIndexResponse, RepositoryModelLoadRequest,
    RepositoryModelLoadResponse, RepositoryModelUnloadRequest, RepositoryModelUnloadResponse,
    ServerLiveRequest, ServerLiveResponse, ServerMetadataRequest, ServerMetadataResponse, ServerReadyRequest,
    ServerReadyResponse, Unsupported,
};
use downbeat_oip::{Reason, TensorSpec, config, grpc};
use tonic::{Request, Response, Status, Streaming};

use super::closing::Closing;
use super::status::{status, timeout};
use super::stream::{Answers, Requests, answers};
use crate::frontend::identity;
use crate::frontend::places::Places;
use crate::service::Service;

/// The calls, answered by a service.
pub(super) struct Calls<S> {
    pub(super) service: Arc<S>,
    pub(super) closing: Closing,
}

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl<S: Service> GrpcInferenceService for Calls<S> {
    async fn server_live(&self, _: Request<ServerLiveRequest>) -> Answer<ServerLiveResponse> {
        Ok(Response::new(ServerLiveResponse { live: true }))
    }

    async fn server_ready(&self, _: Request<ServerReadyRequest>) -> Answer<ServerReadyResponse> {
        Ok(Response::new(ServerReadyResponse { ready: self.service.is_ready() }))
    }

    async fn model_ready(&self, request: Request<ModelReadyRequest>) -> Answer<ModelReadyResponse> {
        let ModelReadyRequest { name, version } = request.into_inner();
        match self.service.is_model_ready(&name, &version) {
            Ok(ready) => Ok(Response::new(ModelReadyResponse { ready })),
            // Who asks whether a model is ready wants an answer, also for one that is not there.
            Err(failure) if failure.reason == Reason::Unknown => {
                Ok(Response::new(ModelReadyResponse { ready: false }))
            }
            Err(failure) => Err(status(failure)),
        }
    }

    async fn server_metadata(&self, _: Request<ServerMetadataRequest>) -> Answer<ServerMetadataResponse> {
        Ok(Response::new(ServerMetadataResponse {
            name: identity::NAME.to_owned(),
            version: identity::VERSION.to_owned(),
            extensions: identity::EXTENSIONS.map(str::to_owned).to_vec(),
        }))
    }

    async fn model_metadata(&self, request: Request<ModelMetadataRequest>) -> Answer<ModelMetadataResponse> {
        let ModelMetadataRequest { name, version } = request.into_inner();
        let model = self.service.metadata(&name, &version).map_err(status)?;
        let tensors = |specs: Vec<TensorSpec>| {
            let tensor = |spec: TensorSpec| TensorMetadata {
                name: spec.name,
                datatype: spec.datatype.name().to_owned(),
                shape: spec.shape,
            };
            specs.into_iter().map(tensor).collect()
        };
        Ok(Response::new(ModelMetadataResponse {
            name: model.name,
            versions: model.versions,
            platform: model.platform,
            inputs: tensors(model.inputs),
            outputs: tensors(model.outputs),
        }))
    }

    async fn model_infer(&self, request: Request<ModelInferRequest>) -> Answer<ModelInferResponse> {
        let timeout = timeout(request.metadata());
        let place = places(&request).next().unwrap_or_default();
        let message = request.into_inner();
        let model = message.model_name.clone();
        let request = grpc::decode(message)
            .inspect_err(|failure| self.service.rejected(&model, failure.reason))
            .map_err(status)?;
        let answer = self.service.infer(request, &place, timeout).await.map_err(status)?;
        let mut response = Response::new(grpc::encode(answer));
        response.extensions_mut().insert(Places::one(place));
        Ok(response)
    }

    type ModelStreamInferStream = Answers;

    async fn model_stream_infer(&self, request: Request<Streaming<ModelInferRequest>>) -> Answer<Answers> {
        let timeout = timeout(request.metadata());
        let (arrived, outgoing) = (places(&request), Places::default());
        let requests = Requests { messages: request.into_inner(), arrived, closing: self.closing.clone() };
        let answers = answers(Arc::clone(&self.service), requests, outgoing.clone(), timeout);
        let mut response = Response::new(answers);
        response.extensions_mut().insert(outgoing);
        Ok(response)
    }

    async fn model_config(&self, request: Request<ModelConfigRequest>) -> Answer<ModelConfigResponse> {
        let ModelConfigRequest { name, version } = request.into_inner();
        let config = self.service.config(&name, &version).map_err(status)?;
        Ok(Response::new(ModelConfigResponse { config: Some(config) }))
    }

    async fn model_statistics(
        &self,
        request: Request<ModelStatisticsRequest>,
    ) -> Answer<ModelStatisticsResponse> {
        let ModelStatisticsRequest { name, version } = request.into_inner();
        let models = self.service.statistics(&name, &version).map_err(status)?;
        let model_stats = models.into_iter().map(config::with_every_duration).collect();
        Ok(Response::new(ModelStatisticsResponse { model_stats }))
    }

    async fn repository_index(
        &self,
        request: Request<RepositoryIndexRequest>,
    ) -> Answer<RepositoryIndexResponse> {
        let models = self.service.index(request.into_inner().ready);
        let models = models
            .into_iter()
            .map(|model| ModelIndex {
                name: model.name,
                version: model.version,
                state: model.state,
                reason: model.reason,
            })
            .collect();
        Ok(Response::new(RepositoryIndexResponse { models }))
    }

    async fn repository_model_load(
        &self,
        request: Request<RepositoryModelLoadRequest>,
    ) -> Answer<RepositoryModelLoadResponse> {
        let mut request = request.into_inner();
        if let Some(file) = request.parameters.keys().find(|name| name.starts_with("file:")) {
            return Err(Status::unimplemented(format!(
                "Downbeat does not load model files from requests ('{file}'): put them into the repository"
            )));
        }
        let config = match request.parameters.remove("config").map(|value| value.parameter_choice) {
            None => None,
            Some(Some(ParameterChoice::StringParam(config))) => Some(config),
            Some(_) => {
                return Err(Status::invalid_argument("parameter 'config' must be a string that holds JSON"));
            }
        };
        self.service.load(&request.model_name, config).await.map_err(status)?;
        Ok(Response::new(RepositoryModelLoadResponse {}))
    }

    async fn repository_model_unload(
        &self,
        request: Request<RepositoryModelUnloadRequest>,
    ) -> Answer<RepositoryModelUnloadResponse> {
        // `unload_dependents` concerns ensembles, of which there are none.
        self.service.unload(&request.into_inner().model_name).await.map_err(status)?;
        Ok(Response::new(RepositoryModelUnloadResponse {}))
    }

    async fn system_shared_memory_status(&self, _: Request<Unsupported>) -> Answer<Unsupported> {
        no_shared_memory()
    }

    async fn system_shared_memory_register(&self, _: Request<Unsupported>) -> Answer<Unsupported> {
        no_shared_memory()
    }

    async fn system_shared_memory_unregister(&self, _: Request<Unsupported>) -> Answer<Unsupported> {
        no_shared_memory()
    }

    async fn cuda_shared_memory_status(&self, _: Request<Unsupported>) -> Answer<Unsupported> {
        no_shared_memory()
    }

    async fn cuda_shared_memory_register(&self, _: Request<Unsupported>) -> Answer<Unsupported> {
        no_shared_memory()
    }

    async fn cuda_shared_memory_unregister(&self, _: Request<Unsupported>) -> Answer<Unsupported> {
        no_shared_memory()
    }

    async fn trace_setting(&self, _: Request<Unsupported>) -> Answer<Unsupported> {
        Err(Status::unimplemented(identity::NO_TRACING))
    }

    async fn log_settings(&self, _: Request<Unsupported>) -> Answer<Unsupported> {
        Err(Status::unimplemented(identity::NO_LOGGING))
    }
}

/// The places of the messages that have come in.
fn places<T>(request: &Request<T>) -> Places {
    request.extensions().get().cloned().unwrap_or_default()
}

fn no_shared_memory() -> Answer<Unsupported> {
    Err(Status::unimplemented(identity::NO_SHARED_MEMORY))
}
