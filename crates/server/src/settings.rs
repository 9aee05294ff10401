//! All settings of the server: each is defined once, here, and can be given as a flag, as an environment variable or in
//! `downbeat.toml`, in this order of precedence.

mod file;
mod kinds;

use std::fmt;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::parser::ValueSource;
use serde::Deserialize;

use crate::device::DeviceSpec;
pub use kinds::{LOG_LEVELS, LogFormat, ModelControl, SpareDevices, is_log_level};

/// The configuration file that is read where none is named, if it is there.
pub const DEFAULT_FILE: &str = "downbeat.toml";

/// Why emulated devices and real ones do not serve together.
pub(crate) const MIXED: &str = "emulated devices answer with zeros, and must not serve beside real ones";

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("cannot read {file}: {error}")]
    Read {
        /// The file.
        file: String,
        /// Why.
        error: std::io::Error,
    },
    /// The file is not what it should be.
    #[error("{file}: {problem}")]
    File {
        /// The file.
        file: String,
        /// What is wrong, with the line, and what to do.
        problem: String,
    },
    /// A setting without which the server cannot start.
    #[error("no {key}: give --{flag}, {variable}, or {key} in {DEFAULT_FILE}")]
    Missing {
        /// The key.
        key: &'static str,
        /// The flag.
        flag: &'static str,
        /// The environment variable.
        variable: &'static str,
    },
    /// A value that cannot be used.
    #[error("{key} is {value}; {problem}")]
    Value {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// The configuration file.
    File(PathBuf),
    /// An environment variable.
    Environment(&'static str),
    /// A flag.
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File(path) => path.display().fmt(f),
            Origin::Environment(variable) => f.write_str(variable),
            Origin::Flag => f.write_str("flag"),
        }
    }
}

/// A setting as `--print-config` shows it.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The key.
    pub key: &'static str,
    /// The value in TOML.
    pub value: String,
    /// Where it came from.
    pub origin: Origin,
}

