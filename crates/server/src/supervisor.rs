//! Starts the server's own workers and starts them again when they die.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::process::Command;
use tokio::sync::watch;

use crate::control::Standing;
use crate::device::DeviceSpec;
use crate::metrics::Metrics;
use crate::worker;

/// How the first restart is delayed; each one after it twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_LAST: Duration = Duration::from_secs(10);

/// A worker that ran for so long had no trouble starting.
const SOUND_AFTER: Duration = Duration::from_secs(10);

/// How long a worker that has lost its connection may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(1);

/// What all workers are started with.
#[derive(Clone, Debug)]
pub(crate) struct Supervisor {
    /// This program.
    pub(crate) program: PathBuf,
    /// Where workers connect.
    pub(crate) connect: String,
    pub(crate) token: String,
    pub(crate) onnxruntime: PathBuf,
    pub(crate) threads: u32,
    pub(crate) log: [String; 2],
    pub(crate) metrics: Arc<Metrics>,
    /// Which workers are connected.
    pub(crate) standing: watch::Receiver<Standing>,
    /// Turns true when the server ends.
    pub(crate) stop: watch::Receiver<bool>,
}

impl Supervisor {
    /// Keeps one worker alive until the server ends.
    pub(crate) fn keep(&self, device: DeviceSpec, first: u32) -> tokio::task::JoinHandle<()> {
        let mut supervisor = self.clone();
        supervisor.metrics.worker_kept(&device.device_name(first));
        tokio::spawn(async move {
            let mut pause = PAUSE_FIRST;
            loop {
                let started = Instant::now();
                let ended = supervisor.run(&device, first).await;
                if *supervisor.stop.borrow() {
                    return;
                }
                if started.elapsed() > SOUND_AFTER {
                    pause = PAUSE_FIRST;
                }
                tracing::warn!(
                    device = device.device_name(first),
                    "the worker ended ({ended}); it is started again in {pause:?}"
                );
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = stopped(&mut supervisor.stop) => return,
                }
                supervisor.metrics.worker_restarted(&device.device_name(first));
                pause = (pause * 2).min(PAUSE_LAST);
            }
        })
    }

    /// Runs a worker until it ends, or the server does.
    async fn run(&mut self, device: &DeviceSpec, first: u32) -> String {
        let arguments: [OsString; 11] = [
            "worker".into(),
            "--child".into(),
            format!("--connect={}", self.connect).into(),
            "--device".into(),
            device.to_string().into(),
            "--first".into(),
            first.to_string().into(),
            "--intra-op-threads".into(),
            self.threads.to_string().into(),
            format!("--log-format={}", self.log[0]).into(),
            format!("--log-level={}", self.log[1]).into(),
        ];
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .env("DOWNBEAT_WORKER_TOKEN", &self.token)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        if !self.onnxruntime.as_os_str().is_empty() {
            command.env("DOWNBEAT_ONNXRUNTIME", &self.onnxruntime);
        }
        // Ctrl-C in a terminal is for the server, which then ends its workers in its own time.
        command.process_group(0);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return format!("it does not start: {error}"),
        };
        let name = child.id().map(worker::name).unwrap_or_default();
        let ended = tokio::select! {
            ended = child.wait() => {
                return ended.map_or_else(|error| error.to_string(), |status| status.to_string());
            }
            () = hung(&name, self.standing.clone()) => "it hung, and was killed".to_owned(),
            () = stopped(&mut self.stop) => "stopped".to_owned(),
        };
        // Waits until it is gone: a server that has ended leaves none behind, and two never own one device.
        if let Err(error) = child.kill().await {
            tracing::warn!(%error, "a worker cannot be killed");
        }
        ended
    }
}

/// Waits until a worker was connected and is not any more, but has not ended either.
async fn hung(name: &str, mut standing: watch::Receiver<Standing>) {
    for connected in [true, false] {
        if standing.wait_for(|standing| standing.connected.contains(name) == connected).await.is_err() {
            // The server ends.
            return std::future::pending().await;
        }
    }
    tokio::time::sleep(ENDS_WITHIN).await;
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error says that the server is gone.
    let _ = stop.wait_for(|stop| *stop).await;
}
