//! Workers that come and go, as the control task sees them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use downbeat_oip::{Failure, Reason};
use downbeat_sched::{CLASS_LIMIT, ClassId};
use tokio::sync::oneshot;

use super::cast::{self, Instance, Phase, Staff};
use super::{Control, InstanceId, Order};
use crate::clock::span;
use crate::dispatch::Command;
use crate::link::message::{FromServer, Leave};
use crate::link::{LoadTrouble, Worker, WorkerDevice, WorkerId};
use crate::settings::MIXED;

/// A model that so many workers died of is given up.
const DEATHS_MAX: u32 = 3;

impl Control {
    pub(super) fn worker_up(&mut self, mut worker: Worker) {
        let emulated = |worker: &Worker| worker.devices.iter().any(|device| device.emulated);
        if self.workers.values().any(|staff| emulated(&staff.worker) != emulated(&worker)) {
            tracing::error!(worker = %worker.name, "turned away: {MIXED}");
            return worker.dismiss(MIXED, false);
        }
        let devices = self.workers.values().flat_map(|staff| &staff.worker.devices);
        let mut taken: BTreeSet<Arc<str>> = devices.map(|device| Arc::clone(&device.name)).collect();
        for device in &mut worker.devices {
            device.name = cast::unlike(&device.name, &taken);
            taken.insert(Arc::clone(&device.name));
        }
        let devices: Vec<&str> = worker.devices.iter().map(|device| &*device.name).collect();
        tracing::info!(worker = %worker.name, devices = cast::listed(&devices), "a worker has connected");
        let id = worker.id;
        let pool = worker.devices.first().map(|device| device.pool.clone());
        let Some(class) = pool.as_ref().map_or(Some(ClassId(0)), |pool| self.class_id(pool)) else {
            tracing::error!(
                worker = %worker.name,
                "turned away: there are {CLASS_LIMIT} classes of devices and sub-clusters, and no room for another"
            );
            return worker.cut();
        };
        let subcluster = pool.and_then(|pool| pool.subcluster);
        let meter =
            |device: &WorkerDevice| self.metrics.device(&device.name, &device.pool.class, device.gpu.0);
        let meters = worker.devices.iter().map(meter).collect();
        // Also what is on its way out: it still has requests, which may come to this worker.
        for instance in self.ids(|it| it.home.is_none() || it.home == subcluster) {
            if let Some(known) = self.instances.get_mut(&instance) {
                known.awaiting.insert(id);
            }
            if let Some(known) = self.instances.get(&instance) {
                self.send_load(&worker, instance, known);
            }
        }
        let name = Arc::clone(&worker.name);
        self.workers.insert(id, Staff::new(worker, class, meters));
        self.standing.send_modify(|standing| {
            standing.connected.insert(name);
            standing.trouble = None;
        });
        self.advance_all();
    }

    /// A worker has been told to end. Its devices get no more batches; when it has been sent its last, it is told so.
    pub(super) fn worker_leaving(&mut self, id: WorkerId) {
        let Some(staff) = self.workers.get_mut(&id) else { return };
        tracing::info!(worker = %staff.worker.name, "a worker leaves when it has finished its batches");
        (staff.leaving, staff.joined) = (true, false);
        let mut sent_all = Vec::new();
        for (device, meter) in staff.worker.devices.iter().zip(&staff.meters) {
            meter.up(false);
            let (settled, is_settled) = oneshot::channel();
            self.runtime.send(Command::DeviceLeft { gpu: device.gpu, settled: Some(settled) });
            sent_all.push(is_settled);
        }
        let worker = staff.worker.clone();
        tokio::spawn(async move {
            for settled in sent_all {
                // An error says that the server ends.
                let _ = settled.await;
            }
            worker.tell(FromServer::Leave(Leave {}));
        });
        self.settle_workers();
    }

    pub(super) fn worker_down(&mut self, id: WorkerId, why: &str) {
        let Some(staff) = self.workers.remove(&id) else { return };
        if staff.leaving {
            tracing::info!(worker = %staff.worker.name, "a worker has left");
        } else {
            tracing::warn!(worker = %staff.worker.name, "a worker is gone: {why}");
        }
        staff.meters.iter().for_each(|meter| meter.up(false));
        // The hub has said so already, but maybe before they joined.
        let gpus = staff.worker.devices.iter().map(|device| device.gpu).collect();
        self.runtime.send(Command::DevicesFailed { gpus });
        let name = &staff.worker.name;
        self.standing.send_modify(|standing| standing.connected.retain(|other| other != name));
        let suspects = if staff.leaving { BTreeSet::new() } else { self.suspects(id) };
        for instance in self.instances.values_mut() {
            instance.awaiting.remove(&id);
            instance.loaded.remove(&id);
            instance.stale.remove(&id);
            instance.measuring.retain(|_, worker| *worker != id);
        }
        for suspect in suspects {
            self.blame(suspect);
        }
        self.advance_all();
    }

    /// What a worker was busy with besides batches: it loads one model at a time, and measures one.
    fn suspects(&self, worker: WorkerId) -> BTreeSet<InstanceId> {
        let loading = self.ids(|it| it.awaiting.contains(&worker));
        let measuring = self.ids(|it| it.measuring.values().any(|by| *by == worker));
        loading.first().into_iter().chain(measuring.first()).copied().collect()
    }

