//! Brings models and workers together: loads and unloads models on all workers, gives new workers what they must have,
//! measures what is not known, and lets the dispatcher know what can be used.
//!
//! One task owns all of that and takes one thing at a time: what workers report, what people order. Two rules keep it
//! simple:
//! - A device joins the dispatcher when its worker has loaded every model that is deployed on its class.
//! - A model is deployed on a class when every worker of that class has loaded it.

mod cast;
mod profiling;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use downbeat_oip::proto::ModelConfig;
use downbeat_oip::{Failure, Reason};
use downbeat_profile::{DeviceClass, Span};
use downbeat_repository::{ModelDefinition, Repository};
use downbeat_sched::ClassId;
use tokio::sync::{mpsc, oneshot, watch};

use crate::catalogue::{Catalogue, Served, State, UNLOADED};
use crate::clock::span;
use crate::dispatch::{Command, InstanceId, InstanceSpec, Runtime};
use crate::link::{Notice, Worker, WorkerDevice, WorkerId};
use crate::metrics::Metrics;
use crate::profiles::ProfileStore;
use cast::{Instance, Phase, Staff};

/// What people want.
#[derive(Debug)]
pub(crate) enum Order {
    /// Load a model, or load it anew.
    Load { model: String, config: Option<Box<ModelConfig>>, reply: oneshot::Sender<Result<(), Failure>> },
    /// Unload a model.
    Unload { model: String, reply: oneshot::Sender<Result<(), Failure>> },
}

/// An order that is being carried out.
#[derive(Debug)]
struct UnderWay {
    unloads: bool,
    reply: oneshot::Sender<Result<(), Failure>>,
}

/// What the control task hears from itself.
#[derive(Debug)]
enum Echo {
    Read { model: String, result: Result<Box<ModelDefinition>, Failure> },
    Withdrawn { instance: InstanceId },
}

/// What the server needs to know of its workers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    /// Devices that take batches.
    pub(crate) devices: usize,
    /// Workers that have loaded what they must.
    pub(crate) workers: usize,
    /// Why a worker cannot work, if one said so.
    pub(crate) trouble: Option<String>,
}

