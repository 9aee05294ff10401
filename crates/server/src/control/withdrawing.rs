//! How models end: no more requests come in, what is there is answered, and then the workers let go of them.

use std::sync::Arc;

use downbeat_oip::Failure;
use downbeat_repository::ModelDefinition;
use tokio::sync::oneshot;

use super::cast::Phase;
use super::{Control, Doing, Echo, UnderWay};
use crate::catalogue::{State, UNLOADED};
use crate::dispatch::{Command, InstanceId};

impl Control {
    pub(super) fn unload(&mut self, model: &str, reply: oneshot::Sender<Result<(), Failure>>) {
        let of_model: Vec<InstanceId> = self.ids(|instance| instance.definition.name == model);
        if of_model.is_empty() {
            // What is not there is unloaded already.
            let _ = reply.send(Ok(()));
            return;
        }
        self.under_way.insert(model.to_owned(), UnderWay { what: Doing::Unloading, reply });
        for id in of_model {
            self.withdraw(id, State::Unloading);
        }
        tracing::info!(model, "unloading");
    }

    /// Takes no more requests for an instance, and forgets it when the last has left. One that is on its way out stays
    /// on it.
    pub(super) fn withdraw(&mut self, id: InstanceId, state: State) {
        let Some(instance) = self.instances.get_mut(&id) else { return };
        if instance.phase == Phase::Leaving {
            return;
        }
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

    pub(super) fn withdrawn(&mut self, id: InstanceId) {
        let Some(instance) = self.instances.remove(&id) else { return };
        for staff in self.workers.values() {
            staff.worker.unload(id);
        }
        let (name, version) = (&instance.definition.name, instance.version.number);
        let others = self.ids(|other| other.definition.name == *name);
        let of_version = |id: &InstanceId| self.instances[id].version.number == version;
        // A newer one may have taken its place, or it was never ready.
        let unloading =
            self.catalogue.versions(name).get(&version).is_some_and(|it| it.state == State::Unloading);
        if unloading && !others.iter().any(of_version) {
            self.catalogue.set(name, version, State::Unavailable, UNLOADED);
            tracing::info!(model = name, version, "unloaded");
        }
        let is_unloaded = others.is_empty()
            && self.under_way.get(name).is_some_and(|under_way| under_way.what == Doing::Unloading);
        if is_unloaded {
            self.done(name, Ok(()));
        }
        self.settle_workers();
    }

    /// Withdraws what newer instances stand in for, and the versions that a complete load did not find any more.
    pub(super) fn replace_older(&mut self, model: &str, complete: bool) {
        let ready = self.ids(|it| it.definition.name == model && it.phase == Phase::Ready);
        let version = |id: &InstanceId| self.instances[id].version.number;
        let versions: Vec<u64> = ready.iter().map(version).collect();
        let newest = ready.last().filter(|_| complete).map(|id| Arc::clone(&self.instances[id].definition));
        for (index, id) in ready.into_iter().enumerate() {
            let replaced = versions[index + 1..].contains(&versions[index]);
            let is_gone = |new: &Arc<ModelDefinition>| {
                new.versions.iter().all(|version| version.number != versions[index])
            };
            if replaced {
                self.withdraw(id, State::Ready);
            } else if newest.as_ref().is_some_and(is_gone) {
                self.withdraw(id, State::Unloading);
            }
        }
    }
}
