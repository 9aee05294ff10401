//! What becomes of Triton's settings: some are honoured, some are accepted with a notice of what happens instead, and
//! those without which the model would be a different one are refused.

use std::time::Duration;

use downbeat_oip::proto::ModelConfig;
use downbeat_oip::proto::ModelDynamicBatching;
use downbeat_oip::proto::model_config::SchedulingChoice;

use crate::{Backend, Priorities};

/// The longest time that makes sense: a day.
const MS_MAX: f64 = 86_400_000.0;

/// The parameters that mean something here, by backend.
const ONNX_PARAMETERS: &[&str] = &["slo_ms", "max_wait_ms", "subcluster"];
const EMULATED_PARAMETERS: &[&str] = &["slo_ms", "max_wait_ms", "subcluster", "alpha_ms", "beta_ms"];

/// What a configuration asks for beyond tensors and files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) slo: Option<Duration>,
    pub(crate) max_wait: Option<Duration>,
    pub(crate) queue_limit: Option<u32>,
    pub(crate) priorities: Option<Priorities>,
    pub(crate) notices: Vec<String>,
}

impl Settings {
    pub(crate) fn of(config: &ModelConfig, backend: Backend) -> Result<Settings, String> {
        let mut settings = Settings {
            slo: milliseconds(config, "slo_ms", f64::MIN_POSITIVE)?,
            max_wait: milliseconds(config, "max_wait_ms", 0.0)?,
            ..Settings::default()
        };
        if backend == Backend::Emulated {
            for key in ["alpha_ms", "beta_ms"] {
                milliseconds(config, key, 0.0)?;
            }
        }
        if let Some(SchedulingChoice::DynamicBatching(batching)) = &config.scheduling_choice {
            settings.take_batching(batching)?;
        }
        settings.note_replaced(config);
        settings.note_parameters(config, backend);
        Ok(settings)
    }

    fn take_batching(&mut self, batching: &ModelDynamicBatching) -> Result<(), String> {
        let notes = [
            (
                !batching.preferred_batch_size.is_empty(),
                "dynamic_batching.preferred_batch_size is not used: batches are as large as the deadlines allow",
            ),
            (
                batching.max_queue_delay_microseconds != 0,
                "dynamic_batching.max_queue_delay_microseconds is not used: a batch waits as long as its deadlines allow, and no longer than \
                 the parameter max_wait_ms",
            ),
            (
                batching.preserve_ordering,
                "dynamic_batching.preserve_ordering is not used: a response is sent as soon as it is ready",
            ),
            (
                !batching.priority_queue_policy.is_empty(),
                "dynamic_batching.priority_queue_policy is not used: every priority has the limit of default_queue_policy",
            ),
        ];
        self.note_all(notes);
        if let Some(policy) = &batching.default_queue_policy {
            self.queue_limit = Some(policy.max_queue_size).filter(|&limit| limit > 0);
            self.note_all([
                (
                    policy.default_timeout_microseconds != 0,
                    "default_queue_policy.default_timeout_microseconds is not used: set the parameter slo_ms, which bounds \
                     the whole time to the response",
                ),
                (
                    policy.allow_timeout_override,
                    "default_queue_policy.allow_timeout_override is not used: a request may always set a shorter timeout",
                ),
            ]);
        }
        if batching.priority_levels > 0 {
            let (levels, default) = (batching.priority_levels, batching.default_priority_level);
            if !(1..=levels).contains(&default) {
                return Err(format!(
                    "dynamic_batching.default_priority_level is {default}; it must be between 1 and priority_levels, {levels}"
                ));
            }
            self.priorities = Some(Priorities { levels, default });
        }
        Ok(())
    }

