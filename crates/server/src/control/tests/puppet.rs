//! A worker that does what a test says.

use std::net::{SocketAddr, TcpStream};

use super::{HANG, Stage, ended};
use crate::link::message::{
    Device, Finished, FromServer, FromWorker, Hello, Load, Loaded, Measured, Part, Point, ToServer, ToWorker,
    VERSION,
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

    async fn greet(address: SocketAddr, change: impl FnOnce(&mut Hello), check: impl FnOnce(&str)) -> Puppet {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(HANG)).unwrap();
        let mut puppet = Puppet { stream };
        let device = Device { name: "d".to_owned(), class: "d".to_owned(), emulated: false };
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

    fn say(&self, body: FromWorker) {
        let payload: &[&[u8]] = if matches!(body, FromWorker::Finished(_)) { &[&[9]] } else { &[] };
        write(&mut &self.stream, &ToServer { body: Some(body) }, payload.iter().copied()).unwrap();
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
        self.say(FromWorker::Loaded(Loaded { instance, trouble: trouble.to_owned() }));
    }

    /// Is told to measure a model, and says that it takes a millisecond.
    pub(super) async fn measure(&mut self) {
        match self.next().await {
            FromServer::Measure(measure) => self.has_measured(measure.instance),
            other => panic!("not an order to measure: {other:?}"),
        }
    }

    pub(super) fn has_measured(&self, instance: u32) {
        let points = vec![Point { batch: 1, latency_ms: 1.0 }];
        self.say(FromWorker::Measured(Measured { instance, points, trouble: String::new() }));
    }

    /// Is sent a batch of one request, and runs it.
    pub(super) async fn run(&mut self) {
        let run = loop {
            match self.next().await {
                FromServer::Run(run) => break run,
                FromServer::Unload(_) => {}
                other => panic!("not a batch: {other:?}"),
            }
        };
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
