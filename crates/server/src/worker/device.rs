//! The thread that runs batches on one device.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};
use downbeat_engine::EngineError;
use downbeat_oip::Tensor;
use downbeat_profile::Span;

use super::Line;
use super::engines::Loaded;
use crate::clock::span;
use crate::link::message::{Finished, FromWorker, Measure, Measured, Run};
use crate::link::tensors;

/// What a device is to do, one after the other.
pub(super) enum Task {
    /// Take over a model that was loaded.
    Install(u32, Loaded),
    /// Forget a model.
    Drop(u32),
    /// Run a batch. No inputs where they were not understood.
    Run { run: Run, inputs: Option<Vec<Tensor>> },
    /// Find out how long a model takes.
    Measure(Measure),
    /// Let go of this: all that came before is done.
    Leave(Sender<()>),
}

impl Task {
    fn is_about(&self, model: u32) -> bool {
        match self {
            Task::Install(instance, _) | Task::Drop(instance) => *instance == model,
            Task::Run { run, .. } => run.instance == model,
            Task::Measure(measure) => measure.instance == model,
            Task::Leave(_) => false,
        }
    }
}

/// The thread that runs batches on one device.
pub(super) struct DeviceThread {
    index: u32,
    models: BTreeMap<u32, Loaded>,
    /// When a batch was last run.
    ran_at: Option<Instant>,
    line: Line,
}

/// How long after a batch more are to be expected.
const WANTED_FOR: Duration = Duration::from_secs(10);

impl DeviceThread {
    pub(super) fn start(index: u32, line: Line) -> io::Result<Sender<Task>> {
        let (tasks, queue) = crossbeam_channel::unbounded();
        let device = DeviceThread { index, models: BTreeMap::new(), ran_at: None, line };
        thread::Builder::new().name(format!("device-{index}")).spawn(move || device.run_all(&queue))?;
        Ok(tasks)
    }

    fn run_all(mut self, queue: &Receiver<Task>) {
        let mut later = VecDeque::new();
        while let Some(task) = later.pop_front().or_else(|| queue.recv().ok()) {
            match task {
                Task::Measure(measure) => self.measure(measure, queue, &mut later),
                Task::Install(instance, model) => self.install(instance, model, queue, &mut later),
                task => self.carry_out(task),
            }
        }
    }

    /// Takes over a model, and runs batches of other models in between.
    fn install(
        &mut self,
        instance: u32,
        mut model: Loaded,
        queue: &Receiver<Task>,
        later: &mut VecDeque<Task>,
    ) {
        let mut between = || self.do_meanwhile(instance, queue, later);
        // Some of what a GPU makes ready, it does for each thread. What fails here is said when it is asked for.
        let _ = guarded(|| model.warm_up(&mut between));
        self.models.insert(instance, model);
    }

    /// Does anything but measure, which takes the queue.
    fn carry_out(&mut self, task: Task) {
        match task {
            // In between, and so all at once.
            Task::Install(instance, mut model) => {
                let _ = guarded(|| model.warm_up(&mut || {}));
                self.models.insert(instance, model);
            }
            Task::Drop(instance) => drop(self.models.remove(&instance)),
            Task::Run { run, inputs } => self.run(&run, inputs),
            Task::Leave(done) => drop(done),
            Task::Measure(_) => {}
        }
    }

    fn run(&mut self, run: &Run, inputs: Option<Vec<Tensor>>) {
        let started = Instant::now();
        let result = match (self.models.get_mut(&run.instance), inputs) {
            (Some(model), Some(inputs)) => guarded(|| model.model.run(&inputs, run.rows)),
            (None, _) => Err(EngineError("the model is not loaded on this device".to_owned())),
            (_, None) => Err(EngineError("the batch is not understood".to_owned())),
        };
        let busy_ns = span(started.elapsed()).as_nanos();
        self.ran_at = Some(Instant::now());
        let (outputs, trouble) = match result {
            Ok(outputs) => (outputs, String::new()),
            Err(error) => (Vec::new(), error.to_string()),
        };
        let finished = Finished {
            batch: run.batch,
            device: self.index,
            outputs: outputs.iter().map(tensors::describe).collect(),
            busy_ns,
            trouble,
        };
        let payload = outputs.iter().map(|output| output.data.as_ref());
        // A broken connection is noticed by the thread that listens.
        let _ = self.line.say_with(FromWorker::Finished(finished), payload);
    }

    /// Measures a model, and runs batches of other models in between: the device may be the only one that they have.
    fn measure(&mut self, measure: Measure, queue: &Receiver<Task>, later: &mut VecDeque<Task>) {
        let instance = measure.instance;
        let run_max = Some(Span::from_nanos(measure.run_max_ns)).filter(|it| *it > Span::ZERO);
        let mut curtailed = false;
        let result = match self.models.remove(&instance) {
            Some(mut model) => {
                let mut between = || {
                    self.do_meanwhile(instance, queue, later);
                    let wanted = self.ran_at.is_some_and(|ran_at| ran_at.elapsed() < WANTED_FOR);
                    run_max.filter(|_| wanted).inspect(|_| curtailed = true)
                };
                let result = guarded(|| model.measure(&measure, &mut between));
                self.models.insert(instance, model);
                result
            }
            None => Err(EngineError("the model is not loaded on this device".to_owned())),
        };
        let (points, trouble) = match result {
            Ok(points) => (points, String::new()),
            Err(error) => (Vec::new(), error.to_string()),
        };
        let longest_ms = points.last().map_or(0.0, |point| point.latency_ms);
        curtailed &= run_max.is_some_and(|run_max| longest_ms > run_max.as_millis_f64());
        self.line.say(FromWorker::Measured(Measured { instance, points, trouble, curtailed }));
    }

    /// Does what waits and is not about `measured`, which is away.
    fn do_meanwhile(&mut self, measured: u32, queue: &Receiver<Task>, later: &mut VecDeque<Task>) {
        while let Ok(task) = queue.try_recv() {
            if task.is_about(measured) || matches!(task, Task::Measure(_)) {
                later.push_back(task);
            } else {
                self.carry_out(task);
            }
        }
    }
}

/// A model that panics has failed, and only that.
fn guarded<T>(run: impl FnOnce() -> Result<T, EngineError>) -> Result<T, EngineError> {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|_| Err(EngineError("the engine panicked; the worker's log says where".to_owned())))
}

#[cfg(test)]
mod tests;
