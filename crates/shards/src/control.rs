//! What is told to running shards and matchmakers from outside: models and devices that come, go and change.

use std::sync::mpsc::Sender;
use std::sync::{Mutex, MutexGuard, PoisonError};

use downbeat_sched::{ClassId, GpuId, LatencyProfile, ModelId, ModelSpec, Pressure, Rule, Time};

use crate::balance::{self, Placed};
use crate::bell::Bell;
use crate::desk::{Colleague, Command};
use crate::host::DomainId;
use crate::matchmaking;
use crate::posting::{CLASSES_PER_MODEL, Cells};
use crate::pressure_table::PressureTable;
use crate::settings::RuntimeError;
use crate::sync::Arc;

/// Tells shards and matchmakers which models and devices there are. Any thread may, and none ever waits for another by
/// it: what is told is carried out in the turns that follow.
///
/// What is told of one model is carried out in the order in which it was told, also while the model moves.
pub struct Control(Arc<Parts>);

struct Parts {
    desks: Vec<Colleague>,
    domains: Vec<Domain>,
    cells: Arc<Cells>,
    /// By model.
    homes: Mutex<Vec<Option<Home>>>,
}

/// A matchmaker, as others know it.
#[derive(Debug)]
pub(crate) struct Domain {
    pub(crate) commands: Sender<matchmaking::Command>,
    pub(crate) bell: Arc<Bell>,
    pub(crate) table: Arc<PressureTable>,
}

/// Where a model was put, and what it was told.
#[derive(Clone, Debug)]
struct Home {
    shard: u16,
    /// The shard that is told. Where the model has moved on from it, it passes on what comes, in order.
    entry: u16,
    /// How often the model was told anything. What a shard has carried out, it counts in the model's cell.
    told: u64,
    classes: Vec<ClassId>,
    /// What was expected when it was added; until more is known.
    expected: f64,
    removed: bool,
}

impl Clone for Control {
    fn clone(&self) -> Self {
        Control(Arc::clone(&self.0))
    }
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").field("shards", &self.0.desks.len()).finish_non_exhaustive()
    }
}

impl Control {
    pub(crate) fn new(desks: Vec<Colleague>, domains: Vec<Domain>, cells: Arc<Cells>) -> Self {
        let homes = Mutex::new(vec![None; cells.len() as usize]);
        Control(Arc::new(Parts { desks, domains, cells, homes }))
    }

    /// How many shards there are.
    pub fn shards(&self) -> usize {
        self.0.desks.len()
    }

    /// Wakes a shard, after something was put where its host will look.
    #[inline]
    pub fn wake(&self, shard: usize) {
        if let Some(desk) = self.0.desks.get(shard) {
            desk.bell.ring();
        }
    }

    /// The shard whose host requests for a model should go to; `None` where there is no such model. Those that come to
    /// another are passed on.
    pub fn shard_of(&self, model: ModelId) -> Option<usize> {
        self.0.cells.get(model)?.route().map(usize::from)
    }

    /// Whether a number is free for a model: never used, or that one is gone without a trace.
    pub fn is_vacant(&self, model: ModelId) -> bool {
        let homes = self.homes();
        homes
            .get(model.0 as usize)
            .is_some_and(|home| home.as_ref().is_none_or(|home| home.removed && self.is_settled(model, home)))
    }

    /// Adds a model of a domain, or gives it another specification. `expected` is how many rows a second are expected,
    /// or 0: by that it is put on the shard with the least to do. Returns the shard.
    pub fn add_model(
        &self,
        domain: DomainId,
        model: ModelId,
        spec: ModelSpec,
        expected: f64,
    ) -> Result<usize, RuntimeError> {
        self.add(domain, model, spec, expected, None)
    }

    /// The same on a certain shard, unless the model is on one already.
    pub fn add_model_on(
        &self,
        domain: DomainId,
        model: ModelId,
        spec: ModelSpec,
        expected: f64,
        shard: usize,
    ) -> Result<usize, RuntimeError> {
        self.add(domain, model, spec, expected, Some(shard))
    }

