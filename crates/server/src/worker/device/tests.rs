use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use downbeat_engine::Model;

use super::*;
use crate::link::message::ToServer;
use crate::link::read;

/// A model that takes a while, and counts its runs.
struct Slow {
    takes: Duration,
    runs: Arc<AtomicU32>,
}

impl Model for Slow {
    fn run(&mut self, _: &[Tensor], _: u32) -> Result<Vec<Tensor>, EngineError> {
        thread::sleep(self.takes);
        self.runs.fetch_add(1, Ordering::Relaxed);
        Ok(Vec::new())
    }
}

/// A model that runs when it is let.
struct Gated(Receiver<()>);

impl Model for Gated {
    fn run(&mut self, _: &[Tensor], _: u32) -> Result<Vec<Tensor>, EngineError> {
        self.0.recv().map_err(|error| EngineError(error.to_string()))?;
        Ok(Vec::new())
    }
}

/// A device, and the server's end of its line.
struct Stage {
    device: Sender<Task>,
    server: TcpStream,
}

impl Stage {
    /// With a quick model that is 1.
    fn new() -> Stage {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let line = Line::new(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        let (server, _) = listener.accept().unwrap();
        server.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let stage = Stage { device: DeviceThread::start(0, line).unwrap(), server };
        stage.install(1, Duration::ZERO, 1);
        stage
    }

    fn install(&self, instance: u32, takes: Duration, max_batch: u32) -> Arc<AtomicU32> {
        let runs = Arc::new(AtomicU32::new(0));
        let model = Loaded::of(Slow { takes, runs: Arc::clone(&runs) }, max_batch, false);
        self.device.send(Task::Install(instance, model)).unwrap();
        runs
    }

    fn run_quick(&self) {
        let run = Run { instance: 1, rows: 1, ..Run::default() };
        self.device.send(Task::Run { run, inputs: Some(Vec::new()) }).unwrap();
    }

    fn measure(&self, instance: u32, run_max_ms: u64) {
        let (latency_max_ns, run_max_ns) = (u64::MAX, run_max_ms * 1_000_000);
        let measure = Measure { instance, latency_max_ns, run_max_ns, open_size: 1 };
        self.device.send(Task::Measure(measure)).unwrap();
    }

    fn heard(&mut self) -> FromWorker {
        read::<ToServer>(&mut self.server, 0).unwrap().message.body.unwrap()
    }
}

#[test]
fn while_others_are_served_a_slow_model_is_run_once() {
    let mut stage = Stage::new();
    let runs = stage.install(2, Duration::from_millis(50), 8);
    stage.run_quick();
    stage.measure(2, 5);
    assert!(matches!(stage.heard(), FromWorker::Finished(_)));
    let FromWorker::Measured(measured) = stage.heard() else { panic!("it says something else") };
    let sizes: Vec<u32> = measured.points.iter().map(|point| point.batch).collect();
    assert_eq!((sizes, measured.curtailed, measured.trouble.as_str()), (vec![1], true, ""));
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[test]
fn while_nobody_else_is_served_every_size_is_measured() {
    let mut stage = Stage::new();
    stage.install(2, Duration::from_millis(2), 8);
    stage.measure(2, 1);
    let FromWorker::Measured(measured) = stage.heard() else { panic!("it says something else") };
    let sizes: Vec<u32> = measured.points.iter().map(|point| point.batch).collect();
    assert_eq!((sizes, measured.curtailed), (vec![1, 2, 4, 8], false));
}

#[test]
fn others_run_between_the_runs_that_make_a_model_ready() {
    let mut stage = Stage::new();
    let (gate, gated) = crossbeam_channel::unbounded();
    stage.device.send(Task::Install(2, Loaded::of(Gated(gated), 8, true))).unwrap();
    stage.run_quick();
    gate.send(()).unwrap();
    // With sizes 2, 4 and 8 still to come.
    assert!(matches!(stage.heard(), FromWorker::Finished(_)));
}
