//! The binary as a process that a test starts, watches and ends.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::client::{self, Answer, HANG};
use crate::models::Models;

/// The binary, with nothing of the environment that could change what it does.
pub(crate) fn downbeat(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_downbeat"));
    for (variable, _) in std::env::vars().filter(|(variable, _)| variable.starts_with("DOWNBEAT_")) {
        command.env_remove(variable);
    }
    command.args(arguments).env("COLUMNS", "100").stdin(Stdio::null());
    command
}

/// Runs a command that must end by itself.
pub(crate) fn run(mut command: Command) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let (done, waited) = std::sync::mpsc::channel();
    thread::spawn(move || done.send(child.wait_with_output().unwrap()));
    waited.recv_timeout(HANG).unwrap_or_else(|_| {
        signal(pid, Signal::KILL);
        panic!("{command:?} does not end")
    })
}

/// A process whose log lines are kept.
pub(crate) struct Process {
    child: Child,
    log: Arc<Mutex<String>>,
}

impl Process {
    pub(crate) fn start(mut command: Command) -> Process {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let (lines, kept) = (BufReader::new(child.stderr.take().unwrap()), Arc::clone(&log));
        thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let mut log = kept.lock().unwrap();
                log.push_str(&line);
                log.push('\n');
            }
        });
        Process { child, log }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until the log has a line with this text.
    pub(crate) fn await_line(&self, text: &str) -> String {
        let find = || self.log().lines().find(|line| line.contains(text)).map(str::to_owned);
        eventually(&format!("the line {text:?} in the log"), || find().is_some(), || self.log());
        find().unwrap()
    }

    pub(crate) fn signal(&self, which: Signal) {
        signal(self.pid(), which);
    }

    /// Waits until the process has ended by itself.
    pub(crate) fn await_end(&mut self) -> ExitStatus {
        let log = Arc::clone(&self.log);
        let mut status = None;
        eventually(
            "the end of the process",
            || {
                status = self.child.try_wait().unwrap();
                status.is_some()
            },
            || log.lock().unwrap().clone(),
        );
        status.unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server on free ports of this host.
pub(crate) struct Server {
    pub(crate) process: Process,
    pub(crate) http: SocketAddr,
    pub(crate) grpc: SocketAddr,
    metrics: SocketAddr,
    pub(crate) workers: SocketAddr,
}

impl Server {
    /// Starts a server and waits until it listens.
    pub(crate) fn launch(models: &Models, arguments: &[&str]) -> Server {
        let repository = models.path();
        let cache = models.beside().join("cache");
        let mut command =
            downbeat(&["serve", "--address", "127.0.0.1", "--http-port", "0", "--grpc-port", "0"]);
        command.args(["--metrics-port", "0"]).env("DOWNBEAT_DRAIN_S", "0");
        // A stall of the machine that runs the tests must not decide them.
        command.env("DOWNBEAT_DEFAULT_SLO_MS", "20000");
        // All tests hold for a scheduler on one thread and on several.
        if let Ok(threads) = std::env::var("SCHEDULER_THREADS") {
            command.env("DOWNBEAT_SCHEDULER_THREADS", threads);
        }
        command.arg("--model-repository").arg(&repository).arg("--cache-dir").arg(cache);
        command.args(arguments).current_dir(models.beside());
        let process = Process::start(command);
        let line = process.await_line("HTTP on ");
        let address = |what: &str| {
            let (_, rest) = line.split_once(&format!("{what} on ")).unwrap();
            rest.split([',', ' ']).next().unwrap().parse().unwrap()
        };
        let (http, grpc) = (address("HTTP"), address("gRPC"));
        let (metrics, workers) = (address("metrics"), address("workers"));
        Server { process, http, grpc, metrics, workers }
    }

    /// Starts a server and waits until it is ready.
    pub(crate) fn start(models: &Models, arguments: &[&str]) -> Server {
        let server = Server::launch(models, arguments);
        server.await_ready();
        server
    }

    pub(crate) fn is_ready(&self) -> bool {
        client::get(self.http, "/v2/health/ready").status == 200
    }

    pub(crate) fn await_ready(&self) {
        self.await_that("the server is ready", || self.is_ready());
    }

    pub(crate) fn await_that(&self, what: &str, condition: impl FnMut() -> bool) {
        eventually(what, condition, || self.process.log());
    }

    pub(crate) fn infer(&self, model: &str) -> Answer {
        client::infer(self.http, model)
    }

    pub(crate) fn load(&self, model: &str) -> Answer {
        client::post(self.http, &format!("/v2/repository/models/{model}/load"), "{}")
    }

    pub(crate) fn unload(&self, model: &str) -> Answer {
        client::post(self.http, &format!("/v2/repository/models/{model}/unload"), "{}")
    }

    /// State and reason of a model in the index.
    pub(crate) fn state(&self, model: &str) -> (String, String) {
        let index = client::post(self.http, "/v2/repository/index", "{}").json();
        let entries = index.as_array().unwrap();
        let entry = entries.iter().find(|entry| entry["name"] == model).unwrap_or_else(|| panic!("{index}"));
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        (text("state"), text("reason"))
    }

    /// The sum of all values of a metric whose labels hold all of these.
    pub(crate) fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        let text = client::get(self.metrics, "/metrics").body;
        let of_metric = |line: &&str| {
            line.starts_with(name)
                && line[name.len()..].starts_with(['{', ' '])
                && labels.iter().all(|label| line.contains(label))
        };
        let value = |line: &str| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
        text.lines().filter(of_metric).map(value).sum()
    }

    /// The worker processes that the server started and that live.
    pub(crate) fn children(&self) -> Vec<u32> {
        children_of(self.process.pid())
    }
}

/// Waits until something is so. The limit is that of a hang; `told` is what helps to see why it never came.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool, told: impl Fn() -> String) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < HANG, "waited in vain: {what}\n{}", told());
        thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn signal(pid: u32, which: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    // It may have ended by itself.
    let _ = kill_process(pid, which);
}

fn children_of(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers.filter(|&pid| status_of(pid).is_some_and(|(state, of)| of == parent && state != "Z")).collect()
}

pub(crate) fn is_alive(pid: u32) -> bool {
    status_of(pid).is_some_and(|(state, _)| state != "Z")
}

/// State and parent of a process.
fn status_of(pid: u32) -> Option<(String, u32)> {
    let text = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    // The name, in parentheses, may hold anything.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}
