//! The turns of the scheduler: what is taken in before it decides, and devices that are spare.

use super::*;

/// A model of l(b) = b + 9 ms in batches of up to 512.
fn stage(shards: usize, rule: Rule, gpus: u32) -> Stage {
    Stage::of(shards, rule, gpus, |meter| InstanceSpec {
        profiles: vec![(CLASS, LatencyProfile::linear(1.0, 9.0, 512).unwrap())],
        open: false,
        queue_limit: 1_000,
        max_wait: Span::MAX,
        meter,
    })
}

/// Due at 40: its window opens at 40 - l(2) = 29.
#[test]
fn a_single_request_starts_at_once_on_an_idle_server_unless_spare_devices_stay_idle() {
    for shards in [1, 2] {
        for (rule, starts_at) in [(Rule::ADAPTIVE, 0), (IDLE, 29)] {
            let mut stage = stage(shards, rule, 1);
            let (_, mut answer) = stage.submit(ms(0), 40, 4);
            if starts_at > 0 {
                stage.pass(ms(starts_at - 1));
                assert_eq!(stage.sent(), []);
            }
            stage.pass(ms(starts_at));
            assert_eq!(stage.sent(), [(0, 1)]);
            stage.finish(ms(starts_at + 10), 0, 10);
            let text = stage.metrics.render();
            let busy = |start| text.lines().find(|line| line.contains(start)).unwrap().ends_with(" 0.01");
            assert_eq!([busy("start=\"due\""), busy("start=\"early\"")], [starts_at > 0, starts_at == 0]);
            assert!(answer.try_recv().unwrap().is_ok());
        }
    }
}

/// A request that comes before the window of an earlier one would have opened does not join that one, which has started.
#[test]
fn requests_that_come_one_after_the_other_on_an_idle_server_start_at_once() {
    for shards in [1, 2] {
        let mut stage = stage(shards, Rule::ADAPTIVE, 4);
        for request in 0..20 {
            let (_, mut answer) = stage.submit(ms(15 * request), 100, 4);
            assert_eq!(stage.sent().len() as u64, request + 1, "with {shards} shards");
            stage.finish(ms(15 * request + 10), request as usize, 10);
            assert!(answer.try_recv().unwrap().is_ok());
        }
    }
}

#[test]
fn requests_that_wait_for_the_scheduler_are_batched_before_any_of_them_starts_early() {
    for shards in [1, 2] {
        let mut stage = stage(shards, Rule::ADAPTIVE, 4);
        let _answers: Vec<_> = (0..300).map(|_| stage.submit_only(ms(0), 1_000)).collect();
        stage.scheduler.settle(ms(0));
        assert_eq!(stage.sent(), [(0, 300)]);
    }
}

/// Due at 40: the window is open from 29 to 30.
#[test]
fn a_thread_that_is_late_by_less_than_the_grace_decides_as_if_it_were_in_time() {
    for (late_ms, is_sent) in [(15, true), (19, true), (23, false)] {
        let mut stage = stage(1, IDLE, 1);
        let (_, mut answer) = stage.submit(ms(0), 40, 4);
        // Came while the thread was away: not known when the window opened.
        let _later = stage.submit_only(ms(31), 500);
        stage.scheduler.settle(ms(29 + late_ms));
        assert_eq!(stage.sent().len(), usize::from(is_sent), "{late_ms} ms late");
        assert_eq!(reason(&mut answer), (!is_sent).then_some(Reason::Expired));
    }
}

#[test]
fn a_device_that_leaves_has_been_sent_its_last_batch_when_that_is_said() {
    for shards in [1, 2] {
        let mut stage = stage(shards, IDLE, 2);
        let (_, _answer) = stage.submit(ms(0), 40, 4);
        let (settled, mut is_settled) = oneshot::channel();
        stage.scheduler.handle(ms(1), Command::DeviceLeft { gpu: GpuId(0), settled: Some(settled) });
        assert!(is_settled.try_recv().is_ok());
        stage.pass(ms(40));
        assert_eq!(stage.sent(), [(1, 1)]);
    }
}
