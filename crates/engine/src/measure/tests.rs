use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

/// A clock that only the model moves.
#[derive(Clone, Default)]
struct FakeClock(Arc<AtomicU64>);

impl Clock for FakeClock {
    fn now(&mut self) -> Span {
        Span::from_micros(self.0.load(Ordering::Relaxed))
    }
}

/// A model that takes the given times, in microseconds, then goes on with the last one.
struct Scripted {
    clock: FakeClock,
    times_us: VecDeque<u64>,
}

impl Model for Scripted {
    fn run(&mut self, _inputs: &[Tensor], _rows: u32) -> Result<Vec<Tensor>, EngineError> {
        let time_us =
            if self.times_us.len() > 1 { self.times_us.pop_front() } else { self.times_us.front().copied() };
        let time_us = time_us.ok_or(EngineError("broken".to_owned()))?;
        self.clock.0.fetch_add(time_us, Ordering::Relaxed);
        Ok(Vec::new())
    }
}

fn settings() -> MeasureSettings {
    MeasureSettings {
        warmup: 2,
        round: 5,
        tolerance: 0.02,
        repeats_max: 50,
        time_max: Span::from_millis(10_000),
        latency_max: None,
    }
}

fn run(times_us: &[u64], sizes: &[u32], settings: &MeasureSettings) -> Result<Vec<Measured>, EngineError> {
    run_while(times_us, sizes, settings, &mut || None)
}

/// As `run`, while others can do without the device as long as `between` says.
fn run_while(
    times_us: &[u64],
    sizes: &[u32],
    settings: &MeasureSettings,
    between: &mut dyn FnMut() -> Option<Span>,
) -> Result<Vec<Measured>, EngineError> {
    let clock = FakeClock::default();
    let mut model = Scripted { clock: clock.clone(), times_us: times_us.iter().copied().collect() };
    measure(&mut model, sizes, &mut |_| Vec::new(), settings, &mut clock.clone(), between, &mut |_| {})
}

#[test]
fn a_steady_model_is_done_after_two_rounds() {
    let measured = run(&[1_500], &[1, 8], &settings()).unwrap();
    let steady = |batch| Measured { batch, median_ms: 1.5, spread: 0.0, repeats: 10 };
    assert_eq!(measured, [steady(1), steady(8)]);
}

#[test]
fn the_warm_up_does_not_count() {
    let measured = run(&[900_000, 700_000, 1_000], &[1], &settings()).unwrap();
    assert_eq!((measured[0].median_ms, measured[0].spread), (1.0, 0.0));
}

#[test]
fn a_drifting_model_is_measured_until_its_median_stands_still() {
    let mut times_us = vec![5_000; 7];
    times_us.extend([1_000; 1]);
    let measured = run(&times_us, &[1], &settings()).unwrap();
    assert_eq!(measured[0].median_ms, 1.0);
    assert!(measured[0].repeats > 10, "{measured:?}");
}

#[test]
fn a_model_that_never_settles_is_left_at_the_limit_of_runs_or_of_time() {
    let growing: Vec<u64> = (0..100).map(|i| 1_000 << (i / 5).min(20)).collect();
    let limited = MeasureSettings { repeats_max: 12, ..settings() };
    assert_eq!(run(&growing, &[1], &limited).unwrap()[0].repeats, 12);
    let hurried = MeasureSettings { time_max: Span::from_millis(3), warmup: 0, ..settings() };
    assert_eq!(run(&growing, &[1], &hurried).unwrap()[0].repeats, 3);
}

#[test]
fn sizes_after_one_that_takes_too_long_are_left_out() {
    let limited = MeasureSettings { latency_max: Some(Span::from_millis(2)), ..settings() };
    let batches = |time_us: u64| -> Vec<u32> {
        run(&[time_us], &[1, 2, 4], &limited).unwrap().iter().map(|measured| measured.batch).collect()
    };
    assert_eq!(batches(2_000), [1, 2, 4]);
    assert_eq!(batches(2_001), [1]);
}

#[test]
fn a_single_run_that_takes_too_long_for_others_is_the_last() {
    let summary = |times_us: &[u64]| -> Vec<(u32, f64, u32)> {
        let between = &mut || Some(Span::from_millis(25));
        let measured = run_while(times_us, &[1, 2, 4, 8], &settings(), between).unwrap();
        measured.iter().map(|size| (size.batch, size.median_ms, size.repeats)).collect()
    };
    assert_eq!(summary(&[900_000]), [(1, 900.0, 1)], "one run of the smallest, and no other");
    let mut times_us = vec![10_000; 12];
    times_us.extend([20_000; 12]);
    times_us.push(40_000);
    assert_eq!(summary(&times_us), [(1, 10.0, 10), (2, 20.0, 10), (4, 40.0, 1)]);
}

#[test]
fn one_disturbed_run_moves_the_spread_at_most_and_not_the_median() {
    let measured = run(&[1_000, 1_000, 80_000, 1_000], &[1], &settings()).unwrap();
    assert_eq!((measured[0].median_ms, measured[0].spread), (1.0, 0.0));
}

#[test]
fn progress_is_told_after_every_run_that_counts() {
    let clock = FakeClock::default();
    let mut model = Scripted { clock: clock.clone(), times_us: [1_000].into() };
    let (told, last_done) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let mut progress = |progress: &Progress| {
        assert_eq!(progress.sizes, 2);
        told.set(told.get() + 1);
        last_done.set(progress.done);
    };
    let inputs = &mut |_| Vec::new();
    let mut pauses = 0;
    let between = &mut || {
        pauses += 1;
        None
    };
    measure(&mut model, &[1, 2], inputs, &settings(), &mut clock.clone(), between, &mut progress).unwrap();
    assert_eq!((told.get(), last_done.get()), (20, 2));
    assert_eq!(pauses, 24, "others get their turn before every run, also those that warm up");
}

#[test]
fn a_model_that_fails_ends_the_measurement_with_its_error() {
    assert_eq!(run(&[], &[1], &settings()), Err(EngineError("broken".to_owned())));
}

#[test]
fn the_sizes_double_up_to_the_largest_which_is_always_there() {
    assert_eq!(sizes_up_to(0), [1]);
    assert_eq!(sizes_up_to(1), [1]);
    assert_eq!(sizes_up_to(8), [1, 2, 4, 8]);
    assert_eq!(sizes_up_to(11), [1, 2, 4, 8, 11]);
    assert_eq!(sizes_up_to(u32::MAX).last(), Some(&u32::MAX));
}