/// Defines the settings: the struct that the server reads, the layer of optional values that a file or the command line
/// gives, and how the layers are put together.
macro_rules! settings {
    ($($(#[doc = $doc:literal])+ $key:ident / $variable:literal $(($($arg:tt)*))?: $kind:ty = $default:expr;)+) => {
        /// The settings of a server.
        #[derive(Clone, Debug)]
        pub struct Settings {
            $($(#[doc = $doc])+ pub $key: $kind,)+
            /// Every setting with its origin, in the order of the documentation.
            pub shown: Vec<Shown>,
        }

        /// Settings as a file or the command line gives them.
        #[derive(Args, Clone, Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Layer {
            $($(#[doc = $doc])+ #[arg(long, env = $variable, hide_env = true $(, $($arg)*)?)] pub $key: Option<$kind>,)+
        }

        /// The keys of `downbeat.toml`.
        pub const KEYS: &[&str] = &[$(stringify!($key)),+];

        impl Settings {
            /// Puts the layers together. `source` tells whether an argument came from a flag or the environment.
            pub fn merge(
                arguments: Layer,
                source: impl Fn(&str) -> Option<ValueSource>,
                file: Option<(Layer, &Path)>,
            ) -> Settings {
                let (file, path) = match file {
                    Some((layer, path)) => (layer, path.to_owned()),
                    None => (Layer::default(), PathBuf::new()),
                };
                let mut shown = Vec::new();
                $(
                    let given = match source(stringify!($key)) {
                        Some(ValueSource::EnvVariable) => Origin::Environment($variable),
                        _ => Origin::Flag,
                    };
                    let layers = [(arguments.$key, given), (file.$key, Origin::File(path.clone()))];
                    let (value, origin) = layers
                        .into_iter()
                        .find_map(|(value, origin)| Some((value?, origin)))
                        .unwrap_or_else(|| ($default, Origin::Default));
                    shown.push(Shown { key: stringify!($key), value: kinds::Show::show(&value), origin });
                    let $key: $kind = value;
                )+
                Settings { $($key,)+ shown }
            }
        }
    };
}

settings! {
    /// The model repository, a folder in Triton's layout
    model_repository / "DOWNBEAT_MODEL_REPOSITORY" (value_name = "DIR"): PathBuf = PathBuf::new();
    /// A device to run models on: cpu, cpu:2 (two workers), cuda:0, tensorrt:0, emulated:8, each with an optional
    /// @class and #subcluster; none for workers elsewhere only. May be repeated
    device / "DOWNBEAT_DEVICE" (value_name = "DEVICE", value_delimiter = ','): Vec<DeviceSpec> = kinds::default_devices();
    /// Which models are in which sub-cluster: a file as `downbeat plan subclusters --format json` writes it
    subclusters / "DOWNBEAT_SUBCLUSTERS" (value_name = "JSON"): PathBuf = PathBuf::new();
    /// The address to listen on
    address / "DOWNBEAT_ADDRESS" (value_name = "IP"): std::net::IpAddr = std::net::Ipv4Addr::UNSPECIFIED.into();
    /// The port for HTTP; 0 for a free one
    http_port / "DOWNBEAT_HTTP_PORT" (value_name = "PORT"): u16 = 8000;
    /// The port for gRPC; 0 for a free one
    grpc_port / "DOWNBEAT_GRPC_PORT" (value_name = "PORT"): u16 = 8001;
    /// The port for metrics; 0 for a free one
    metrics_port / "DOWNBEAT_METRICS_PORT" (value_name = "PORT"): u16 = 8002;
    /// The address on which workers from elsewhere may connect; workers of this host always can
    worker_address / "DOWNBEAT_WORKER_ADDRESS" (value_name = "IP"): std::net::IpAddr = std::net::Ipv4Addr::LOCALHOST.into();
    /// The port for workers; 0 for a free one
    worker_port / "DOWNBEAT_WORKER_PORT" (value_name = "PORT"): u16 = 0;
    /// What workers from elsewhere must show; empty for a new secret at every start, which only the server's own
    /// workers know
    worker_token / "DOWNBEAT_WORKER_TOKEN" (value_name = "TOKEN", hide_env_values = true): String = String::new();
    /// The SLO of models that set none: from arrival to answer, in milliseconds
    default_slo_ms / "DOWNBEAT_DEFAULT_SLO_MS" (value_name = "MS", allow_negative_numbers = true): f64 = 100.0;
    /// A batch is held back for more requests no longer than this after its first one came, however long its SLO, in
    /// milliseconds
    max_wait_ms / "DOWNBEAT_MAX_WAIT_MS" (value_name = "MS", allow_negative_numbers = true): f64 = 100.0;
    /// Requests that may wait for one model at once; one more is answered 429 / RESOURCE_EXHAUSTED
    queue_limit / "DOWNBEAT_QUEUE_LIMIT" (value_name = "N"): usize = 8192;
    /// Requests and answers that the server holds at once, with what is still coming in or going out, in MiB; more is
    /// answered 429 / RESOURCE_EXHAUSTED
    pending_max_mib / "DOWNBEAT_PENDING_MAX_MIB" (value_name = "MIB"): u64 = 1024;
    /// The largest request, in MiB; a larger one is answered 413 / RESOURCE_EXHAUSTED
    message_max_mib / "DOWNBEAT_MESSAGE_MAX_MIB" (value_name = "MIB"): u64 = 64;
    /// Connections that each frontend holds at once
    connections_max / "DOWNBEAT_CONNECTIONS_MAX" (value_name = "N"): usize = 4096;
    /// After SIGTERM: how long the server is unready but goes on serving, in seconds
    drain_s / "DOWNBEAT_DRAIN_S" (value_name = "S", allow_negative_numbers = true): f64 = 5.0;
    /// Kept of every deadline for the way back to the client, in microseconds; a tenth of the deadline at most
    response_reserve_us / "DOWNBEAT_RESPONSE_RESERVE_US" (value_name = "US"): u64 = 1000;
    /// What passes between sending a batch and its start on the device, in microseconds
    control_delay_us / "DOWNBEAT_CONTROL_DELAY_US" (value_name = "US"): u64 = 200;
    /// Threads among which the scheduler divides the models, besides one for the devices; 1 for one thread that does
    /// everything, 0 decides by the machine's cores
    scheduler_threads / "DOWNBEAT_SCHEDULER_THREADS" (value_name = "N"): usize = 0;
    /// The use of devices that the traffic does not need
    spare_devices / "DOWNBEAT_SPARE_DEVICES" (value_enum, value_name = "USE"): SpareDevices = SpareDevices::Answer;
    /// A worker from which nothing is heard for so long is taken for dead, in seconds; workers say ten times a second
    /// that they are there
    worker_timeout_s / "DOWNBEAT_WORKER_TIMEOUT_S" (value_name = "S", allow_negative_numbers = true): f64 = 2.0;
    /// A device whose batch is so much later than it should be is taken for dead, in seconds
    device_timeout_s / "DOWNBEAT_DEVICE_TIMEOUT_S" (value_name = "S", allow_negative_numbers = true): f64 = 10.0;
    /// CSV files of latency profiles, as `downbeat profile` writes them. May be repeated
    profile / "DOWNBEAT_PROFILE" (value_name = "CSV", value_delimiter = ','): Vec<PathBuf> = Vec::new();
    /// The size that dimensions get which a model leaves open, when the server measures it
    open_size / "DOWNBEAT_OPEN_SIZE" (value_name = "N"): u64 = 1;
    /// Where profiles that the server measured itself are kept; by default in the user's cache
    cache_dir / "DOWNBEAT_CACHE_DIR" (value_name = "DIR"): PathBuf = kinds::default_cache_dir();
    /// The library of ONNX Runtime; by default it is looked for
    onnxruntime / "DOWNBEAT_ONNXRUNTIME" (value_name = "FILE"): PathBuf = PathBuf::new();
    /// Threads of a CPU worker that share the work of one operator; 0 divides the cores among the workers
    intra_op_threads / "DOWNBEAT_INTRA_OP_THREADS" (value_name = "N"): u32 = 0;
    /// Which models are loaded: all at the start (none), or those of --load-model and then what clients load and unload
    /// (explicit)
    model_control_mode / "DOWNBEAT_MODEL_CONTROL_MODE" (value_enum, value_name = "MODE"): ModelControl = ModelControl::None;
    /// A model to load at the start when --model-control-mode is explicit; * for all. May be repeated
    load_model / "DOWNBEAT_LOAD_MODEL" (value_name = "MODEL", value_delimiter = ','): Vec<String> = Vec::new();
    /// How to log
    log_format / "DOWNBEAT_LOG_FORMAT" (value_enum, value_name = "FORMAT"): LogFormat = LogFormat::Text;
    /// What to log: error, warn, info, debug or trace, also by module
    log_level / "DOWNBEAT_LOG_LEVEL" (value_name = "LEVEL"): String = "info".to_owned();
}

impl Layer {
    /// The settings of a configuration file.
    pub fn read(path: &Path) -> Result<Layer, SettingsError> {
        file::read(path)
    }
}

impl Settings {
    /// Refuses what no server can be started with.
    pub fn check(&self) -> Result<(), SettingsError> {
        if self.model_repository.as_os_str().is_empty() {
            let (flag, variable) = ("model-repository", "DOWNBEAT_MODEL_REPOSITORY");
            return Err(SettingsError::Missing { key: "model_repository", flag, variable });
        }
        self.check_values()
    }

    /// Refuses values that no server can be started with, whether all that it needs is there or not.
    pub fn check_values(&self) -> Result<(), SettingsError> {
        if self.device.len() > 1 && self.device.iter().any(|device| device.count == 0) {
            let problem = "none stands for no device, and cannot be beside others";
            return Err(SettingsError::Value {
                key: "device",
                value: kinds::Show::show(&self.device),
                problem,
            });
        }
        if !is_log_level(&self.log_level) {
            let (key, value) = ("log_level", kinds::Show::show(&self.log_level));
            return Err(SettingsError::Value { key, value, problem: LOG_LEVELS });
        }
        let emulated = self.device.iter().filter(|device| device.count > 0).map(DeviceSpec::is_emulated);
        if emulated.clone().any(|it| it) && !emulated.clone().all(|it| it) {
            let value = kinds::Show::show(&self.device);
            return Err(SettingsError::Value { key: "device", value, problem: MIXED });
        }
        for (key, value) in
            [("control_delay_us", self.control_delay_us), ("response_reserve_us", self.response_reserve_us)]
        {
            if value > 60_000_000 {
                let problem = "it must be a minute at most";
                return Err(SettingsError::Value { key, value: value.to_string(), problem });
            }
        }
        let positive = |key, value: f64, max: f64| {
            let problem = "it must be a number above 0, and of a sensible size";
            let error = SettingsError::Value { key, value: value.to_string(), problem };
            if value > 0.0 && value <= max { Ok(()) } else { Err(error) }
        };
        positive("default_slo_ms", self.default_slo_ms, 1e9)?;
        positive("device_timeout_s", self.device_timeout_s, 1e7)?;
        // Workers say ten times a second that they are there.
        if !(0.3..=1e7).contains(&self.worker_timeout_s) {
            let (key, value) = ("worker_timeout_s", self.worker_timeout_s.to_string());
            return Err(SettingsError::Value { key, value, problem: "it must be a number, 0.3 or more" });
        }
        for (key, value) in [("drain_s", self.drain_s), ("max_wait_ms", self.max_wait_ms)] {
            if !(0.0..=1e9).contains(&value) {
                let problem = "it must be a number, 0 or more, and of a sensible size";
                return Err(SettingsError::Value { key, value: value.to_string(), problem });
            }
        }
        for (key, value) in [
            ("queue_limit", self.queue_limit as u64),
            ("pending_max_mib", self.pending_max_mib),
            ("message_max_mib", self.message_max_mib),
            ("connections_max", self.connections_max as u64),
        ] {
            if value == 0 || value > 1 << 40 {
                let problem = "it must be a number above 0, and of a sensible size";
                return Err(SettingsError::Value { key, value: value.to_string(), problem });
            }
        }
        if self.scheduler_threads > 256 {
            let (key, value) = ("scheduler_threads", self.scheduler_threads.to_string());
            return Err(SettingsError::Value { key, value, problem: "it must be 256 at most" });
        }
        if !(1..=1 << 20).contains(&self.open_size) {
            let (key, value) = ("open_size", self.open_size.to_string());
            return Err(SettingsError::Value { key, value, problem: "it must be between 1 and 1048576" });
        }
        Ok(())
    }
}
