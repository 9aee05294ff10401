//! What must hold for every sequence of events, checked over random ones.

use downbeat_sched::*;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::cluster::{TestCluster, linear};

const MODELS: u32 = 4;
const GPUS: u32 = 4;

/// A random life of a small cluster: traffic of up to `widest` rows, cancellations, devices that come, go, fail and are
/// late, models that change. All random numbers come from `seed`. Now and then, another of `rules` is followed.
fn live(rules: &[Rule], seed: u64, classes: u16, widest: u32) -> TestCluster {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let delays = match random.random_range(0..3) {
        0 => Delays::default(),
        1 => Delays { control: Span::from_micros(100), data: Span::from_micros(50) },
        _ => Delays { control: Span::from_millis(1), data: Span::from_micros(500) },
    };
    let mut cluster = TestCluster::new(rules[0], delays);
    for model in 0..MODELS {
        cluster.add_model(ModelId(model), random_spec(&mut random, classes));
    }
    for gpu in 0..GPUS {
        cluster.join(GpuId(gpu), ClassId(random.random_range(0..classes)));
    }
    let faults = random.random_bool(0.7);
    let busy = random.random_range(0.2..4.0);
    let mut next_id = 0;
    for _ in 0..random.random_range(50..400) {
        let pause = Span::from_micros(random.random_range(0..4_000));
        cluster.run_until(cluster.now + Span::from_nanos((pause.as_nanos() as f64 / busy) as u64));
        if rules.len() > 1 && random.random_bool(0.05) {
            let class = ClassId(random.random_range(0..classes));
            cluster.follow(class, rules[random.random_range(0..rules.len())]);
        }
        let gpu = GpuId(random.random_range(0..GPUS));
        let model = ModelId(random.random_range(0..MODELS));
        match random.random_range(0..100) {
            0..=79 => {
                let slo = Span::from_micros(random.random_range(500..60_000));
                let deadline = cluster.now + slo;
                let priority = Priority(if random.random_bool(0.8) { 1 } else { random.random_range(1..4) });
                // Few rows are common, many are not; 0 counts as 1.
                let most = random.random_range(1..=widest);
                let rows = if widest == 1 { 1 } else { random.random_range(0..=most) };
                cluster.arrive(Request { id: RequestId(next_id), model, deadline, priority, rows });
                next_id += 1;
            }
            80 => cluster.drain_model(model),
            81..=84 if next_id > 0 => cluster.cancel(RequestId(random.random_range(0..next_id))),
            85..=88 if faults => cluster.delay(gpu, Span::from_micros(random.random_range(0..5_000))),
            89..=91 if faults => cluster.fail(gpu),
            92..=93 if faults => cluster.leave(gpu),
            94..=96 => cluster.join(gpu, ClassId(random.random_range(0..classes))),
            97 if faults => cluster.remove_model(model),
            98 => cluster.add_model(model, random_spec(&mut random, classes)),
            99 => {
                let class = ClassId(random.random_range(0..classes));
                cluster.change_profile(model, class, random_profile(&mut random));
            }
            _ => {}
        }
    }
    cluster.drain();
    cluster
}

fn random_spec(random: &mut Xoshiro256PlusPlus, classes: u16) -> ModelSpec {
    let first = random.random_range(0..classes);
    let deployed =
        (0..classes).filter(|&class| class == first || random.random_bool(0.5)).collect::<Vec<_>>();
    let mut spec = ModelSpec::new(
        deployed.into_iter().map(|class| (ClassId(class), random_profile(random))).collect::<Vec<_>>(),
    );
    if random.random_bool(0.2) {
        spec.queue_limit = random.random_range(0..20);
    }
    spec
}

fn random_profile(random: &mut Xoshiro256PlusPlus) -> LatencyProfile {
    let alpha_ms = [0.0, 0.02, 0.3, 1.0][random.random_range(0..4)];
    linear(alpha_ms, random.random_range(0.1..8.0), random.random_range(1..40))
}

