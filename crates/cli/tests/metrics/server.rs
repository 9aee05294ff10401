//! A server with emulated devices, as a process of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;

use tempfile::TempDir;

/// An emulated model: l(b) = alpha * b + beta, with an input `x` and an output `y` of four numbers a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EmulatedModel {
    pub(crate) name: &'static str,
    pub(crate) alpha_ms: f64,
    pub(crate) beta_ms: f64,
    pub(crate) max_batch: u32,
    pub(crate) slo_ms: f64,
}

impl EmulatedModel {
    fn config(&self) -> String {
        let EmulatedModel { alpha_ms, beta_ms, max_batch, slo_ms, .. } = self;
        let parameter = |(key, value): (&str, &f64)| {
            format!("parameters {{ key: \"{key}\" value {{ string_value: \"{value}\" }} }}\n")
        };
        let parameters: String =
            [("alpha_ms", alpha_ms), ("beta_ms", beta_ms), ("slo_ms", slo_ms)].map(parameter).concat();
        format!(
            "backend: \"emulated\"\nmax_batch_size: {max_batch}\n{parameters}\
             input [{{ name: \"x\" data_type: TYPE_FP32 dims: [4] }}]\n\
             output [{{ name: \"y\" data_type: TYPE_FP32 dims: [4] }}]\n"
        )
    }
}

/// A running server; stopped when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    process: Child,
    _repository: TempDir,
    pub(crate) http: SocketAddr,
    #[allow(dead_code, reason = "not every user speaks gRPC")]
    pub(crate) grpc: SocketAddr,
    #[allow(dead_code, reason = "not every user reads metrics")]
    pub(crate) metrics: SocketAddr,
}

impl Server {
    /// Starts a server on free ports and waits until it serves these models.
    pub(crate) fn start(models: &[EmulatedModel], arguments: &[&str]) -> Server {
        let repository = tempfile::tempdir().expect("a folder");
        for model in models {
            let folder = repository.path().join(model.name);
            std::fs::create_dir(&folder).expect("a folder");
            std::fs::write(folder.join("config.pbtxt"), model.config()).expect("a file");
        }
        let mut process = Command::new(env!("CARGO_BIN_EXE_downbeat"))
            .current_dir(repository.path())
            .args(["serve", "--address", "127.0.0.1", "--http-port", "0", "--grpc-port", "0"])
            .args(["--metrics-port", "0", "--drain-s", "0", "--model-repository", "."])
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .expect("downbeat runs");
        let mut lines = BufReader::new(process.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
        let mut log = String::new();
        let mut addresses = None;
        for line in lines.by_ref() {
            log.push_str(&line);
            log.push('\n');
            if line.contains(" HTTP on ") {
                let address = |what| after(&line, what).and_then(|address| address.parse().ok());
                addresses = Some(["HTTP on ", "gRPC on ", "metrics on "].map(address));
            }
            if line.contains(" serving ") {
                break;
            }
        }
        let serving = format!("serving {0} of {0} models", models.len());
        assert!(log.contains(&serving), "{log}");
        let Some([Some(http), Some(grpc), Some(metrics)]) = addresses else { panic!("no addresses: {log}") };
        // A pipe that nobody reads would hold the server up.
        thread::spawn(move || lines.for_each(drop));
        Server { process, _repository: repository, http, grpc, metrics }
    }

    /// The number of the server's process.
    #[allow(dead_code, reason = "not every user looks at the process")]
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Sends an HTTP request and gives the status and the body of the answer.
    #[allow(dead_code, reason = "not every user sends single requests")]
    pub(crate) fn ask(address: SocketAddr, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(address).expect("a connection");
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        (status, body.to_owned())
    }
}

fn after<'a>(line: &'a str, what: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(what)?;
    rest.split([',', ' ']).next()
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGTERM, so that it ends its workers.
        let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        let _ = self.process.wait();
    }
}
