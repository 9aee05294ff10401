//! `downbeat worker`

use std::path::PathBuf;

use clap::Args;
use downbeat_server::DeviceSpec;
use downbeat_server::settings::LogFormat;
use downbeat_server::worker::{Departure, WorkerSettings, work, work_on};

use crate::log;

/// Join a server with a device of this machine
///
/// The worker fetches the models it needs from the server, runs the batches that the server sends, and looks for the
/// server again when the connection is lost. The server must listen for workers on an address that can be reached
/// (--worker-address, --worker-port) and both must know the same token.
#[derive(Args)]
#[command(after_long_help = concat!(
    "Examples:\n",
    "  downbeat worker --connect 10.0.0.1:8003 --device cuda:0\n",
    "  DOWNBEAT_WORKER_TOKEN=secret downbeat worker --connect scheduler:8003 --device cpu --intra-op-threads 8\n",
    "\n",
    "Signals: SIGTERM or Ctrl-C lets the worker finish the batches that it has, and ends it; a second signal ends it at once.\n",
    "\n",
    "On the server's side: downbeat serve --worker-address 0.0.0.0 --worker-port 8003 --worker-token secret"
))]
pub(crate) struct Arguments {
    /// The server's address for workers
    #[arg(long, value_name = "HOST:PORT")]
    connect: String,
    /// The device to own: cpu, cuda:0, tensorrt:0 or emulated:8, with an optional @class
    #[arg(long, value_name = "DEVICE", default_value = "cpu", env = "DOWNBEAT_DEVICE", hide_env = true)]
    device: DeviceSpec,
    /// The server's token
    #[arg(long, value_name = "TOKEN", default_value = "", env = "DOWNBEAT_WORKER_TOKEN", hide_env = true)]
    worker_token: String,
    /// The library of ONNX Runtime; by default it is looked for
    #[arg(long, value_name = "FILE", env = "DOWNBEAT_ONNXRUNTIME", hide_env = true)]
    onnxruntime: Option<PathBuf>,
    /// Threads that share the work of one operator; 0 for one per core
    #[arg(long, value_name = "N", default_value_t = 0, env = "DOWNBEAT_INTRA_OP_THREADS", hide_env = true)]
    intra_op_threads: u32,
    /// How to log
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text, env = "DOWNBEAT_LOG_FORMAT", hide_env = true)]
    log_format: LogFormat,
    /// What to log: error, warn, info, debug or trace, also by module
    #[arg(long, value_name = "LEVEL", default_value = "info", env = "DOWNBEAT_LOG_LEVEL", hide_env = true)]
    log_level: String,
    /// Started by the server itself: ends with it, and reads its files
    #[arg(long, hide = true)]
    child: bool,
    /// The number of the first device
    #[arg(long, hide = true, default_value_t = 0)]
    first: u32,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    log::start(arguments.log_format, &arguments.log_level)?;
    let settings = WorkerSettings {
        connect: arguments.connect,
        token: arguments.worker_token,
        devices: arguments.device,
        first: arguments.first,
        onnxruntime: arguments.onnxruntime,
        threads: arguments.intra_op_threads,
        is_child: arguments.child,
    };
    if settings.devices.count != 1 && !settings.devices.is_emulated() {
        anyhow::bail!("a worker owns one device: start {} workers instead", settings.devices.count);
    }
    if settings.connect.rsplit_once(':').is_none_or(|(_, port)| port.parse::<u16>().is_err()) {
        anyhow::bail!("--connect needs HOST:PORT (is {:?})", settings.connect);
    }
    if settings.is_child {
        // The server has heard why it ends, and says it.
        let ended = work(&settings, &Departure::left_to_server()?);
        std::process::exit(if ended.is_ok() { 0 } else { 2 });
    }
    Ok(work_on(&settings, &Departure::on_signal()?)?)
}
