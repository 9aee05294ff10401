//! Shards and matchmakers, each on a thread, put together.

use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};

use downbeat_sched::{ClassId, GpuId, GpuOrder, LatencyProfile, ModelId, ModelSpec, Policy, Pressure, Time};

use crate::assembly::{Assembly, Ready};
use crate::balance::{self, Placed};
use crate::bell::Bell;
use crate::board::Board;
use crate::clock::Clock;
use crate::desk::{Colleague, Command};
use crate::host::{DomainId, Host};
use crate::matchmaking;
use crate::pin;
use crate::posting::{CLASSES_PER_MODEL, Cells};
use crate::rhythm::Rhythm;
use crate::settings::{RuntimeError, Settings};
use crate::sync::Arc;

/// A scheduler on threads: models on shards, devices with matchmakers.
///
/// The same [`Shard`](downbeat_sched::Shard) and [`Matchmaker`](downbeat_sched::Matchmaker) as in [`Scheduler`](downbeat_sched::Scheduler), which has one of each on one thread. Requests
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
        <P::Order as GpuOrder>::Idle: Send,
    {
        let Assembly { desks, matchmakers, cells } = Assembly::new(policy, settings, hosts)?;
        let mut processors = pin::processors(settings.pin);
        let spin = settings.spin;
        let mut running_matchmakers = Vec::new();
        for (domain, Ready { part, commands, bell, board }) in matchmakers.into_iter().enumerate() {
            let (own_bell, processor) = (Arc::clone(&bell), processors.next());
            let thread = thread::Builder::new().name(format!("match-{domain}")).spawn(move || {
                pin::bind(processor);
                part.run(Rhythm::new(clock, own_bell, spin));
            })?;
            running_matchmakers.push(Domain { commands, bell, board, thread });
        }
        let mut running = Vec::new();
        for (index, (desk, colleague)) in desks.into_iter().enumerate() {
            let (bell, processor) = (Arc::clone(&colleague.bell), processors.next());
            let thread = thread::Builder::new().name(format!("shard-{index}")).spawn(move || {
                pin::bind(processor);
                desk.run(Rhythm::new(clock, bell, spin))
            })?;
            running.push((Waker(colleague), thread));
        }
        let homes = vec![None; cells.len() as usize];
        Ok(Runtime { clock, desks: running, matchmakers: running_matchmakers, cells, homes })
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