    fn add(
        &self,
        domain: DomainId,
        model: ModelId,
        spec: ModelSpec,
        expected: f64,
        shard: Option<usize>,
    ) -> Result<usize, RuntimeError> {
        self.domain(domain)?;
        let models = self.0.cells.len();
        if model.0 >= models {
            return Err(RuntimeError::Model { model, models });
        }
        let classes: Vec<_> = spec.profiles.iter().map(|(class, _)| *class).collect();
        if classes.len() > CLASSES_PER_MODEL {
            return Err(RuntimeError::Classes(classes.len()));
        }
        let mut homes = self.homes();
        let settled = |home: &Home| home.removed && self.is_settled(model, home);
        let fresh = homes[model.0 as usize].as_ref().is_none_or(settled);
        if fresh {
            let shard = shard.unwrap_or_else(|| self.least_loaded(&homes)).min(self.shards() - 1) as u16;
            let told = self.0.cells.of(model).carried_out();
            let home = Home { shard, entry: shard, told, classes: Vec::new(), expected: 0.0, removed: false };
            homes[model.0 as usize] = Some(home);
        }
        let Some(home) = &mut homes[model.0 as usize] else {
            return Err(RuntimeError::Model { model, models });
        };
        (home.classes, home.expected, home.removed) = (classes, expected, false);
        self.tell(model, home, Command::Add { domain, model, spec: Box::new(spec), fresh });
        // After the command, so that requests that are passed on come behind it.
        self.0.cells.of(model).set_route(Some(home.shard));
        Ok(home.shard.into())
    }

    /// Removes a model; requests that wait are answered, what runs finishes.
    pub fn remove_model(&self, model: ModelId) {
        let mut homes = self.homes();
        if let Some(home) = present(&mut homes, model) {
            home.removed = true;
            self.0.cells.of(model).set_route(None);
            self.tell(model, home, Command::Remove { model });
        }
    }

    /// Deploys a model on a class, or corrects its profile there.
    pub fn set_profile(
        &self,
        model: ModelId,
        class: ClassId,
        profile: LatencyProfile,
    ) -> Result<(), RuntimeError> {
        let mut homes = self.homes();
        let Some(home) = present(&mut homes, model) else { return Ok(()) };
        if !home.classes.contains(&class) {
            if home.classes.len() >= CLASSES_PER_MODEL {
                return Err(RuntimeError::Classes(home.classes.len() + 1));
            }
            home.classes.push(class);
        }
        self.tell(model, home, Command::SetProfile { model, class, profile });
        Ok(())
    }

    /// Tells a model that no more requests come for it.
    pub fn drain_model(&self, model: ModelId) {
        let mut homes = self.homes();
        if let Some(home) = present(&mut homes, model) {
            self.tell(model, home, Command::Drain { model });
        }
    }

    /// Moves a model to another shard, with all that waits. Requests that come to the old one are passed on. `false`
    /// where it is there, or has yet to carry out what it was told before.
    pub fn move_model(&self, model: ModelId, to: usize) -> bool {
        let to = to.min(self.shards() - 1) as u16;
        let mut homes = self.homes();
        let Some(home) = present(&mut homes, model) else { return false };
        if home.shard == to || !self.is_settled(model, home) {
            return false;
        }
        home.shard = to;
        self.0.cells.of(model).set_route(Some(to));
        self.tell(model, home, Command::GiveAway { model, to });
        true
    }

    /// Moves models from shards that have come to have far more to do than others. Returns how many. To be called every
    /// second or so.
    pub fn rebalance(&self) -> usize {
        let mut placed = self.placed();
        let moves = balance::moves(&mut placed, self.shards() as u16);
        moves.iter().filter(|&&(model, to)| self.move_model(model, to.into())).count()
    }

    /// A device is ready for work.
    pub fn join(&self, domain: DomainId, gpu: GpuId, class: ClassId) -> Result<(), RuntimeError> {
        self.tell_matchmaker(domain, matchmaking::Command::Join { gpu, class })
    }

    /// A device takes no more batches; what it runs or is just being sent, it finishes. `settled` is called when it has
    /// been sent its last.
    pub fn leave(
        &self,
        domain: DomainId,
        gpu: GpuId,
        settled: impl FnOnce() + Send + 'static,
    ) -> Result<(), RuntimeError> {
        self.tell_matchmaker(domain, matchmaking::Command::Leave { gpu, settled: Box::new(settled) })
    }

