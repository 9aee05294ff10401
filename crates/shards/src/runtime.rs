//! Shards and matchmakers, each on a thread, put together.

use std::io;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use downbeat_sched::{
    ClassId, Delays, GpuId, ID_LIMIT, LatencyProfile, Matchmaker, ModelId, ModelSpec, Policy, Pressure,
    Shard, Span, Time,
};

use crate::balance::{self, Placed};
use crate::bell::Bell;
use crate::board::Board;
use crate::clock::Clock;
use crate::desk::{Colleague, Command, Desk};
use crate::host::{DomainId, Host};
use crate::matchmaking::{self, Link, Matchmaking};
use crate::pin;
use crate::posting::{CLASSES_PER_MODEL, Cells};
use crate::rhythm::Rhythm;
use crate::ring::ring;
use crate::seat::{Seat, Wires};
use crate::sync::Arc;

/// How a [`Runtime`] is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What a start costs before the device can begin.
    pub delays: Delays,
    /// Matchmakers, each with devices of its own.
    pub domains: u16,
    /// Models have numbers below this. Each takes half a kilobyte from the start.
    pub models: u32,
    /// Devices should have numbers below this; room is made for them from the start.
    pub gpus: u32,
    /// Threads never sleep: they look for work all the time, each on a processor of its own.
    pub spin: bool,
    /// Every thread is bound to a processor of its own, as long as there are enough.
    pub pin: bool,
    /// How long before its window opens the matchmaker must know of a batch.
    pub notice: Span,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            delays: Delays::default(),
            domains: 1,
            models: 16_384,
            gpus: 65_536,
            spin: false,
            pin: false,
            notice: Span::from_micros(200),
        }
    }
}

/// Orders or reports on their way between one shard and one matchmaker.
const ON_THE_WAY: usize = 8_192;

/// What cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] io::Error),
    /// No shards, no domains, or too many of either.
    #[error(
        "{shards} shards and {domains} domains: there must be at least one of each, and at most {MOST_THREADS}"
    )]
    Threads {
        /// Shards asked for.
        shards: usize,
        /// Domains asked for.
        domains: u16,
    },
    /// A model's number is too large.
    #[error("model {} is past the {models} that there is room for; raise the setting", model.0)]
    Model {
        /// The model.
        model: ModelId,
        /// The room there is.
        models: u32,
    },
    /// There is no such domain.
    #[error("there is no domain {}; there are {domains}, numbered from 0", domain.0)]
    Domain {
        /// The domain asked for.
        domain: DomainId,
        /// How many there are.
        domains: u16,
    },
    /// A model is deployed on too many classes.
    #[error(
        "a model can be deployed on at most {CLASSES_PER_MODEL} classes of devices of its domain (is on {0})"
    )]
    Classes(usize),
    /// A thread has panicked; what it knew is lost.
    #[error("a thread of the scheduler has panicked")]
    Panicked,
}

/// More threads than this are a mistake.
pub const MOST_THREADS: usize = 1_024;

/// A scheduler on threads: models on shards, devices with matchmakers.
///
/// The same [`Shard`] and [`Matchmaker`] as in [`Scheduler`](downbeat_sched::Scheduler), which has one of each on one thread. Requests
/// never touch a matchmaker; candidates go there through a mailbox for each model in which the latest wins, grants come
/// back through bounded queues.
#[derive(Debug)]
pub struct Runtime<P: Policy, H> {
    clock: Clock,
    desks: Vec<(Waker<P>, JoinHandle<H>)>,
    matchmakers: Vec<Domain>,
    cells: Arc<Cells>,
    /// By model: the shard it was put on, and the classes it is deployed on.
    homes: Vec<Option<ModelHome>>,
}

#[derive(Clone, Debug)]
struct ModelHome {
    shard: u16,
    classes: Vec<ClassId>,
    /// What was expected when it was added; until more is known.
    expected: f64,
    /// It was moved there, and may be on its way.
    moving: bool,
}

#[derive(Debug)]
struct Domain {
    commands: Sender<matchmaking::Command>,
    bell: Arc<Bell>,
    board: Arc<Board>,
    thread: JoinHandle<()>,
}

/// Wakes a shard's thread after something was put where its host will look.
pub struct Waker<P: Policy>(Colleague<P>);

impl<P: Policy> Clone for Waker<P> {
    fn clone(&self) -> Self {
        Waker(self.0.clone())
    }
}

impl<P: Policy> std::fmt::Debug for Waker<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Waker")
    }
}

