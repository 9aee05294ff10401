//! The dispatcher in virtual time: no test here waits for anything.

mod shapes;
mod turns;

use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use downbeat_oip::{DataType, Failure, Tensor};
use downbeat_sched::{Delays, Priority};
use tokio::sync::oneshot::Receiver;
use tokio::sync::oneshot::error::TryRecvError;

use super::*;
use crate::admission::Admission;
use crate::answers::due;
use crate::dispatch::{Completed, Rehearsed};
use crate::intake::DEFAULT_PRIORITY;
use crate::metrics::{Metrics, ModelMeter};

const CLASS: ClassId = ClassId(0);
const MODEL: InstanceId = InstanceId(7);

fn ms(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

/// Keeps what was sent.
#[derive(Clone, Default)]
struct Sink {
    batches: Arc<Mutex<Vec<(GpuId, Batch)>>>,
}

impl Outbox for Sink {
    fn send(&self, gpu: GpuId, batch: Batch) {
        self.batches.lock().unwrap().push((gpu, batch));
    }
}

/// Most tests are about batches that wait for their window, which those on spare devices do not.
const IDLE: Rule = Rule::ADAPTIVE.without_early_starts();

/// A dispatcher with one model of l(b) = b + 9 ms, as long as nothing else is said.
struct Stage {
    scheduler: Rehearsed,
    sink: Sink,
    metrics: Metrics,
    admission: Admission,
    next: u64,
}

impl Stage {
    fn new(gpus: u32) -> Stage {
        Stage::with_queue(gpus, 1000)
    }

    fn with_queue(gpus: u32, queue_limit: usize) -> Stage {
        Stage::with_spec(gpus, queue_limit, false)
    }

    /// With a model whose latency depends on the shape, too.
    fn open(gpus: u32) -> Stage {
        Stage::with_spec(gpus, 1000, true)
    }

    fn with_spec(gpus: u32, queue_limit: usize, open: bool) -> Stage {
        Stage::of(1, IDLE, gpus, |meter| InstanceSpec {
            profiles: vec![(CLASS, LatencyProfile::linear(1.0, 9.0, 8).unwrap())],
            open,
            queue_limit,
            max_wait: Span::MAX,
            meter,
        })
    }

    fn of(shards: usize, rule: Rule, gpus: u32, spec: impl FnOnce(Arc<ModelMeter>) -> InstanceSpec) -> Stage {
        let sink = Sink::default();
        let mut stage = Stage {
            scheduler: Rehearsed::new(rule, Delays::default(), shards, Box::new(sink.clone())),
            sink,
            metrics: Metrics::new().unwrap(),
            admission: Admission::new(1 << 20),
            next: 0,
        };
        for gpu in 0..gpus {
            stage.join(gpu);
        }
        let spec = spec(stage.metrics.model("m", "1", Span::from_millis(100)));
        stage.scheduler.handle(Time::ZERO, Command::Deploy { instance: MODEL, spec });
        stage
    }

    fn join(&mut self, gpu: u32) {
        let meter = self.metrics.device("cpu", &"cpu".parse().unwrap(), gpu);
        let command =
            Command::DeviceJoined { gpu: GpuId(gpu), class: CLASS, name: format!("cpu:{gpu}").into(), meter };
        self.scheduler.handle(Time::ZERO, command);
    }

    /// A request of one row, due after `within`.
    fn submit(
        &mut self,
        now: Time,
        within_ms: u64,
        columns: u64,
    ) -> (RequestId, Receiver<Result<Completed, Failure>>) {
        self.submit_at(DEFAULT_PRIORITY, now, within_ms, columns)
    }

    /// A request of one row, in which the scheduler has not taken a turn since.
    fn submit_only(&mut self, now: Time, within_ms: u64) -> Receiver<Result<Completed, Failure>> {
        let (id, job, answer) = self.job(DEFAULT_PRIORITY, now, within_ms, 4);
        self.scheduler.dispatcher.handle(now, Command::Submit { id, job });
        answer
    }

    fn submit_at(
        &mut self,
        priority: Priority,
        now: Time,
        within_ms: u64,
        columns: u64,
    ) -> (RequestId, Receiver<Result<Completed, Failure>>) {
        let (id, job, answer) = self.job(priority, now, within_ms, columns);
        self.scheduler.handle(now, Command::Submit { id, job });
        (id, answer)
    }

    fn job(
        &mut self,
        priority: Priority,
        now: Time,
        within_ms: u64,
        columns: u64,
    ) -> (RequestId, Job, Receiver<Result<Completed, Failure>>) {
        let (reply, answer) = oneshot::channel();
        let data = Bytes::from(vec![self.next as u8; columns as usize]);
        let input = Tensor { name: "x".to_owned(), datatype: DataType::Uint8, shape: vec![1, columns], data };
        let id = RequestId(self.next);
        self.next += 1;
        let job = Job {
            instance: MODEL,
            inputs: [input].into(),
            rows: 1,
            priority,
            arrived: now,
            due: now + Span::from_millis(within_ms),
            reply,
            permit: self.admission.admit(columns).unwrap(),
        };
        (id, job, answer)
    }

    /// Lets time pass up to and including `until`, as the runtime would.
    fn pass(&mut self, until: Time) {
        while self.scheduler.wake_at() <= until {
            let now = self.scheduler.wake_at();
            self.scheduler.settle(now);
        }
    }

    fn sent(&self) -> Vec<(u32, usize)> {
        self.sink.batches.lock().unwrap().iter().map(|(gpu, batch)| (gpu.0, batch.requests.len())).collect()
    }

    /// The device gives every request its own input back.
    fn finish(&mut self, now: Time, index: usize, busy_ms: u64) {
        let (gpu, batch, outputs) = {
            let batches = self.sink.batches.lock().unwrap();
            let (gpu, batch) = &batches[index];
            (*gpu, batch.id, batch.requests.iter().map(|(_, inputs)| inputs.to_vec()).collect())
        };
        let busy = Span::from_millis(busy_ms);
        self.scheduler.handle(now, Command::Finished { gpu, batch, busy, outputs: Ok(outputs) });
    }
}

fn reason(answer: &mut Receiver<Result<Completed, Failure>>) -> Option<Reason> {
    answer.try_recv().ok().map(|result| result.unwrap_err().reason)
}

#[test]
fn a_batch_waits_for_more_requests_and_each_gets_its_own_answer() {
    let mut stage = Stage::new(1);
    let mut answers: Vec<_> = (0..3).map(|_| stage.submit(ms(0), 40, 4).1).collect();
    stage.pass(ms(30));
    assert_eq!(stage.sent(), [(0, 3)]);
    stage.finish(ms(42), 0, 12);
    for (index, answer) in answers.iter_mut().enumerate() {
        let completed = answer.try_recv().unwrap().unwrap();
        assert_eq!(completed.outputs[0].data, vec![index as u8; 4]);
        assert_eq!(completed.batch_rows, 3);
        assert_eq!(completed.compute, Span::from_millis(12));
        assert_eq!(completed.queue, Span::from_millis(30));
    }
}

#[test]
fn a_request_that_cannot_make_it_is_answered_at_once_although_every_device_is_busy() {
    let mut stage = Stage::new(1);
    let (_, _running) = stage.submit(ms(0), 11, 4);
    stage.pass(ms(1));
    assert_eq!(stage.sent(), [(0, 1)]);
    // One request alone takes 10 ms: 9 are not enough, and that is known on arrival.
    let (_, mut hopeless) = stage.submit(ms(2), 9, 4);
    assert_eq!(reason(&mut hopeless), Some(Reason::Expired));
    // This one could have run if the device were free by 30 ms. It is not: known then, and not when the device is.
    let (_, mut late) = stage.submit(ms(2), 38, 4);
    stage.pass(ms(29));
    assert_eq!(reason(&mut late), None);
    stage.pass(ms(31));
    assert_eq!(reason(&mut late), Some(Reason::Expired));
    assert_eq!(stage.sent().len(), 1, "the device is still busy");
}

/// The model's SLO, the request's own timeout and the gRPC deadline: any one that is too short for the 10 ms that the
/// model takes is known at once, and none binds that is not the shortest.
#[test]
fn each_of_the_three_deadlines_binds_where_it_is_the_shortest() {
    let after = |ms| Some(Duration::from_millis(ms));
    for (slo, timeouts, within) in [
        (5, [None, None], 5),
        (50, [after(5), None], 5),
        (50, [None, after(5)], 5),
        (50, [after(70), after(60)], 50),
        (90, [after(60), after(50)], 50),
        (90, [after(50), after(60)], 50),
    ] {
        let arrived = ms(100);
        let due = due(arrived, Span::from_millis(slo), timeouts);
        assert_eq!(due, arrived + Span::from_millis(within));
        let mut stage = Stage::new(1);
        let (_, mut answer) = stage.submit(arrived, within, 4);
        if within < 10 {
            assert_eq!(reason(&mut answer), Some(Reason::Expired), "known at once");
            continue;
        }
        stage.pass(due - Span::from_millis(12));
        assert_eq!(stage.sent(), [], "waits for company as long as its deadline allows");
        stage.pass(due - Span::from_millis(10));
        assert_eq!(stage.sent(), [(0, 1)]);
        stage.finish(due, 0, 10);
        assert!(answer.try_recv().unwrap().is_ok());
    }
}

#[test]
fn requests_of_different_shapes_never_share_a_batch() {
    let mut stage = Stage::new(3);
    let _answers = [4, 5, 4].map(|columns| stage.submit(ms(0), 40, columns).1);
    stage.pass(ms(40));
    let batches = stage.sink.batches.lock().unwrap();
    for (_, batch) in batches.iter() {
        let shapes: Vec<_> = batch.requests.iter().map(|(_, inputs)| inputs[0].shape.clone()).collect();
        assert!(shapes.windows(2).all(|pair| pair[0] == pair[1]), "{shapes:?}");
    }
    assert_eq!(batches.iter().map(|(_, batch)| batch.requests.len()).sum::<usize>(), 3);
}

#[test]
fn what_a_dead_device_ran_is_run_elsewhere_and_answered_once() {
    let mut stage = Stage::new(2);
    let (_, mut answer) = stage.submit(ms(0), 60, 4);
    stage.pass(ms(50));
    let (first, _) = stage.sent()[0];
    stage.scheduler.handle(ms(30), Command::DevicesFailed { gpus: vec![GpuId(first)] });
    stage.pass(ms(60));
    assert_eq!(stage.sent().len(), 2, "sent again");
    assert_ne!(stage.sent()[1].0, first);
    // Word from the dead device is too late.
    stage.finish(ms(52), 0, 10);
    assert!(answer.try_recv().is_err());
    stage.finish(ms(55), 1, 10);
    assert!(answer.try_recv().unwrap().is_ok());
    assert_eq!(stage.scheduler.dispatcher.jobs(), 0);
}

#[test]
fn a_request_whose_devices_fail_one_after_the_other_is_given_up() {
    let mut stage = Stage::new(4);
    let (_, mut answer) = stage.submit(ms(0), 100, 4);
    for lost in 0..3 {
        stage.pass(ms(90));
        assert_eq!(stage.sent().len(), lost + 1);
        assert!(answer.try_recv().is_err(), "it is tried again");
        let (gpu, _) = stage.sent()[lost];
        stage.scheduler.handle(ms(80), Command::DevicesFailed { gpus: vec![GpuId(gpu)] });
    }
    assert_eq!(reason(&mut answer), Some(Reason::Failed));
    stage.pass(ms(200));
    assert_eq!(stage.sent().len(), 3, "the last device is spared");
    assert_eq!(stage.scheduler.dispatcher.jobs(), 0);
}

/// Told of its four devices one after the other, the request would be sent from each to the next, and given up as one
/// that ends workers.
#[test]
fn a_worker_that_ends_with_all_its_devices_counts_once() {
    let mut stage = Stage::new(5);
    let (_, mut answer) = stage.submit(ms(0), 100, 4);
    stage.pass(ms(90));
    assert_eq!(stage.sent(), [(0, 1)]);
    stage.scheduler.handle(ms(80), Command::DevicesFailed { gpus: (0..4).map(GpuId).collect() });
    stage.pass(ms(90));
    assert_eq!(stage.sent(), [(0, 1), (4, 1)], "not to a device that is gone too");
    stage.finish(ms(95), 1, 10);
    assert!(answer.try_recv().unwrap().is_ok());
}

/// Word that it has joined may reach the scheduler after it has failed: they come from different threads.
#[test]
fn a_device_that_fails_while_it_joins_is_given_nothing() {
    let mut stage = Stage::new(2);
    stage.scheduler.dispatcher.devices.fail(GpuId(0));
    stage.scheduler.handle(ms(0), Command::DevicesFailed { gpus: vec![GpuId(0)] });
    let (_, mut answer) = stage.submit(ms(0), 40, 4);
    stage.pass(ms(40));
    assert_eq!(stage.sent(), [(1, 1)]);
    stage.finish(ms(40), 0, 10);
    assert!(answer.try_recv().unwrap().is_ok());
}

#[test]
fn a_device_that_comes_back_before_it_is_done_still_answers() {
    let mut stage = Stage::new(1);
    let (_, mut answer) = stage.submit(ms(0), 40, 4);
    stage.pass(ms(30));
    stage.scheduler.handle(ms(31), Command::DeviceLeft { gpu: GpuId(0), settled: None });
    stage.join(0);
    stage.finish(ms(40), 0, 10);
    assert!(answer.try_recv().unwrap().is_ok());
}

#[test]
fn with_the_last_device_gone_clients_read_that_there_is_no_worker() {
    let mut stage = Stage::new(1);
    let (_, mut answer) = stage.submit(ms(0), 40, 4);
    stage.pass(ms(30));
    stage.scheduler.handle(ms(31), Command::DevicesFailed { gpus: vec![GpuId(0)] });
    stage.pass(ms(100));
    assert_eq!(reason(&mut answer), Some(Reason::Unavailable));
    let (_, mut next) = stage.submit(ms(101), 40, 4);
    assert_eq!(reason(&mut next), Some(Reason::Unavailable));
}

#[test]
fn a_client_that_went_away_leaves_the_queue() {
    let mut stage = Stage::new(1);
    let (id, answer) = stage.submit(ms(0), 40, 4);
    drop(answer);
    stage.scheduler.handle(ms(1), Command::Cancel { instance: MODEL, id });
    stage.pass(ms(100));
    assert_eq!(stage.sent(), []);
    assert_eq!(stage.scheduler.dispatcher.jobs(), 0);
    // Nobody knows it any more; saying it again does no harm.
    stage.scheduler.handle(ms(2), Command::Cancel { instance: MODEL, id });
}

#[test]
fn one_more_than_the_queue_holds_is_refused_at_once() {
    let mut stage = Stage::with_queue(1, 2);
    let _waiting = [stage.submit(ms(0), 90, 4), stage.submit(ms(0), 90, 4)];
    let (_, mut refused) = stage.submit(ms(0), 90, 4);
    assert_eq!(reason(&mut refused), Some(Reason::Overloaded));
}

#[test]
fn requests_of_another_priority_have_a_queue_of_their_own() {
    let mut stage = Stage::with_queue(1, 2);
    let [high, low] = [127, 129].map(Priority);
    let _waiting = [stage.submit_at(low, ms(0), 90, 4), stage.submit_at(low, ms(0), 90, 4)];
    let (_, mut refused) = stage.submit_at(low, ms(0), 90, 4);
    assert_eq!(reason(&mut refused), Some(Reason::Overloaded));
    let (_, mut taken_in) = stage.submit_at(high, ms(0), 90, 4);
    assert_eq!(reason(&mut taken_in), None);
    assert_eq!(stage.scheduler.dispatcher.waiting(), 3);
    stage.pass(ms(89));
    assert_eq!((stage.sent(), stage.scheduler.dispatcher.waiting()), (vec![(0, 3)], 0));
}

/// Due at 40 and started at 30. At 80 its time has passed twice over; the device is looked after whenever a quarter of
/// what it has taken by then has passed once more.
#[test]
fn a_request_on_a_device_that_hangs_is_answered_before_that_is_known_to_be_dead() {
    let mut stage = Stage::new(2);
    let (_, mut answer) = stage.submit(ms(0), 40, 4);
    stage.pass(ms(79));
    assert_eq!((stage.sent().len(), reason(&mut answer)), (1, None));
    stage.pass(ms(100));
    assert_eq!(reason(&mut answer), Some(Reason::Expired));
    assert!(stage.scheduler.dispatcher.is_idle());
    let (gpu, _) = stage.sent()[0];
    stage.scheduler.handle(ms(2_000), Command::DevicesFailed { gpus: vec![GpuId(gpu)] });
    stage.pass(ms(3_000));
    assert_eq!(stage.sent().len(), 1, "nobody waits for it: it is not run elsewhere");
    assert!(stage.scheduler.dispatcher.is_idle());
}

#[test]
fn a_model_is_withdrawn_when_its_last_request_has_left() {
    let mut stage = Stage::new(1);
    let (_, mut answer) = stage.submit(ms(0), 40, 4);
    let (done, mut withdrawn) = oneshot::channel();
    stage.scheduler.handle(ms(1), Command::Withdraw { instance: MODEL, done });
    let (_, mut not_taken_in) = stage.submit(ms(2), 40, 4);
    assert_eq!(not_taken_in.try_recv().unwrap_err(), TryRecvError::Closed);
    stage.pass(ms(30));
    assert!(withdrawn.try_recv().is_err());
    stage.finish(ms(40), 0, 10);
    assert!(answer.try_recv().unwrap().is_ok());
    assert!(withdrawn.try_recv().is_ok());
}

/// Due at 1,000 ms, so that it would wait for others until 1,000 - l(2). Withdrawn, or with all models, none can come.
#[test]
fn what_waits_for_others_starts_at_once_when_none_can_come_any_more() {
    for all in [false, true] {
        let mut stage = Stage::new(1);
        let (_, mut answer) = stage.submit(ms(0), 1_000, 4);
        stage.pass(ms(5));
        assert_eq!(stage.sink.batches.lock().unwrap().len(), 0);
        let (done, mut withdrawn) = oneshot::channel();
        let command = if all { Command::Drain } else { Command::Withdraw { instance: MODEL, done } };
        stage.scheduler.handle(ms(6), command);
        stage.pass(ms(7));
        stage.finish(ms(16), 0, 10);
        assert!(answer.try_recv().unwrap().is_ok());
        assert_eq!(withdrawn.try_recv().is_ok(), !all);
    }
}

#[test]
fn a_model_that_fails_fails_its_batch_and_nothing_else() {
    let mut stage = Stage::new(1);
    let (_, mut answer) = stage.submit(ms(0), 40, 4);
    stage.pass(ms(30));
    let (gpu, batch) =
        stage.sink.batches.lock().unwrap().first().map(|(gpu, batch)| (*gpu, batch.id)).unwrap();
    let outputs = Err("division by zero".to_owned());
    stage.scheduler.handle(ms(35), Command::Finished { gpu, batch, busy: Span::from_millis(5), outputs });
    let failure = answer.try_recv().unwrap().unwrap_err();
    assert_eq!((failure.reason, failure.message.as_str()), (Reason::Failed, "division by zero"));
    let (_, mut next) = stage.submit(ms(40), 40, 4);
    stage.pass(ms(70));
    stage.finish(ms(80), 1, 10);
    assert!(next.try_recv().unwrap().is_ok());
}

#[test]
fn a_batch_that_fails_is_run_again_request_by_request_and_only_the_culprit_fails() {
    let mut stage = Stage::new(3);
    let mut answers: Vec<_> = (0..3).map(|_| stage.submit(ms(0), 90, 4).1).collect();
    stage.pass(ms(77));
    assert_eq!(stage.sent(), [(0, 3)]);
    let fail = |stage: &mut Stage, now, index: usize| {
        let (gpu, batch) = {
            let batches = stage.sink.batches.lock().unwrap();
            (batches[index].0, batches[index].1.id)
        };
        let outputs = Err("index 77 is out of range".to_owned());
        stage.scheduler.handle(now, Command::Finished { gpu, batch, busy: Span::from_millis(1), outputs });
    };
    // Early enough that each can still be run alone.
    fail(&mut stage, ms(78), 0);
    assert!(answers.iter_mut().all(|answer| answer.try_recv().is_err()), "nobody has failed yet");
    for (index, now) in [(1, 88), (2, 88), (3, 88)] {
        assert_eq!(stage.sent().get(index).map(|(_, requests)| *requests), Some(1));
        if index == 2 { fail(&mut stage, ms(now), index) } else { stage.finish(ms(now), index, 10) }
    }
    let results: Vec<_> = answers.iter_mut().map(|answer| answer.try_recv().unwrap()).collect();
    let failed: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    assert_eq!(failed.iter().map(|failure| failure.reason).collect::<Vec<_>>(), [Reason::Failed]);
    assert_eq!(stage.scheduler.dispatcher.jobs(), 0);
    let streams = stage.scheduler.dispatcher.numbers.taken();
    assert_eq!(streams, 1, "streams of single requests are closed");
}

#[test]
fn a_device_that_turns_out_slower_gets_its_batches_earlier() {
    let mut stage = Stage::new(1);
    let mut now = ms(0);
    for index in 0..20 {
        let (_, _answer) = stage.submit(now, 100, 4);
        stage.pass(now + Span::from_millis(95));
        let sent = stage.sent().len();
        assert_eq!(sent, index + 1);
        now = now + Span::from_millis(200);
        // Twice as long as the profile says.
        stage.finish(now, index, 20);
    }
    // 100 ms less the 20 that it really takes, not the 10 of the profile.
    let (_, _answer) = stage.submit(now, 100, 4);
    stage.pass(now + Span::from_millis(81));
    assert_eq!(stage.sent().len(), 21);
}