/// The checks themselves are in [`TestCluster`]; here two runs of the same life must agree to the bit.
fn holds(rules: &[Rule], seed: u64) -> Result<(), TestCaseError> {
    for (classes, widest) in [(1, 1), (3, 1), (1, 6), (1, 45), (3, 45)] {
        let first = live(rules, seed, classes, widest);
        let again = live(rules, seed, classes, widest);
        prop_assert_eq!(first.log, again.log, "a replay differs");
    }
    Ok(())
}

/// Rules as the portfolio has them, Downbeat's own first.
const RULES: [Rule; 4] =
    [Rule::ADAPTIVE, Rule::DEFERRED, Rule::guarded(2.0), Rule::EAGER.with_drop(DropRule::Window)];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_request_leaves_once_and_no_device_is_wronged_under_deferral(seed: u64) {
        holds(&[Rule::DEFERRED], seed)?;
        holds(&[Rule::DEFERRED.with_drop(DropRule::Timeout).with_order(GpuOrder::EarliestFree)], seed)?;
    }

    #[test]
    fn every_request_leaves_once_and_no_device_is_wronged_under_guarded_deferral(seed: u64, k in 0.0..8.0) {
        holds(&[Rule::guarded(k)], seed)?;
        holds(&[Rule::guarded(k).with_drop(DropRule::Timeout)], seed)?;
    }

    #[test]
    fn every_request_leaves_once_and_no_device_is_wronged_under_the_adaptive_rule(seed: u64) {
        holds(&[Rule::ADAPTIVE], seed)?;
    }

    #[test]
    fn every_request_leaves_once_and_no_device_is_wronged_while_the_rule_changes(seed: u64) {
        holds(&RULES, seed)?;
    }

    #[test]
    fn every_request_leaves_once_and_no_device_is_wronged_under_eager_dispatch(seed: u64) {
        holds(&[Rule::EAGER], seed)?;
        holds(&[Rule::EAGER.with_drop(DropRule::Window).with_order(GpuOrder::EarliestFree)], seed)?;
    }
}

/// One model on two devices, with more or less traffic than they can take.
fn one_model(mut cluster: TestCluster, seed: u64) -> TestCluster {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    cluster.add_model(ModelId(0), random_spec(&mut random, 1));
    (0..2).for_each(|gpu| cluster.join(GpuId(gpu), ClassId(0)));
    let pause_us = random.random_range(50..5_000);
    for id in 0..random.random_range(50..400) {
        cluster.run_until(cluster.now + Span::from_micros(random.random_range(0..pause_us)));
        let deadline = cluster.now + Span::from_micros(random.random_range(500..60_000));
        let (id, model, priority) = (RequestId(id), ModelId(0), Priority(1));
        cluster.arrive(Request { id, model, deadline, priority, rows: 1 });
    }
    cluster.drain();
    cluster
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The timer may be asked for more often: nothing else differs. (Other drop rules plan when an offer is made.)
    #[test]
    fn requests_that_join_a_batch_in_silence_change_nothing_where_there_is_one_model(seed: u64) {
        let rule = Rule::DEFERRED.with_drop(DropRule::Timeout);
        let deeds = |cluster: TestCluster| -> Vec<_> {
            let is_deed = |(_, action, _): &(Time, Action, Vec<RequestId>)| {
                !matches!(action, Action::ArmTimer { .. })
            };
            cluster.log.into_iter().filter(is_deed).collect()
        };
        let silent = one_model(TestCluster::new(rule, Delays::default()), seed);
        let told = one_model(TestCluster::new(rule, Delays::default()).with_all_updates(), seed);
        prop_assert_eq!(deeds(silent), deeds(told));
    }

    #[test]
    fn where_spare_devices_stay_idle_nothing_starts_early(seed: u64) {
        let cluster = live(&[Rule::ADAPTIVE.without_early_starts()], seed, 3, 6);
        prop_assert!(cluster.started().iter().all(|batch| batch.reason != Release::Early));
    }
}