impl<P: Policy> Waker<P> {
    /// Wakes the thread, if it sleeps.
    pub fn wake(&self) {
        self.0.bell.ring();
    }
}

/// Tells which shard a model is on.
#[derive(Clone, Debug)]
pub struct Router(Arc<Cells>);

impl Router {
    /// The shard whose host requests for a model should go to; `None` where there is no such model. Those that come to another
    /// are passed on.
    pub fn shard_of(&self, model: ModelId) -> Option<usize> {
        self.0.get(model)?.route().map(usize::from)
    }
}

impl<P: Policy + Send + 'static, H: Host> Runtime<P, H> {
    /// Starts a shard for each host, and a matchmaker for each domain. Nothing is there yet: no models, no devices.
    pub fn start(policy: &P, settings: &Settings, clock: Clock, hosts: Vec<H>) -> Result<Self, RuntimeError>
    where
        P::Drop: Send,
        P::Order: Send,
        P::Guard: Send,
        <P::Order as downbeat_sched::GpuOrder>::Idle: Send,
    {
        let shards = hosts.len();
        let domains = settings.domains;
        if shards == 0 || domains == 0 || shards.max(domains.into()) > MOST_THREADS {
            return Err(RuntimeError::Threads { shards, domains });
        }
        let cells = Arc::new(Cells::new(settings.models.min(ID_LIMIT)));
        let mut processors = pin::processors(settings.pin);
        let mut desks: Vec<_> = (0..shards).map(|_| mpsc::channel()).map(Prepared::new).collect();
        let mut matchmakers = Vec::new();
        for domain in (0..domains).map(DomainId) {
            let bell = Arc::new(Bell::default());
            let board = Arc::new(Board::new());
            let mut links = Vec::new();
            for (index, desk) in (0u16..).zip(&mut desks) {
                let (orders_in, orders_out) = ring(ON_THE_WAY);
                let (reports_in, reports_out) = ring(ON_THE_WAY);
                let (dirty_in, dirty_out) = ring(cells.len().max(1) as usize);
                links.push(Link {
                    orders: orders_in,
                    reports: reports_out,
                    dirty: dirty_out,
                    bell: Arc::clone(&desk.colleague.bell),
                    held: std::collections::VecDeque::new(),
                    news: false,
                });
                let wires = Wires {
                    orders: orders_out,
                    reports: reports_in,
                    dirty: dirty_in,
                    bell: Arc::clone(&bell),
                    board: Arc::clone(&board),
                    cells: Arc::clone(&cells),
                };
                let mut shard = Shard::new(settings.delays, index.into(), shards as u32);
                shard.be_brief(settings.notice);
                desk.seats.push(Seat::new(domain, index, shard, policy.clone(), wires));
            }
            let mut matchmaker = Matchmaker::new(policy.clone(), settings.delays);
            matchmaker.reserve(cells.len() as usize, settings.gpus.min(ID_LIMIT) as usize);
            let (commands, received) = mpsc::channel();
            let matchmaking =
                Matchmaking::new(matchmaker, links, Arc::clone(&cells), Arc::clone(&board), received);
            let (own_bell, spin, processor) = (Arc::clone(&bell), settings.spin, processors.next());
            let thread = thread::Builder::new().name(format!("match-{}", domain.0)).spawn(move || {
                pin::bind(processor);
                matchmaking.run(Rhythm::new(clock, own_bell, spin));
            })?;
            matchmakers.push(Domain { commands, bell, board, thread });
        }
        let colleagues: Vec<_> = desks.iter().map(|desk| desk.colleague.clone()).collect();
        let mut running = Vec::new();
        for (index, (host, desk)) in hosts.into_iter().zip(desks).enumerate() {
            let Prepared { colleague, commands, seats } = desk;
            let desk = Desk::new(host, seats, Arc::clone(&cells), commands, colleagues.clone());
            let (bell, spin, processor) = (Arc::clone(&colleague.bell), settings.spin, processors.next());
            let thread = thread::Builder::new().name(format!("shard-{index}")).spawn(move || {
                pin::bind(processor);
                desk.run(Rhythm::new(clock, bell, spin))
            })?;
            running.push((Waker(colleague), thread));
        }
        let homes = vec![None; cells.len() as usize];
        Ok(Runtime { clock, desks: running, matchmakers, cells, homes })
    }

    /// The clock by which the threads go.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// What wakes shard number `shard`.
    pub fn waker(&self, shard: usize) -> Option<Waker<P>> {
        self.desks.get(shard).map(|(waker, _)| waker.clone())
    }

    /// The shard that a model is on, for who hands requests to hosts. A request that comes to another is passed on.
    pub fn shard_of(&self, model: ModelId) -> Option<usize> {
        self.cells.get(model)?.route().map(usize::from)
    }

    /// The same for other threads.
    pub fn router(&self) -> Router {
        Router(Arc::clone(&self.cells))
    }

    /// Adds a model of a domain, or gives it another specification. `expected` is how many rows a second are expected, or
    /// 0: by that it is put on the shard with the least to do. Returns the shard.
    pub fn add_model(
        &mut self,
        domain: DomainId,
        model: ModelId,
        spec: ModelSpec,
        expected: f64,
    ) -> Result<usize, RuntimeError> {
        let shard = self.shard_of(model).unwrap_or_else(|| self.least_loaded());
        self.add_model_on(domain, model, spec, expected, shard)?;
        Ok(shard)
    }

    /// The same on a shard that is known.
    pub(crate) fn add_model_on(
        &mut self,
        domain: DomainId,
        model: ModelId,
        spec: ModelSpec,
        expected: f64,
        shard: usize,
    ) -> Result<(), RuntimeError> {
        self.domain(domain)?;
        if model.0 >= self.cells.len() {
            return Err(RuntimeError::Model { model, models: self.cells.len() });
        }
        let classes: Vec<_> = spec.profiles.iter().map(|(class, _)| *class).collect();
        if classes.len() > CLASSES_PER_MODEL {
            return Err(RuntimeError::Classes(classes.len()));
        }
        self.await_move(model);
        let shard = shard.min(self.desks.len() - 1);
        self.homes[model.0 as usize] =
            Some(ModelHome { shard: shard as u16, classes, expected, moving: false });
        self.tell(shard, Command::Add { domain, model, spec: Box::new(spec) });
        // After the command, so that requests that are passed on come behind it.
        self.cells.of(model).set_route(Some(shard as u16));
        Ok(())
    }

    /// Removes a model; requests that wait are answered, what runs finishes.
    pub fn remove_model(&mut self, model: ModelId) {
        self.await_move(model);
        if let Some(home) = self.homes.get_mut(model.0 as usize).and_then(Option::take) {
            self.cells.of(model).set_route(None);
            self.tell(home.shard.into(), Command::Remove { model });
        }
    }

    /// Deploys a model on a class, or corrects its profile there.
    pub fn set_profile(
        &mut self,
        model: ModelId,
        class: ClassId,
        profile: LatencyProfile,
    ) -> Result<(), RuntimeError> {
        self.await_move(model);
        let Some(home) = self.homes.get_mut(model.0 as usize).and_then(Option::as_mut) else { return Ok(()) };
        if !home.classes.contains(&class) {
            if home.classes.len() >= CLASSES_PER_MODEL {
                return Err(RuntimeError::Classes(home.classes.len() + 1));
            }
            home.classes.push(class);
        }
        let shard = home.shard.into();
        self.tell(shard, Command::SetProfile { model, class, profile });
        Ok(())
    }

    /// Moves a model to another shard, with all that waits. Requests that come to the old one are passed on.
    pub fn move_model(&mut self, model: ModelId, to: usize) {
        let to = to.min(self.desks.len() - 1) as u16;
        self.await_move(model);
        if let Some(Some(home)) = self.homes.get_mut(model.0 as usize)
            && home.shard != to
        {
            let from = std::mem::replace(&mut home.shard, to);
            home.moving = true;
            self.cells.of(model).set_route(Some(to));
            self.tell(from.into(), Command::GiveAway { model, to });
        }
    }

    /// Moves models from shards that have come to have far more to do than others. Returns how many. To be called every
    /// second or so.
    pub fn rebalance(&mut self) -> usize {
        let mut placed = self.placed();
        let moves = balance::moves(&mut placed, self.desks.len() as u16);
        for &(model, to) in &moves {
            self.move_model(model, to.into());
        }
        moves.len()
    }

    /// A device is ready for work.
    pub fn join(&self, domain: DomainId, gpu: GpuId, class: ClassId) -> Result<(), RuntimeError> {
        self.tell_matchmaker(domain, matchmaking::Command::Join { gpu, class })
    }

    /// A device takes no more batches; what it runs or is just being sent, it finishes.
    pub fn leave(&self, domain: DomainId, gpu: GpuId) -> Result<(), RuntimeError> {
        self.tell_matchmaker(domain, matchmaking::Command::Leave { gpu })
    }

    /// A device is gone, with all it ran; its requests go back into their queues.
    pub fn fail(&self, domain: DomainId, gpu: GpuId) -> Result<(), RuntimeError> {
        self.tell_matchmaker(domain, matchmaking::Command::Fail { gpu })
    }

    /// A device will be done with all it was sent at another time than predicted.
    pub fn late(&self, domain: DomainId, gpu: GpuId, free_at: Time) -> Result<(), RuntimeError> {
        self.tell_matchmaker(domain, matchmaking::Command::Late { gpu, free_at })
    }

    /// How hard a class of a domain is pressed, as its matchmaker last said.
    pub fn pressure(&self, domain: DomainId, class: ClassId) -> Result<Pressure, RuntimeError> {
        Ok(self.domain(domain)?.board.pressure(class))
    }

    /// Stops all threads and gives the hosts back. What waits or runs is left as it is.
    pub fn stop(self) -> Result<Vec<H>, RuntimeError> {
        for (waker, _) in &self.desks {
            waker.0.tell(Command::Stop);
        }
        let mut hosts = Vec::new();
        let mut panicked = false;
        for (_, thread) in self.desks {
            match thread.join() {
                Ok(host) => hosts.push(host),
                Err(_) => panicked = true,
            }
        }
        for Domain { commands, bell, thread, .. } in self.matchmakers {
            // It only fails where the thread has ended already.
            let _ = commands.send(matchmaking::Command::Stop);
            bell.ring();
            panicked |= thread.join().is_err();
        }
        if panicked { Err(RuntimeError::Panicked) } else { Ok(hosts) }
    }

    /// Waits until a model that was moved is there: what it is told next must not overtake it. That takes no longer than a
    /// turn of two threads.
    fn await_move(&mut self, model: ModelId) {
        let Some(Some(home)) = self.homes.get_mut(model.0 as usize) else { return };
        if std::mem::take(&mut home.moving) {
            let stopped =
                |desks: &[(Waker<P>, JoinHandle<H>)]| desks.iter().any(|(_, desk)| desk.is_finished());
            while self.cells.of(model).home() != Some(home.shard) && !stopped(&self.desks) {
                thread::yield_now();
            }
        }
    }

    fn tell(&self, shard: usize, command: Command<P>) {
        self.desks[shard].0.0.tell(command);
    }

    fn tell_matchmaker(&self, domain: DomainId, command: matchmaking::Command) -> Result<(), RuntimeError> {
        let Domain { commands, bell, .. } = self.domain(domain)?;
        commands.send(command).map_err(|_| RuntimeError::Panicked)?;
        bell.ring();
        Ok(())
    }

    fn domain(&self, domain: DomainId) -> Result<&Domain, RuntimeError> {
        let domains = self.matchmakers.len() as u16;
        self.matchmakers.get(usize::from(domain.0)).ok_or(RuntimeError::Domain { domain, domains })
    }

    /// All models, where they are, and what comes for them.
    fn placed(&self) -> Vec<Placed> {
        let load = |model: ModelId, home: &ModelHome| match self.cells.of(model).lately() {
            0 => home.expected,
            lately => lately as f64,
        };
        (0..)
            .map(ModelId)
            .zip(&self.homes)
            .filter_map(|(model, home)| {
                let home = home.as_ref()?;
                Some(Placed { model, shard: home.shard, load: load(model, home) })
            })
            .collect()
    }

    /// The shard with the least load; of several, the one with the fewest models.
    fn least_loaded(&self) -> usize {
        let mut loads = vec![(0.0, 0); self.desks.len()];
        for home in self.homes.iter().flatten() {
            let (load, models) = &mut loads[usize::from(home.shard)];
            *load += home.expected;
            *models += 1;
        }
        let by_load = |a: &usize, b: &usize| {
            let (a, b): (&(f64, u32), &(f64, u32)) = (&loads[*a], &loads[*b]);
            a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
        };
        (0..loads.len()).min_by(by_load).unwrap_or(0)
    }
}

/// A shard's thread before it is started.
struct Prepared<P: Policy> {
    colleague: Colleague<P>,
    commands: mpsc::Receiver<Command<P>>,
    seats: Vec<Seat<P>>,
}

impl<P: Policy> Prepared<P> {
    fn new((sender, commands): (Sender<Command<P>>, mpsc::Receiver<Command<P>>)) -> Self {
        let colleague = Colleague { commands: sender, bell: Arc::new(Bell::default()) };
        Prepared { colleague, commands, seats: Vec::new() }
    }
}