    fn note_replaced(&mut self, config: &ModelConfig) {
        let optimization = config.optimization.as_ref();
        let accelerated =
            optimization.is_some_and(|optimization| optimization.execution_accelerators.is_some());
        let cached = config.response_cache.as_ref().is_some_and(|cache| cache.enable);
        self.note_all([
            (
                !config.instance_group.is_empty(),
                "instance_group is not used: a model runs on every device that the server is given, one batch at a time",
            ),
            (
                accelerated,
                "optimization.execution_accelerators is not used: the device that the server is given decides what runs a model",
            ),
            (
                optimization.is_some() && !accelerated,
                "optimization is not used: ONNX Runtime optimises every model fully",
            ),
            (
                !config.model_warmup.is_empty(),
                "model_warmup is not used: a model is run before its first request, to measure it",
            ),
            (cached, "response_cache is not used: every request is run"),
            (!config.cc_model_filenames.is_empty(), "cc_model_filenames is not used: all devices get the same file"),
            (!config.metric_tags.is_empty(), "metric_tags is not used: metrics have the labels model and version"),
            (config.model_metrics.is_some(), "model_metrics is not used: histograms have fixed buckets"),
            (!config.runtime.is_empty(), "runtime is not used: the server has its own"),
            (
                config.input.iter().any(|input| input.allow_ragged_batch),
                "allow_ragged_batch is not used: requests of different shapes run in different batches",
            ),
            (
                config.input.iter().any(|input| input.optional),
                "optional is not used: a request must have every input of the model",
            ),
        ]);
    }

    fn note_parameters(&mut self, config: &ModelConfig, backend: Backend) {
        let known = match backend {
            Backend::Onnx => ONNX_PARAMETERS,
            Backend::Emulated => EMULATED_PARAMETERS,
        };
        let mut unknown: Vec<&str> =
            config.parameters.keys().map(String::as_str).filter(|key| !known.contains(key)).collect();
        unknown.sort_unstable();
        for key in unknown {
            let near = known.iter().find(|known| strsim::osa_distance(known, key) <= 2);
            let hint = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
            self.notices.push(format!("the parameter {key:?} is not used{hint}"));
        }
    }

    fn note_all<const N: usize>(&mut self, notes: [(bool, &str); N]) {
        self.notices.extend(notes.into_iter().filter(|note| note.0).map(|note| note.1.to_owned()));
    }
}

/// Refuses what would make the model another one if it were left out.
pub(crate) fn refuse_unsupported(config: &ModelConfig) -> Result<(), String> {
    let operations = config.model_operations.as_ref();
    let agents = config.model_repository_agents.as_ref();
    let refusals = [
        (
            matches!(config.scheduling_choice, Some(SchedulingChoice::SequenceBatching(_))),
            "sequence_batching is not supported: Downbeat serves models without state between requests",
        ),
        (
            config.platform == "ensemble"
                || matches!(config.scheduling_choice, Some(SchedulingChoice::EnsembleScheduling(_))),
            "ensemble_scheduling is not supported: serve the models of the ensemble each on its own, and let the client call them",
        ),
        (
            config.model_transaction_policy.is_some_and(|policy| policy.decoupled),
            "model_transaction_policy.decoupled is not supported: a request has one response",
        ),
        (
            !config.batch_input.is_empty() || !config.batch_output.is_empty(),
            "batch_input and batch_output are not supported: export the model without inputs that describe the batch",
        ),
        (
            operations.is_some_and(|operations| !operations.op_library_filename.is_empty()),
            "model_operations is not supported: export the model with ONNX's own operators",
        ),
        (
            agents.is_some_and(|agents| !agents.agents.is_empty()),
            "model_repository_agents is not supported: do what the agents do before the model is put here, and remove it",
        ),
    ];
    match refusals.into_iter().find(|refusal| refusal.0) {
        Some((_, problem)) => Err(problem.to_owned()),
        None => Ok(()),
    }
}

fn milliseconds(config: &ModelConfig, key: &str, least: f64) -> Result<Option<Duration>, String> {
    let Some(parameter) = config.parameters.get(key) else { return Ok(None) };
    match parameter.string_value.trim().parse::<f64>() {
        Ok(ms) if (least..=MS_MAX).contains(&ms) => Ok(Some(Duration::from_secs_f64(ms / 1e3))),
        _ => Err(format!(
            "the parameter {key} is {:?}; it must be a number of milliseconds{}, such as \"25\"",
            parameter.string_value,
            if least > 0.0 { " above 0" } else { "" }
        )),
    }
}

#[cfg(test)]
mod tests;