/// What the control task is told when it starts.
pub(crate) struct ControlSettings {
    pub(crate) default_slo: Span,
    pub(crate) queue_limit: usize,
    pub(crate) max_wait: Span,
    pub(crate) device_timeout: Duration,
    /// Threads per operator, on which latencies depend.
    pub(crate) variant: String,
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
    classes: Vec<DeviceClass>,
    workers: BTreeMap<WorkerId, Staff>,
    instances: BTreeMap<InstanceId, Instance>,
    next_instance: u32,
    /// Models that are being loaded or unloaded.
    under_way: BTreeMap<String, UnderWay>,
    /// What must wait until that is done.
    later: VecDeque<Order>,
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
            settings,
            repository,
            profiles,
            catalogue,
            metrics,
            runtime,
            echo,
            standing,
            classes: Vec::new(),
            workers: BTreeMap::new(),
            instances: BTreeMap::new(),
            next_instance: 0,
            under_way: BTreeMap::new(),
            later: VecDeque::new(),
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
            Notice::Unfit { name, trouble } => {
                tracing::error!(worker = name, "a worker cannot work: {trouble}");
                self.standing.send_modify(|standing| standing.trouble = Some(trouble));
            }
            Notice::Down { worker, why } => self.worker_down(worker, &why),
            Notice::Loaded { worker, instance, result } => self.loaded(worker, instance, result),
            Notice::Measured { worker, instance, result } => self.measured(worker, instance, result),
        }
    }

    fn order(&mut self, order: Order) {
        let (Order::Load { model, .. } | Order::Unload { model, .. }) = &order;
        if self.under_way.contains_key(model) {
            return self.later.push_back(order);
        }
        match order {
            Order::Load { model, config, reply } => {
                self.under_way.insert(model.clone(), UnderWay { unloads: false, reply });
                let (repository, echo) = (Arc::clone(&self.repository), self.echo.clone());
                tokio::task::spawn_blocking(move || {
                    let result = repository.read(&model, config.map(|config| *config));
                    let known = || repository.models().is_ok_and(|models| models.contains(&model));
                    let result = result.map(Box::new).map_err(|error| {
                        let reason = if known() { Reason::Invalid } else { Reason::Unknown };
                        Failure::new(reason, error.to_string())
                    });
                    // The server is about to end.
                    let _ = echo.send(Echo::Read { model, result });
                });
            }
            Order::Unload { model, reply } => self.unload(&model, reply),
        }
    }

    fn echo(&mut self, echo: Echo) {
        match echo {
            Echo::Read { model, result: Ok(definition) } => self.load(&model, *definition),
            Echo::Read { model, result: Err(failure) } => {
                tracing::error!(model, "cannot be loaded: {failure}");
                // What is served goes on being served, and what is nowhere is not listed.
                if failure.reason != Reason::Unknown && self.catalogue.served(&model).is_empty() {
                    self.catalogue.set(&model, 0, State::Unavailable, &failure.message);
                }
                let message = format!("failed to load {model:?}: {failure}");
                self.done(&model, Err(Failure::new(failure.reason, message)));
            }
            Echo::Withdrawn { instance } => self.withdrawn(instance),
        }
    }

    /// Someone's order is carried out; whoever waits for the same model is next.
    fn done(&mut self, model: &str, result: Result<(), Failure>) {
        if let Some(UnderWay { reply, .. }) = self.under_way.remove(model) {
            let _ = reply.send(result);
        }
        let of_model = |order: &Order| match order {
            Order::Load { model: of, .. } | Order::Unload { model: of, .. } => of == model,
        };
        if let Some(next) = self.later.iter().position(of_model).and_then(|at| self.later.remove(at)) {
            self.order(next);
        }
    }

    fn load(&mut self, model: &str, definition: ModelDefinition) {
        for notice in &definition.notices {
            tracing::info!(model, "{notice}");
        }
        let definition = Arc::new(definition);
        let slo = definition.slo.map_or(self.settings.default_slo, span);
        for version in &definition.versions {
            let id = InstanceId(self.next_instance);
            self.next_instance += 1;
            self.catalogue.set(model, version.number, State::Loading, "");
            let mut instance = Instance::new(Arc::clone(&definition), version.clone(), slo);
            for (&worker, staff) in &self.workers {
                instance.awaiting.insert(worker);
                self.send_load(&staff.worker, id, &instance);
            }
            self.instances.insert(id, instance);
        }
        self.advance_all();
    }

    fn send_load(&self, worker: &Worker, id: InstanceId, instance: &Instance) {
        let class = worker.devices.first().map(|device| &device.class);
        let emulated = worker.devices.first().is_some_and(|device| device.emulated);
        let profile = class.filter(|_| emulated).and_then(|class| self.emulated_profile(instance, class));
        let (load, files) = instance.load_message(id, profile.as_ref());
        worker.load(load, files);
    }

    fn unload(&mut self, model: &str, reply: oneshot::Sender<Result<(), Failure>>) {
        let of_model: Vec<InstanceId> = self.ids(|instance| instance.definition.name == model);
        if of_model.is_empty() {
            // What is not there is unloaded already.
            let _ = reply.send(Ok(()));
            return;
        }
        self.under_way.insert(model.to_owned(), UnderWay { unloads: true, reply });
        for id in of_model {
            self.withdraw(id, State::Unloading);
        }
        tracing::info!(model, "unloading");
    }

    /// Takes no more requests for an instance, and forgets it when the last has left.
    fn withdraw(&mut self, id: InstanceId, state: State) {
        let Some(instance) = self.instances.get_mut(&id) else { return };
        let was = std::mem::replace(&mut instance.phase, Phase::Leaving);
        if state == State::Unloading {
            self.catalogue.set(&instance.definition.name, instance.version.number, state, "");
        }
        let echo = self.echo.clone();
        let over = move || drop(echo.send(Echo::Withdrawn { instance: id }));
        if was == Phase::Ready {
            let (done, withdrawn) = oneshot::channel();
            self.runtime.send(Command::Withdraw { instance: id, done });
            tokio::spawn(async move {
                // An error says that the dispatcher does not know it: over, too.
                let _ = withdrawn.await;
                over();
            });
        } else {
            over();
        }
    }

    fn withdrawn(&mut self, id: InstanceId) {
        let Some(instance) = self.instances.remove(&id) else { return };
        for staff in self.workers.values() {
            staff.worker.unload(id);
        }
        let (name, version) = (&instance.definition.name, instance.version.number);
        // A newer one may have taken its place, or it was never ready.
        let unloading =
            self.catalogue.versions(name).get(&version).is_some_and(|it| it.state == State::Unloading);
        if unloading {
            self.catalogue.set(name, version, State::Unavailable, UNLOADED);
            tracing::info!(model = name, version, "unloaded");
        }
        let unloads = self.under_way.get(name).is_some_and(|order| order.unloads);
        if unloads && self.ids(|other| other.definition.name == *name).is_empty() {
            self.done(name, Ok(()));
        }
        self.settle_workers();
    }

    fn worker_up(&mut self, worker: Worker) {
        let devices: Vec<&str> = worker.devices.iter().map(|device| &*device.name).collect();
        tracing::info!(worker = %worker.name, devices = cast::listed(&devices), "a worker has connected");
        let id = worker.id;
        let class = worker.devices.first().map(|device| device.class.clone());
        let class = class.map_or(ClassId(0), |class| self.class_id(&class));
        let meter = |device: &WorkerDevice| self.metrics.device(&device.name, &device.class, device.gpu.0);
        let meters = worker.devices.iter().map(meter).collect();
        let present: Vec<InstanceId> = self.ids(|instance| instance.phase != Phase::Leaving);
        for instance in present {
            if let Some(known) = self.instances.get_mut(&instance) {
                known.awaiting.insert(id);
            }
            if let Some(known) = self.instances.get(&instance) {
                self.send_load(&worker, instance, known);
            }
        }
        self.workers.insert(id, Staff::new(worker, class, meters));
        self.standing.send_modify(|standing| standing.trouble = None);
        self.advance_all();
    }

    fn worker_down(&mut self, id: WorkerId, why: &str) {
        let Some(staff) = self.workers.remove(&id) else { return };
        tracing::warn!(worker = %staff.worker.name, "a worker is gone: {why}");
        staff.meters.iter().for_each(|meter| meter.up(false));
        for instance in self.instances.values_mut() {
            instance.awaiting.remove(&id);
            instance.loaded.remove(&id);
            instance.measuring.retain(|_, worker| *worker != id);
        }
        self.advance_all();
    }

    fn loaded(&mut self, worker: WorkerId, id: InstanceId, result: Result<(), String>) {
        let (Some(staff), Some(instance)) = (self.workers.get(&worker), self.instances.get_mut(&id)) else {
            return;
        };
        instance.awaiting.remove(&worker);
        match result {
            Ok(()) => drop(instance.loaded.insert(worker)),
            Err(trouble) if instance.profiles.contains_key(&staff.class) => {
                let model = &instance.definition.name;
                tracing::error!(model, worker = %staff.worker.name, "loaded on other workers, but not here: {trouble}");
                staff.worker.cut();
            }
            Err(trouble) => drop(instance.troubles.insert(staff.class, trouble)),
        }
        self.advance_all();
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
            self.fail(id, &trouble);
        }
        // Otherwise there is no worker yet.
    }

    fn deploy(&mut self, id: InstanceId) {
        let Some(instance) = self.instances.get_mut(&id) else { return };
        instance.phase = Phase::Ready;
        let definition = Arc::clone(&instance.definition);
        let (version, slo) = (instance.version.number, instance.slo);
        let meter = self.metrics.model(&definition.name, &version.to_string(), slo);
        let spec = InstanceSpec {
            profiles: instance.profiles.iter().map(|(&class, profile)| (class, profile.clone())).collect(),
            default_priority: cast::default_priority(&definition),
            queue_limit: definition.queue_limit.map_or(self.settings.queue_limit, |limit| limit as usize),
            leeway: slo - definition.max_wait.map_or(self.settings.max_wait, span),
            meter: Arc::clone(&meter),
        };
        cast::announce(
            &definition,
            version,
            slo,
            instance.profiles.iter().map(|(class, profile)| (&self.classes[class.0 as usize], profile)),
        );
        self.runtime.send(Command::Deploy { instance: id, spec });
        let model = definition.name.clone();
        self.catalogue.serve(Served { instance: id, version, definition, slo, meter });
        self.loading_over(&model);
    }

    fn fail(&mut self, id: InstanceId, trouble: &str) {
        let Some(instance) = self.instances.get(&id) else { return };
        let (model, version) = (instance.definition.name.clone(), instance.version.number);
        tracing::error!(model, version, "cannot be loaded: {trouble}");
        let older = self.ids(|other| {
            other.phase == Phase::Ready && other.definition.name == model && other.version.number == version
        });
        let served = !older.is_empty();
        self.catalogue.set(&model, version, if served { State::Ready } else { State::Unavailable }, trouble);
        self.withdraw(id, State::Unavailable);
        if let Some(instance) = self.instances.get_mut(&id) {
            instance.failed = Some(trouble.to_owned());
        }
        self.loading_over(&model);
    }

    /// When no version of a model is being loaded any more: replaces the ones from before, and tells who ordered it.
    fn loading_over(&mut self, model: &str) {
        self.settle_workers();
        let of_model = |instance: &Instance| instance.definition.name == model;
        if self.instances.values().any(|instance| of_model(instance) && instance.phase == Phase::Loading) {
            return;
        }
        let failed: Vec<String> = self
            .instances
            .values_mut()
            .filter(|instance| of_model(instance))
            .filter_map(|i| i.failed.take())
            .collect();
        if failed.is_empty() {
            let ready = self.ids(|instance| of_model(instance) && instance.phase == Phase::Ready);
            let newest =
                ready.last().and_then(|id| self.instances.get(id)).map(|it| Arc::clone(&it.definition));
            for id in ready {
                let Some(instance) = self.instances.get(&id) else { continue };
                if newest.as_ref().is_some_and(|newest| !Arc::ptr_eq(newest, &instance.definition)) {
                    let gone = newest
                        .iter()
                        .all(|new| new.versions.iter().all(|it| it.number != instance.version.number));
                    self.withdraw(id, if gone { State::Unloading } else { State::Ready });
                }
            }
        }
        let result = match failed.first() {
            None => Ok(()),
            Some(trouble) => {
                Err(Failure::new(Reason::Invalid, format!("failed to load {model:?}: {trouble}")))
            }
        };
        self.done(model, result);
    }

    /// Lets the devices of every worker that has loaded what it must take batches.
    fn settle_workers(&mut self) {
        let mut busy: BTreeSet<WorkerId> = BTreeSet::new();
        for instance in self.instances.values() {
            busy.extend(instance.measuring.values());
            // While a model is being loaded for the first time, workers serve the others.
            if instance.phase == Phase::Ready {
                busy.extend(&instance.awaiting);
            }
        }
        for (id, staff) in &mut self.workers {
            if !staff.joined && !busy.contains(id) {
                staff.joined = true;
                for (device, meter) in staff.worker.devices.iter().zip(&staff.meters) {
                    meter.up(true);
                    self.runtime.send(Command::DeviceJoined {
                        gpu: device.gpu,
                        class: staff.class,
                        name: Arc::clone(&device.name),
                        meter: Arc::clone(meter),
                    });
                }
            }
        }
        let joined = || self.workers.values().filter(|staff| staff.joined);
        let (workers, devices) = (joined().count(), joined().map(|staff| staff.worker.devices.len()).sum());
        self.standing.send_modify(|standing| (standing.workers, standing.devices) = (workers, devices));
    }

    fn tick(&mut self, passed: Duration) {
        for staff in self.workers.values() {
            if staff.joined {
                staff.meters.iter().for_each(|meter| meter.present(span(passed)));
            }
            let limit = self.settings.device_timeout;
            if staff.worker.oldest_batch().is_some_and(|age| age > limit) {
                tracing::error!(worker = %staff.worker.name, "a batch has run for more than {limit:?}: the worker is given up");
                staff.worker.cut();
            }
        }
    }

    fn class_id(&mut self, class: &DeviceClass) -> ClassId {
        let known = self.classes.iter().position(|known| known == class);
        let index = known.unwrap_or_else(|| {
            self.metrics.add_class(ClassId(self.classes.len() as u16), class.clone());
            self.classes.push(class.clone());
            self.classes.len() - 1
        });
        ClassId(index as u16)
    }

    fn ids(&self, which: impl Fn(&Instance) -> bool) -> Vec<InstanceId> {
        self.instances.iter().filter(|(_, instance)| which(instance)).map(|(&id, _)| id).collect()
    }
}
