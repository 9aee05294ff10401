//! Brings models and workers together: loads and unloads models on all workers, gives new workers what they must have,
//! measures what is not known, and lets the dispatcher know what can be used.
//!
//! One task owns all of that and takes one thing at a time: what workers report, what people order. Two rules keep it
//! simple:
//! - A device joins the dispatcher when its worker has loaded every model that is deployed on its class.
//! - A model is deployed on a class when every worker of that class has loaded it.

mod cast;
mod crew;
mod moving;
mod profiling;
mod withdrawing;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use downbeat_oip::config::WrittenConfig;
use downbeat_oip::{Failure, Reason};
use downbeat_profile::Span;
use downbeat_repository::Repository;
use downbeat_sched::{CLASS_LIMIT, ClassId};
use tokio::sync::{mpsc, oneshot, watch};

use crate::catalogue::{Catalogue, Served, State, UNLOADED};
use crate::clock::span;
use crate::dispatch::{Command, InstanceId, InstanceSpec, Runtime};
use crate::link::{Notice, Worker, WorkerId};
use crate::metrics::Metrics;
use crate::profiles::ProfileStore;
use crate::service::SubclusterState;
use crate::subcluster::{Assignment, Pool, Subcluster};
use cast::{Found, Instance, Phase, Staff};
use moving::runs_on;

/// What people want.
#[derive(Debug)]
pub(crate) enum Order {
    /// Load a model, or load it anew.
    Load { model: String, config: Option<Box<WrittenConfig>>, reply: oneshot::Sender<Result<(), Failure>> },
    /// Unload a model.
    Unload { model: String, reply: oneshot::Sender<Result<(), Failure>> },
    /// Move a model to another sub-cluster.
    Move { model: String, to: Subcluster, reply: oneshot::Sender<Result<(), Failure>> },
}

/// What the control task hears from itself.
#[derive(Debug)]
enum Echo {
    Read { model: String, to: Option<Subcluster>, result: Result<Found, Failure> },
    Withdrawn { instance: InstanceId },
}

/// What the server needs to know of its workers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    /// Devices that take batches.
    pub(crate) devices: usize,
    /// The sub-clusters that devices or models are in.
    pub(crate) subclusters: BTreeMap<String, SubclusterState>,
    /// Models that at least one of them can run.
    pub(crate) runnable: BTreeSet<InstanceId>,
    /// Workers that have loaded what they must.
    pub(crate) workers: usize,
    /// The names of all that are connected.
    pub(crate) connected: BTreeSet<Arc<str>>,
    /// Why one of the server's own workers cannot work, if it said so.
    pub(crate) trouble: Option<String>,
}

/// What is being done with a model, for whom.
struct UnderWay {
    what: Doing,
    reply: oneshot::Sender<Result<(), Failure>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    Loading,
    Unloading,
}

/// What the control task is told when it starts.
pub(crate) struct ControlSettings {
    pub(crate) default_slo: Span,
    pub(crate) queue_limit: usize,
    pub(crate) max_wait: Span,
    pub(crate) device_timeout: Duration,
    /// The size that open dimensions are measured with.
    pub(crate) open_size: u64,
    /// Threads per operator, on which latencies depend.
    pub(crate) variant: String,
    /// Where models are at first that are in a sub-cluster.
    pub(crate) assignment: Assignment,
}

/// The control task. See the [module](self).
pub(crate) struct Control {
    settings: ControlSettings,
    repository: Arc<Repository>,
    profiles: ProfileStore,
    catalogue: Arc<Catalogue>,
    metrics: Arc<Metrics>,
    runtime: Runtime,
    echo: mpsc::UnboundedSender<Echo>,
    standing: watch::Sender<Standing>,
    /// What the scheduler takes for classes.
    pools: Vec<Pool>,
    /// Where models are that are in a sub-cluster, whatever their configuration says.
    assigned: Assignment,
    workers: BTreeMap<WorkerId, Staff>,
    instances: BTreeMap<InstanceId, Instance>,
    next_instance: u32,
    /// Models that are being loaded or unloaded.
    under_way: BTreeMap<String, UnderWay>,
    /// What must wait until that is done.
    later: VecDeque<Order>,
}

