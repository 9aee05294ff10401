//! A worker that does what a test says.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};

use super::{HANG, Stage, ended};
use crate::link::message::{
    Alive, Device, Finished, FromServer, FromWorker, Hello, Load, Loaded, Measured, Part, Point, Run,
    ToServer, ToWorker, VERSION,
};
use crate::link::{read, write};

pub(super) const TOKEN: &str = "secret";

/// A connection to the server, with one device that has no profile.
pub(super) struct Puppet {
    stream: TcpStream,
}

impl Puppet {
    /// Connects and is taken in.
    pub(super) async fn connect(address: SocketAddr, refusal: &str) -> Puppet {
        Puppet::greet(address, |_| {}, |said| assert_eq!(said, refusal)).await
    }

    /// Says something for which it is not taken in.
    pub(super) async fn refused(address: SocketAddr, change: impl FnOnce(&mut Hello)) {
        Puppet::greet(address, change, |said| assert_ne!(said, "")).await;
    }

    /// Connects with a device of another class than all others have.
    pub(super) async fn of_class(address: SocketAddr, class: &str) -> Puppet {
        let change = |hello: &mut Hello| class.clone_into(&mut hello.devices[0].class);
        Puppet::greet(address, change, |said| assert_eq!(said, "")).await
    }

    /// Connects with a device in a sub-cluster.
    pub(super) async fn of_subcluster(address: SocketAddr, subcluster: &str) -> Puppet {
        let change = |hello: &mut Hello| subcluster.clone_into(&mut hello.devices[0].subcluster);
        Puppet::greet(address, change, |said| assert_eq!(said, "")).await
    }

    /// Connects with a device that only pretends.
    pub(super) async fn emulated(address: SocketAddr) -> Puppet {
        Puppet::greet(address, |hello| hello.devices[0].emulated = true, |said| assert_eq!(said, "")).await
    }

    async fn greet(address: SocketAddr, change: impl FnOnce(&mut Hello), check: impl FnOnce(&str)) -> Puppet {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(HANG)).unwrap();
        let mut puppet = Puppet { stream };
        let device = Device { name: "d".to_owned(), class: "d".to_owned(), ..Device::default() };
        let mut hello = Hello {
            version: VERSION,
            token: TOKEN.to_owned(),
            name: "puppet".to_owned(),
            devices: vec![device],
            ..Hello::default()
        };
        change(&mut hello);
        puppet.say(FromWorker::Hello(hello));
        match puppet.next().await {
            FromServer::Welcome(welcome) => check(&welcome.refusal),
            other => panic!("{other:?}"),
        }
        puppet
    }

    /// Says ten times a second that it is there, until told otherwise.
    pub(super) fn keep_alive(&self) -> tokio::task::JoinHandle<()> {
        let puppet = Puppet { stream: self.stream.try_clone().unwrap() };
        tokio::spawn(async move {
            loop {
                puppet.say(FromWorker::Alive(Alive {}));
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        })
    }

    pub(super) fn say(&self, body: FromWorker) {
        let payload: &[&[u8]] = if matches!(body, FromWorker::Finished(_)) { &[&[9]] } else { &[] };
        // In one piece: two tasks may have something to say.
        let mut frame = Vec::new();
        write(&mut frame, &ToServer { body: Some(body) }, payload.iter().copied()).unwrap();
        (&self.stream).write_all(&frame).unwrap();
    }

    /// What the server says next.
    pub(super) async fn next(&mut self) -> FromServer {
        let mut stream = self.stream.try_clone().unwrap();
        let read = tokio::task::spawn_blocking(move || read::<ToWorker>(&mut stream, 1 << 20));
        ended(read).await.unwrap().message.body.unwrap()
    }

    pub(super) async fn load_order(&mut self) -> Load {
        loop {
            match self.next().await {
                FromServer::Load(load) => return load,
                FromServer::Unload(_) => {}
                other => panic!("not an order to load: {other:?}"),
            }
        }
    }

    pub(super) fn has_loaded(&self, instance: u32) {
        self.cannot_load(instance, "");
    }

    pub(super) fn cannot_load(&self, instance: u32, trouble: &str) {
        self.say(FromWorker::Loaded(Loaded { instance, trouble: trouble.to_owned(), changed: false }));
    }

    /// Says that the files of a model are not what they were.
    pub(super) fn finds_changed(&self, instance: u32) {
        let trouble = "model.onnx has changed".to_owned();
        self.say(FromWorker::Loaded(Loaded { instance, trouble, changed: true }));
    }

    /// Is told to measure a model, and says that it takes a millisecond.
    pub(super) async fn measure(&mut self) {
        loop {
            match self.next().await {
                FromServer::Measure(measure) => return self.has_measured(measure.instance),
                FromServer::Unload(_) => {}
                other => panic!("not an order to measure: {other:?}"),
            }
        }
    }

    pub(super) fn has_measured(&self, instance: u32) {
        let points = vec![Point { batch: 1, latency_ms: 1.0 }];
        self.say(FromWorker::Measured(Measured { instance, points, ..Measured::default() }));
    }

    /// Is sent a batch.
    pub(super) async fn batch(&mut self) -> Run {
        loop {
            match self.next().await {
                FromServer::Run(run) => return run,
                FromServer::Unload(_) => {}
                other => panic!("not a batch: {other:?}"),
            }
        }
    }

    /// Is sent a batch of one request, and runs it.
    pub(super) async fn run(&mut self) {
        let run = self.batch().await;
        self.has_run(&run);
    }

    /// Has run a batch of one request.
    pub(super) fn has_run(&self, run: &Run) {
        let output = Part { name: "y".to_owned(), datatype: "UINT8".to_owned(), shape: vec![1, 1], bytes: 1 };
        let finished =
            Finished { batch: run.batch, outputs: vec![output], busy_ns: 1_000_000, ..Finished::default() };
        self.say(FromWorker::Finished(finished));
    }

    /// Loads and measures these models as the only worker.
    pub(super) async fn serve(&mut self, stage: &Stage, models: &[&'static str]) {
        for model in models {
            let load = stage.load(model);
            let order = self.load_order().await;
            self.has_loaded(order.instance);
            self.measure().await;
            ended(load).await.unwrap();
        }
        stage.await_devices(1).await;
    }
}