    /// A worker died of an instance that was never ready, it seems. The others must not have to live with workers that
    /// die again and again.
    fn blame(&mut self, id: InstanceId) {
        let Some(instance) = self.instances.get_mut(&id) else { return };
        instance.deaths += 1;
        if instance.deaths >= DEATHS_MAX && instance.phase == Phase::Loading {
            let trouble = format!("{DEATHS_MAX} workers ended while they loaded or measured it");
            self.fail(id, Failure::new(Reason::Invalid, trouble));
        }
    }

    pub(super) fn loaded(&mut self, worker: WorkerId, id: InstanceId, result: Result<(), LoadTrouble>) {
        let (Some(staff), Some(instance)) = (self.workers.get(&worker), self.instances.get_mut(&id)) else {
            return;
        };
        instance.awaiting.remove(&worker);
        let changed = result.as_ref().is_err_and(|trouble| trouble.changed);
        match result.map_err(|trouble| trouble.trouble) {
            Ok(()) => drop(instance.loaded.insert(worker)),
            Err(trouble) if changed && instance.phase != Phase::Loading => self.stale(worker, id, &trouble),
            Err(trouble) if instance.phase == Phase::Loading => {
                instance.troubles.insert(staff.class, trouble);
            }
            // A worker that has come back finds the model broken. Without it, it can serve the others.
            Err(trouble) if instance.loaded.is_empty() => {
                self.fail(id, Failure::new(Reason::Invalid, trouble));
            }
            Err(trouble)
                if instance.phase == Phase::Ready && instance.profiles.contains_key(&staff.class) =>
            {
                let model = &instance.definition.name;
                tracing::error!(model, worker = %staff.worker.name, "loaded on other workers, but not here: {trouble}");
                staff
                    .worker
                    .dismiss(&format!("it cannot load {model:?}, which others have: {trouble}"), true);
            }
            Err(trouble) => drop(instance.troubles.insert(staff.class, trouble)),
        }
        self.advance_all();
    }

    /// A worker is to load a model whose files are not what they were. While another has what was loaded, that is what
    /// is served, and this one stays aside, lest one version be two models; with none left, the model is loaded anew.
    fn stale(&mut self, worker: WorkerId, id: InstanceId, trouble: &str) {
        let (Some(staff), Some(instance)) = (self.workers.get(&worker), self.instances.get_mut(&id)) else {
            return;
        };
        instance.stale.insert(worker);
        if instance.phase == Phase::Leaving {
            return;
        }
        let (model, version) = (instance.definition.name.clone(), instance.version.number);
        let name = &staff.worker.name;
        if !instance.loaded.is_empty() {
            tracing::warn!(
                model,
                version,
                worker = %name,
                "{trouble}; the other workers go on with what was loaded, and this one takes no batches until the model is \
                 loaded again: POST /v2/repository/models/{model}/load"
            );
            return;
        }
        tracing::warn!(model, version, worker = %name, "{trouble}, and no worker has it any more: it is loaded again");
        let config = instance.config.clone();
        self.fail(id, Failure::new(Reason::Unavailable, trouble));
        if !self.under_way.contains_key(&model) {
            // Nobody waits for it.
            let (reply, _) = oneshot::channel();
            self.order(Order::Load { model, config, reply });
        }
    }

    /// Lets the devices of every worker that has loaded what it must take batches.
    pub(super) fn settle_workers(&mut self) {
        let (mut busy, mut measuring) = (BTreeSet::new(), BTreeSet::new());
        for instance in self.instances.values() {
            measuring.extend(instance.measuring.values().copied());
            // While a model is being loaded for the first time, workers serve the others.
            if instance.phase != Phase::Loading {
                busy.extend(instance.awaiting.iter().chain(&instance.stale).copied());
            }
        }
        let joined = |staff: &&Staff| staff.joined;
        let mut served: BTreeSet<ClassId> = self.workers.values().filter(joined).map(|it| it.class).collect();
        for (id, staff) in &mut self.workers {
            // One that measures is disturbed by batches; but a class is not left without a device for it.
            let apart = measuring.contains(id) && served.contains(&staff.class);
            if !(staff.joined || staff.leaving || apart || busy.contains(id)) {
                staff.joined = true;
                served.insert(staff.class);
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
        // The classes of all that have joined, as they are now.
        let runs = |instance: &Instance| instance.profiles.keys().any(|class| served.contains(class));
        let runnable = self.ids(runs).into_iter().collect();
        let subclusters = self.subclusters();
        self.standing.send_modify(|standing| {
            (standing.workers, standing.devices, standing.runnable) = (workers, devices, runnable);
            standing.subclusters = subclusters;
        });
    }

    pub(super) fn tick(&mut self, passed: Duration) {
        for staff in self.workers.values() {
            if staff.joined {
                staff.meters.iter().for_each(|meter| meter.present(span(passed)));
            }
            let limit = self.settings.device_timeout;
            if staff.worker.behind() > limit {
                tracing::error!(worker = %staff.worker.name, "a batch is late by more than {limit:?}: the worker is given up");
                staff.worker.cut();
            }
        }
    }
}
