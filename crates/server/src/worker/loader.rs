//! The thread that loads models.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;

use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender};

use super::device::Task;
use super::engines::Engines;
use super::{FromWorker, Line};
use crate::files::Stamp;
use crate::link::message::{self, Fetch, Load, Loaded};

/// What the loader is to do, one after the other.
#[allow(clippy::large_enum_variant, reason = "orders to load are few, and moved once or twice")]
pub(super) enum Order {
    /// Load a model on all devices.
    Load(Load),
    /// Forget a model.
    Unload(u32),
    /// A piece of a file that was asked for.
    Piece(Fetch, Bytes),
}

/// Why a model is not loaded.
enum Trouble {
    /// This file is not what it was when the server noted it, or gone.
    Changed(String),
    Other(String),
}

impl From<String> for Trouble {
    fn from(trouble: String) -> Trouble {
        Trouble::Other(trouble)
    }
}

/// Whether the files of a model on this host are those that the server noted.
fn check(load: &Load) -> Result<(), Trouble> {
    let folder = Path::new(&load.path).parent().unwrap_or(Path::new(""));
    for message::File { name, bytes, modified_ns } in &load.files {
        let path = folder.join(name);
        let stamp = fs::metadata(&path).map(|metadata| Stamp::of(&metadata)).ok();
        if stamp != Some(Stamp { bytes: *bytes, modified_ns: *modified_ns }) {
            return Err(Trouble::Changed(path.display().to_string()));
        }
    }
    Ok(())
}

/// The thread that loads models.
pub(super) struct Loader {
    engines: Engines,
    devices: Vec<Sender<Task>>,
    line: Line,
    /// Whether the server's files are at hand.
    is_local: bool,
    /// Came while a file was fetched.
    later: std::collections::VecDeque<Order>,
}

impl Loader {
    pub(super) fn start(
        engines: Engines,
        devices: Vec<Sender<Task>>,
        line: Line,
        is_local: bool,
    ) -> io::Result<Sender<Order>> {
        let (orders, queue) = crossbeam_channel::unbounded();
        let loader = Loader { engines, devices, line, is_local, later: std::collections::VecDeque::new() };
        thread::Builder::new().name("loader".to_owned()).spawn(move || loader.run(&queue))?;
        Ok(orders)
    }

    fn run(mut self, queue: &Receiver<Order>) {
        while let Some(order) = self.later.pop_front().or_else(|| queue.recv().ok()) {
            match order {
                Order::Load(load) => {
                    let (trouble, changed) = match self.load(&load, queue) {
                        Ok(()) => (String::new(), false),
                        Err(Trouble::Changed(file)) => {
                            (format!("{file} has changed since the model was loaded"), true)
                        }
                        Err(Trouble::Other(trouble)) => (trouble, false),
                    };
                    self.line.say(FromWorker::Loaded(Loaded { instance: load.instance, trouble, changed }));
                }
                Order::Unload(instance) => {
                    for device in &self.devices {
                        let _ = device.send(Task::Drop(instance));
                    }
                }
                // Of a file that was given up.
                Order::Piece(..) => {}
            }
        }
    }

    fn load(&mut self, load: &Load, queue: &Receiver<Order>) -> Result<(), Trouble> {
        // Kept until the model is loaded; the engine needs no file afterwards.
        let fetched;
        let path = if self.is_local || load.files.is_empty() {
            check(load)?;
            PathBuf::from(&load.path)
        } else {
            fetched =
                tempfile::tempdir().map_err(|error| format!("no room for the model's files: {error}"))?;
            self.fetch_all(load, fetched.path(), queue)?
        };
        for device in &self.devices {
            let model = self.engines.load(load, &path)?;
            // Again: it may have been written just now.
            if self.is_local {
                check(load)?;
            }
            let _ = device.send(Task::Install(load.instance, model));
        }
        Ok(())
    }

    /// Brings a model's files into a folder; the model's own is the first.
    fn fetch_all(&mut self, load: &Load, folder: &Path, queue: &Receiver<Order>) -> Result<PathBuf, Trouble> {
        for (index, message::File { name, bytes, .. }) in load.files.iter().enumerate() {
            let relative = Path::new(name);
            let stays_inside =
                relative.components().all(|part| matches!(part, std::path::Component::Normal(_)));
            if !stays_inside {
                return Err(format!("the server names a file outside of the model: {name}").into());
            }
            let failed = |error: io::Error| format!("{name} cannot be stored: {error}");
            let path = folder.join(relative);
            fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(failed)?;
            let mut file = File::create(&path).map_err(failed)?;
            let mut offset = 0;
            while offset < *bytes {
                let fetch = Fetch { instance: load.instance, file: index as u32, offset };
                let piece = self.fetch(&fetch, queue)?;
                if piece.is_empty() {
                    return Err(Trouble::Changed(name.clone()));
                }
                file.write_all(&piece).map_err(failed)?;
                offset += piece.len() as u64;
            }
        }
        let model = load.files.first().map(|file| folder.join(&file.name));
        model.ok_or_else(|| "the model has no files".to_owned().into())
    }

    fn fetch(&mut self, fetch: &Fetch, queue: &Receiver<Order>) -> Result<Bytes, String> {
        self.line.say(FromWorker::Fetch(*fetch));
        loop {
            match queue.recv() {
                Ok(Order::Piece(of, piece)) if of == *fetch => return Ok(piece),
                Ok(Order::Piece(..)) => {}
                Ok(order) => self.later.push_back(order),
                Err(_) => return Err("the connection to the server ended".to_owned()),
            }
        }
    }
}
