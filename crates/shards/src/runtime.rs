//! Shards and matchmakers on threads.

use std::ops::Deref;
use std::thread::{self, JoinHandle};

use downbeat_sched::Rule;

use crate::assembly::Assembly;
use crate::clock::Clock;
use crate::control::Control;
use crate::host::Host;
use crate::pin;
use crate::rhythm::Rhythm;
use crate::settings::{RuntimeError, Settings};

/// A scheduler on threads: models on shards, devices with matchmakers. It is told which there are by its [`Control`].
///
/// The same [`Shard`](downbeat_sched::Shard) and [`Matchmaker`](downbeat_sched::Matchmaker) as in
/// [`Scheduler`](downbeat_sched::Scheduler), which has one of each on one thread. Requests never touch a matchmaker;
/// candidates go there through a mailbox for each model in which the latest wins, grants come back through bounded
/// queues.
#[derive(Debug)]
pub struct Runtime<H> {
    control: Control,
    shards: Vec<JoinHandle<H>>,
    matchmakers: Vec<JoinHandle<()>>,
}

impl<H> Deref for Runtime<H> {
    type Target = Control;

    fn deref(&self) -> &Control {
        &self.control
    }
}

impl<H: Host> Runtime<H> {
    /// Starts a shard for each host, and a matchmaker for each domain. Nothing is there yet: no models, no devices.
    pub fn start(rule: Rule, settings: &Settings, clock: Clock, hosts: Vec<H>) -> Result<Self, RuntimeError> {
        Self::start_with(rule, settings, clock, hosts.len(), |_| hosts)
    }

    /// The same where the hosts are to know the control.
    pub fn start_with(
        rule: Rule,
        settings: &Settings,
        clock: Clock,
        shards: usize,
        hosts: impl FnOnce(&Control) -> Vec<H>,
    ) -> Result<Self, RuntimeError> {
        let assembly = Assembly::new(rule, settings, shards, hosts)?;
        let control = assembly.control.clone();
        let mut processors = pin::processors(settings.pin);
        let (mut shards, mut matchmakers) = (Vec::new(), Vec::new());
        let rhythm = |bell| {
            let settings = settings.clone();
            move || Rhythm::new(clock, bell, &settings)
        };
        for (domain, (part, bell)) in assembly.matchmakers.into_iter().enumerate() {
            let (name, rhythm) = (format!("match-{domain}"), rhythm(bell));
            matchmakers.push(spawn(settings, name, processors.next(), || part.run(rhythm()))?);
        }
        for (index, (desk, bell)) in assembly.desks.into_iter().enumerate() {
            let (name, rhythm) = (format!("shard-{index}"), rhythm(bell));
            shards.push(spawn(settings, name, processors.next(), || desk.run(rhythm()))?);
        }
        Ok(Runtime { control, shards, matchmakers })
    }

    /// Stops all threads and gives the hosts back. What waits or runs is left as it is.
    pub fn stop(self) -> Result<Vec<H>, RuntimeError> {
        self.control.stop_shards();
        let mut hosts = Vec::new();
        let mut panicked = false;
        for thread in self.shards {
            match thread.join() {
                Ok(host) => hosts.push(host),
                Err(_) => panicked = true,
            }
        }
        self.control.stop_matchmakers();
        for thread in self.matchmakers {
            panicked |= thread.join().is_err();
        }
        if panicked { Err(RuntimeError::Panicked) } else { Ok(hosts) }
    }
}

fn spawn<T: Send + 'static>(
    settings: &Settings,
    name: String,
    processor: Option<usize>,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, RuntimeError> {
    let alarm = Alarm(settings.on_panic);
    let run = move || {
        let _alarm = alarm;
        pin::bind(processor);
        run()
    };
    Ok(thread::Builder::new().name(name).spawn(run)?)
}

/// Says so when its thread panics.
struct Alarm(Option<fn(&str)>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if thread::panicking()
            && let Some(on_panic) = self.0
        {
            on_panic(thread::current().name().unwrap_or("?"));
        }
    }
}