impl Order {
    fn model(&self) -> &str {
        match self {
            Order::Load { model, .. } | Order::Unload { model, .. } | Order::Move { model, .. } => model,
        }
    }

    fn is_wanted(&self) -> bool {
        let (Order::Load { reply, .. } | Order::Unload { reply, .. } | Order::Move { reply, .. }) = self;
        !reply.is_closed()
    }
}

impl Control {
    #[expect(clippy::too_many_arguments, reason = "it ties the server together")]
    pub(crate) fn start(
        settings: ControlSettings,
        repository: Arc<Repository>,
        profiles: ProfileStore,
        catalogue: Arc<Catalogue>,
        metrics: Arc<Metrics>,
        runtime: Runtime,
        notices: mpsc::UnboundedReceiver<Notice>,
        orders: mpsc::Receiver<Order>,
    ) -> watch::Receiver<Standing> {
        let (echo, echoes) = mpsc::unbounded_channel();
        let (standing, watched) = watch::channel(Standing::default());
        let control = Control {
            repository,
            profiles,
            catalogue,
            metrics,
            runtime,
            echo,
            standing,
            pools: Vec::new(),
            assigned: settings.assignment.clone(),
            workers: BTreeMap::new(),
            instances: BTreeMap::new(),
            next_instance: 0,
            under_way: BTreeMap::new(),
            later: VecDeque::new(),
            settings,
        };
        tokio::spawn(control.run(notices, orders, echoes));
        watched
    }

