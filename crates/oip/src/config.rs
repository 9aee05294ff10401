//! Model configurations and statistics as JSON: the protobuf messages under their own field names, enums by name,
//! 64-bit integers as numbers, nothing left out that has a default. That is what Triton's REST endpoints return.

#[cfg(test)]
mod tests;
mod written;

use std::sync::OnceLock;

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, SerializeOptions};

use crate::proto::{
    DESCRIPTORS, InferStatistics, ModelConfig, ModelStatistics, ModelStatisticsResponse, StatisticDuration,
};
use crate::{Failure, Reason};
pub use written::WrittenConfig;

/// A model's configuration as the REST endpoint `config` returns it.
pub fn to_json(config: &ModelConfig) -> Result<Vec<u8>, Failure> {
    message_to_json("inference.ModelConfig", config)
}

/// Reads what [`to_json`] writes, or the same with fields left out.
pub fn from_json(json: &str) -> Result<WrittenConfig, Failure> {
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::new(Reason::Invalid, format!("the model configuration is wrong: {error}"))
    };
    let mut parser = serde_json::Deserializer::from_str(json);
    let descriptor =
        WrittenConfig::descriptor().ok_or_else(|| internal(&"the configuration has no description"))?;
    let message = DynamicMessage::deserialize(descriptor, &mut parser).map_err(|error| wrong(&error))?;
    parser.end().map_err(|error| wrong(&error))?;
    WrittenConfig::of(&message).map_err(|error| wrong(&error))
}

/// What was counted of models, as the REST endpoint `stats` returns it. Every duration is there, if only as zero:
/// clients compute with all of them.
pub fn statistics_to_json(models: Vec<ModelStatistics>) -> Result<Vec<u8>, Failure> {
    let model_stats = models.into_iter().map(with_every_duration).collect();
    message_to_json("inference.ModelStatisticsResponse", &ModelStatisticsResponse { model_stats })
}

/// The statistics with durations of zero where there were none.
pub fn with_every_duration(mut statistics: ModelStatistics) -> ModelStatistics {
    let present = |duration: Option<StatisticDuration>| Some(duration.unwrap_or_default());
    let inference = statistics.inference_stats.unwrap_or_default();
    statistics.inference_stats = Some(InferStatistics {
        success: present(inference.success),
        fail: present(inference.fail),
        queue: present(inference.queue),
        compute_input: present(inference.compute_input),
        compute_infer: present(inference.compute_infer),
        compute_output: present(inference.compute_output),
        cache_hit: present(inference.cache_hit),
        cache_miss: present(inference.cache_miss),
    });
    for batch in &mut statistics.batch_stats {
        batch.compute_input.get_or_insert_default();
        batch.compute_infer.get_or_insert_default();
        batch.compute_output.get_or_insert_default();
    }
    statistics
}

fn message_to_json(name: &str, message: &impl Message) -> Result<Vec<u8>, Failure> {
    let options = SerializeOptions::new()
        .stringify_64_bit_integers(false)
        .use_proto_field_name(true)
        .skip_default_fields(false);
    let message = DynamicMessage::decode(descriptor(name)?, message.encode_to_vec().as_slice())
        .map_err(|error| internal(&error))?;
    let mut json = Vec::new();
    message
        .serialize_with_options(&mut serde_json::Serializer::new(&mut json), &options)
        .map_err(|error| internal(&error))?;
    Ok(json)
}

fn descriptor(name: &str) -> Result<MessageDescriptor, Failure> {
    static POOL: OnceLock<Option<DescriptorPool>> = OnceLock::new();
    POOL.get_or_init(|| DescriptorPool::decode(DESCRIPTORS).ok())
        .as_ref()
        .and_then(|pool| pool.get_message_by_name(name))
        .ok_or_else(|| internal(&format!("{name} has no description")))
}

fn internal(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Reason::Failed, format!("the message cannot be written as JSON: {error}"))
}