    /// Devices are gone, with all they ran; their requests go back into their queues. All at once: nothing that one of
    /// them had is given to another of them.
    pub fn fail(&self, domain: DomainId, gpus: Vec<GpuId>) -> Result<(), RuntimeError> {
        self.tell_matchmaker(domain, matchmaking::Command::Fail { gpus })
    }

    /// A device will be done with all it was sent at another time than predicted.
    pub fn late(&self, domain: DomainId, gpu: GpuId, free_at: Time) -> Result<(), RuntimeError> {
        self.tell_matchmaker(domain, matchmaking::Command::Late { gpu, free_at })
    }

    /// Follows another rule on a class of devices from now on.
    pub fn follow(&self, domain: DomainId, class: ClassId, rule: Rule) -> Result<(), RuntimeError> {
        self.tell_matchmaker(domain, matchmaking::Command::Follow { class, rule })
    }

    /// How hard a class of a domain is pressed, as its matchmaker last said.
    pub fn pressure(&self, domain: DomainId, class: ClassId) -> Result<Pressure, RuntimeError> {
        Ok(self.domain(domain)?.table.pressure(class))
    }

    /// Ends all turns. What waits or runs is left as it is.
    pub fn stop(&self) {
        self.stop_shards();
        self.stop_matchmakers();
    }

    pub(crate) fn stop_shards(&self) {
        self.0.desks.iter().for_each(|desk| desk.tell(Command::Stop));
    }

    /// Ends the matchmakers' turns: after those of the shards, who may have something to report to them.
    pub(crate) fn stop_matchmakers(&self) {
        for domain in (0..self.0.domains.len() as u16).map(DomainId) {
            // It only fails where the thread has ended already.
            let _ = self.tell_matchmaker(domain, matchmaking::Command::Stop);
        }
    }

    fn tell(&self, model: ModelId, home: &mut Home, command: Command) {
        if self.is_settled(model, home)
            && let Some(shard) = self.0.cells.of(model).home()
        {
            home.entry = shard;
        }
        home.told += 1;
        self.0.desks[usize::from(home.entry)].tell(command);
    }

    /// Whether all that a model was told has been carried out.
    fn is_settled(&self, model: ModelId, home: &Home) -> bool {
        self.0.cells.of(model).carried_out() == home.told
    }

    fn tell_matchmaker(&self, domain: DomainId, command: matchmaking::Command) -> Result<(), RuntimeError> {
        let Domain { commands, bell, .. } = self.domain(domain)?;
        commands.send(command).map_err(|_| RuntimeError::Panicked)?;
        bell.ring();
        Ok(())
    }

    fn domain(&self, domain: DomainId) -> Result<&Domain, RuntimeError> {
        let domains = self.0.domains.len() as u16;
        self.0.domains.get(usize::from(domain.0)).ok_or(RuntimeError::Domain { domain, domains })
    }

    /// All models, where they are, and what comes for them.
    fn placed(&self) -> Vec<Placed> {
        let load = |model: ModelId, home: &Home| match self.0.cells.of(model).lately() {
            0 => home.expected,
            lately => lately as f64,
        };
        let homes = self.homes();
        let models = (0..).map(ModelId).zip(homes.iter());
        models
            .filter_map(|(model, home)| {
                let home = home.as_ref().filter(|home| !home.removed)?;
                Some(Placed { model, shard: home.shard, load: load(model, home) })
            })
            .collect()
    }

    /// The shard with the least load; of several, the one with the fewest models.
    fn least_loaded(&self, homes: &[Option<Home>]) -> usize {
        if self.shards() == 1 {
            return 0;
        }
        let mut loads = vec![(0.0, 0); self.shards()];
        for home in homes.iter().flatten().filter(|home| !home.removed) {
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

    fn homes(&self) -> MutexGuard<'_, Vec<Option<Home>>> {
        // Nothing panics while it is held, and what it says is whole at any time.
        self.0.homes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The home of a model that was added and not removed.
fn present(homes: &mut [Option<Home>], model: ModelId) -> Option<&mut Home> {
    homes.get_mut(model.0 as usize)?.as_mut().filter(|home| !home.removed)
}