/// Any event at all, however absurd.
fn any_event() -> impl Strategy<Value = Event> {
    let edge = prop_oneof![Just(0u64), 0u64..50_000_000, Just(u64::MAX - 1), Just(u64::MAX)];
    let id32 = prop_oneof![0u32..4, Just(ID_LIMIT), Just(u32::MAX)];
    let class = prop_oneof![0u16..3, Just(CLASS_LIMIT), Just(u16::MAX)].prop_map(ClassId);
    let gpu = id32.clone().prop_map(GpuId);
    let model = prop_oneof![0u32..4, Just(ID_LIMIT), Just(u32::MAX)].prop_map(ModelId);
    let time = edge.clone().prop_map(Time::from_nanos);
    let batch = edge.clone().prop_map(BatchId);
    let rows = prop_oneof![4 => Just(1u32), 3 => 0u32..60, 1 => Just(u32::MAX)];
    let request = (edge, model.clone(), time.clone(), any::<u8>(), rows).prop_map(
        |(id, model, deadline, priority, rows)| Request {
            id: RequestId(id),
            model,
            deadline,
            priority: Priority(priority),
            rows,
        },
    );
    let profile =
        (0.0f64..3.0, 0.0f64..10.0, 1u32..50).prop_map(|(alpha, beta, max)| linear(alpha, beta + 0.01, max));
    let spec = (
        prop::collection::vec((class.clone(), profile.clone()), 0..4),
        any::<u8>(),
        0usize..10,
        any::<u64>(),
    )
        .prop_map(|(profiles, priority, queue_limit, max_wait)| ModelSpec {
            profiles,
            default_priority: Priority(priority),
            queue_limit,
            max_wait: Span::from_nanos(max_wait),
        });
    prop_oneof![
        6 => request.clone().prop_map(Event::Arrived),
        1 => request.prop_map(Event::Cancelled),
        3 => (gpu.clone(), batch).prop_map(|(gpu, batch)| Event::BatchFinished { gpu, batch }),
        1 => (gpu.clone(), time).prop_map(|(gpu, free_at)| Event::GpuLate { gpu, free_at }),
        2 => (gpu.clone(), class.clone()).prop_map(|(gpu, class)| Event::GpuJoined { gpu, class }),
        1 => gpu.clone().prop_map(|gpu| Event::GpuLeft { gpu }),
        1 => gpu.prop_map(|gpu| Event::GpuFailed { gpu }),
        2 => (model.clone(), spec).prop_map(|(model, spec)| Event::ModelAdded { model, spec }),
        1 => model.clone().prop_map(|model| Event::ModelRemoved { model }),
        1 => model.clone().prop_map(|model| Event::ModelDraining { model }),
        1 => (class.clone(), 0..RULES.len())
            .prop_map(|(class, rule)| Event::RuleChanged { class, rule: RULES[rule] }),
        1 => (model, class, profile)
            .prop_map(|(model, class, profile)| Event::ProfileChanged { model, class, profile }),
        2 => Just(Event::Timer),
    ]
}

fn bear(rule: Rule, delays: Delays, events: &[(u64, Event)]) {
    let mut scheduler = Scheduler::new(rule, delays);
    let mut out = Actions::new();
    for (now, event) in events {
        // Time may go back: the scheduler must bear it.
        scheduler.handle(Time::from_nanos(*now), event.clone(), &mut out);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_sequence_of_events_makes_the_scheduler_panic(
        events in prop::collection::vec((prop_oneof![0u64..60_000_000, Just(u64::MAX)], any_event()), 0..80),
        delays in prop_oneof![Just(0u64), Just(100_000), Just(u64::MAX)],
    ) {
        let delays = Delays { control: Span::from_nanos(delays), data: Span::from_nanos(delays / 2) };
        RULES.into_iter().for_each(|rule| bear(rule, delays, &events));
        bear(Rule::DEFERRED.with_order(GpuOrder::EarliestFree), delays, &events);
    }
}