    async fn run(
        mut self,
        mut notices: mpsc::UnboundedReceiver<Notice>,
        mut orders: mpsc::Receiver<Order>,
        mut echoes: mpsc::UnboundedReceiver<Echo>,
    ) {
        const TICK: Duration = Duration::from_secs(1);
        let mut tick = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                Some(notice) = notices.recv() => self.notice(notice),
                Some(order) = orders.recv() => self.order(order),
                Some(echo) = echoes.recv() => self.echo(echo),
                _ = tick.tick() => self.tick(TICK),
                else => return,
            }
        }
    }

    fn notice(&mut self, notice: Notice) {
        match notice {
            Notice::Up(worker) => self.worker_up(worker),
            Notice::Unfit { name, is_child, trouble } => {
                // Until it has been told to load anything the server is still starting, and ends with that as its last
                // word.
                if !is_child || self.next_instance > 0 {
                    tracing::error!(worker = name, "a worker cannot work: {trouble}");
                }
                if is_child {
                    self.standing.send_modify(|standing| standing.trouble = Some(trouble));
                }
            }
            Notice::Leaving { worker } => self.worker_leaving(worker),
            Notice::Down { worker, why } => self.worker_down(worker, &why),
            Notice::Loaded { worker, instance, result } => self.loaded(worker, instance, result),
            Notice::Measured { worker, instance, result } => self.measured(worker, instance, result),
        }
    }

    fn order(&mut self, order: Order) {
        let model = order.model().to_owned();
        if self.under_way.contains_key(&model) {
            // Whoever has gone no longer wants it: so what waits is bounded by who waits.
            self.later.retain(Order::is_wanted);
            self.later.push_back(order);
            return self.abandon(&model);
        }
        match order {
            Order::Load { model, config, reply } => self.read(&model, config, None, reply),
            Order::Unload { model, reply } => self.unload(&model, reply),
            Order::Move { model, to, reply } => self.move_model(&model, &to, reply),
        }
    }

    /// Reads a model, to load it; where `to` says so, into that sub-cluster.
    fn read(
        &mut self,
        model: &str,
        config: Option<Box<WrittenConfig>>,
        to: Option<Subcluster>,
        reply: oneshot::Sender<Result<(), Failure>>,
    ) {
        let model = model.to_owned();
        self.under_way.insert(model.clone(), UnderWay { what: Doing::Loading, reply });
        let (repository, echo) = (Arc::clone(&self.repository), self.echo.clone());
        tokio::task::spawn_blocking(move || {
            let result = Found::read(&repository, &model, config);
            // The server is about to end.
            let _ = echo.send(Echo::Read { model, to, result });
        });
    }

    fn echo(&mut self, echo: Echo) {
        match echo {
            Echo::Read { model, to, result: Ok(found) } => {
                match to.map_or_else(|| self.home_of(&found.definition), |to| Ok(Some(to))) {
                    Ok(home) => self.load(&model, &found, home.as_ref()),
                    Err(failure) => self.unreadable(&model, &failure),
                }
            }
            Echo::Read { model, result: Err(failure), .. } => self.unreadable(&model, &failure),
            Echo::Withdrawn { instance } => self.withdrawn(instance),
        }
    }

    fn unreadable(&mut self, model: &str, failure: &Failure) {
        tracing::error!(model, "cannot be loaded: {failure}");
        // What is served goes on being served, and what is nowhere is not listed.
        if failure.reason != Reason::Unknown && self.catalogue.served(model).is_empty() {
            self.catalogue.set(model, 0, State::Unavailable, &failure.message);
        }
        let message = format!("failed to load {model:?}: {failure}");
        self.done(model, Err(Failure::new(failure.reason, message)));
    }

    /// Someone's order is carried out; whoever waits for the same model is next.
    fn done(&mut self, model: &str, result: Result<(), Failure>) {
        if let Some(UnderWay { reply, .. }) = self.under_way.remove(model) {
            let _ = reply.send(result);
        }
        // More than one where there is nothing to do: unloading what is not there is over at once.
        let of_model = |order: &Order| order.model() == model;
        while !self.under_way.contains_key(model)
            && let Some(next) = self.later.iter().position(of_model).and_then(|at| self.later.remove(at))
        {
            self.order(next);
        }
    }

    /// Loads a model on the workers of its sub-cluster; on all where it is in none.
    fn load(&mut self, model: &str, found: &Found, home: Option<&Subcluster>) {
        let definition = &found.definition;
        for notice in &definition.notices {
            tracing::info!(model, "{notice}");
        }
        let slo = definition.slo.map_or(self.settings.default_slo, span);
        for (index, version) in definition.versions.iter().enumerate() {
            let id = InstanceId(self.next_instance);
            self.next_instance += 1;
            self.catalogue.set(model, version.number, State::Loading, "");
            let mut instance = Instance::new(found, index, slo, home.cloned());
            for (&worker, staff) in self.workers.iter().filter(|(_, staff)| runs_on(home, staff)) {
                instance.awaiting.insert(worker);
                self.send_load(&staff.worker, id, &instance);
            }
            self.instances.insert(id, instance);
        }
        self.advance_all();
        self.abandon(model);
    }

    /// Gives up a load that waits for a first worker when the model is to be unloaded anyway.
    fn abandon(&mut self, model: &str) {
        let unloads = |order: &Order| matches!(order, Order::Unload { model: of, .. } if of == model);
        if self.workers.is_empty() && self.later.iter().any(unloads) {
            let loading = |it: &Instance| it.definition.name == model && it.phase == Phase::Loading;
            for id in self.ids(loading) {
                self.fail(id, Failure::new(Reason::Unavailable, UNLOADED));
            }
        }
    }

    fn send_load(&self, worker: &Worker, id: InstanceId, instance: &Instance) {
        let class = worker.devices.first().map(|device| &device.pool.class);
        let emulated = worker.devices.first().is_some_and(|device| device.emulated);
        let emulated = class.filter(|_| emulated).and_then(|class| self.emulated_profile(instance, class));
        let (load, files) = instance.load_message(id, emulated.as_ref().map(|it| &it.profile));
        worker.load(load, files);
    }

    /// Does all that can be done now.
    fn advance_all(&mut self) {
        for id in self.ids(|instance| instance.phase != Phase::Leaving) {
            self.advance(id);
        }
        self.settle_workers();
    }

    fn advance(&mut self, id: InstanceId) {
        self.find_profiles(id);
        let Some(instance) = self.instances.get(&id) else { return };
        if instance.phase != Phase::Loading || !instance.awaiting.is_empty() || !instance.measuring.is_empty()
        {
            return;
        }
        if !instance.profiles.is_empty() {
            self.deploy(id);
        } else if let Some(trouble) = instance.troubles.values().next().cloned() {
            self.fail(id, Failure::new(Reason::Invalid, trouble));
        } else if let Some(home) = &instance.home
            && !self.workers.is_empty()
        {
            // Others have workers: whoever ordered it is not kept waiting for those of this sub-cluster.
            let message =
                format!("no worker of the sub-cluster {home} is there; it is loaded when one has come");
            let model = instance.definition.name.clone();
            self.done(&model, Err(Failure::new(Reason::Unavailable, message)));
        }
        // Otherwise there is no worker yet.
    }

    fn deploy(&mut self, id: InstanceId) {
        let Some(instance) = self.instances.get_mut(&id) else { return };
        instance.phase = Phase::Ready;
        let definition = Arc::clone(&instance.definition);
        let (version, slo, home) = (instance.version.number, instance.slo, instance.home.clone());
        let meter = self.metrics.model(&definition.name, &version.to_string(), slo);
        let spec = InstanceSpec {
            profiles: instance.profiles.iter().map(|(&class, profile)| (class, profile.clone())).collect(),
            open: definition.has_open_shapes(),
            queue_limit: definition.queue_limit.map_or(self.settings.queue_limit, |limit| limit as usize),
            max_wait: definition.max_wait.map_or(self.settings.max_wait, span),
            meter: Arc::clone(&meter),
        };
        cast::announce(
            &definition,
            version,
            slo,
            instance.profiles.iter().map(|(class, profile)| (&self.pools[class.0 as usize], profile)),
        );
        self.runtime.send(Command::Deploy { instance: id, spec });
        let model = definition.name.clone();
        if let Some(home) = home {
            // It stays there when it is loaded anew.
            self.assigned.insert(model.clone(), home);
        }
        self.catalogue.serve(Served { instance: id, version, definition, slo, meter });
        self.loading_over(&model);
    }

    /// Gives up an instance that cannot be loaded, or not any more.
    fn fail(&mut self, id: InstanceId, failure: Failure) {
        let Some(instance) = self.instances.get(&id) else { return };
        if instance.phase == Phase::Leaving {
            return;
        }
        let (model, version) = (instance.definition.name.clone(), instance.version.number);
        tracing::error!(model, version, "cannot be loaded: {failure}");
        let loading = instance.phase == Phase::Loading;
        let served = self.instances.iter().any(|(&other, it)| {
            let same = it.definition.name == model && it.version.number == version;
            other != id && same && it.phase == Phase::Ready
        });
        let state = if served { State::Ready } else { State::Unavailable };
        self.catalogue.set(&model, version, state, &failure.message);
        self.withdraw(id, State::Unavailable);
        if loading {
            if let Some(instance) = self.instances.get_mut(&id) {
                instance.failed = Some(failure);
            }
            self.loading_over(&model);
        }
    }

    /// When no version of a model is being loaded any more: replaces the ones from before, and tells who ordered it.
    fn loading_over(&mut self, model: &str) {
        self.settle_workers();
        let of_model = |instance: &Instance| instance.definition.name == model;
        if self.instances.values().any(|instance| of_model(instance) && instance.phase == Phase::Loading) {
            return;
        }
        let failed: Vec<Failure> = self
            .instances
            .values_mut()
            .filter(|instance| of_model(instance))
            .filter_map(|i| i.failed.take())
            .collect();
        self.replace_older(model, failed.is_empty());
        let named = |failure: Failure| {
            Err(Failure::new(failure.reason, format!("failed to load {model:?}: {}", failure.message)))
        };
        self.done(model, failed.into_iter().next().map_or(Ok(()), named));
    }

    /// What the scheduler takes for a class; `None` where there are as many as it can tell apart.
    fn class_id(&mut self, pool: &Pool) -> Option<ClassId> {
        if let Some(known) = self.pools.iter().position(|known| known == pool) {
            return Some(ClassId(known as u16));
        }
        let id = ClassId(u16::try_from(self.pools.len()).ok().filter(|&id| id < CLASS_LIMIT)?);
        self.metrics.add_class(id, pool.to_string());
        self.pools.push(pool.clone());
        Some(id)
    }

    fn ids(&self, which: impl Fn(&Instance) -> bool) -> Vec<InstanceId> {
        self.instances.iter().filter(|(_, instance)| which(instance)).map(|(&id, _)| id).collect()
    }
}

#[cfg(test)]
mod tests;
