//! What the server says of itself, over either protocol.

/// The server's name.
pub(super) const NAME: &str = "downbeat";

/// The server's version.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The extensions of the protocol that the server has, under Triton's names. Clients look here before they use one.
pub(super) const EXTENSIONS: [&str; 7] = [
    "classification",
    "model_repository",
    "schedule_policy",
    "model_configuration",
    "binary_tensor_data",
    "parameters",
    "statistics",
];

/// What Triton has and Downbeat does not, with what to do instead.
pub(super) const NO_SHARED_MEMORY: &str =
    "Downbeat does not support shared memory: send tensors in the request";
pub(super) const NO_TRACING: &str =
    "Downbeat does not support Triton's trace settings: responses carry their own timings";
pub(super) const NO_LOGGING: &str =
    "Downbeat does not support Triton's log settings: logging is configured when it starts";
