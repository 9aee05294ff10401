use downbeat_sched::ClassId;

use super::super::tests::{cluster, run};
use super::plan::{Plan, Share};
use super::*;

fn nexus(cluster: &Cluster, settings: &[(&str, &str)]) -> Nexus {
    let mut chosen = NexusSettings::default();
    settings.iter().for_each(|(key, value)| chosen.set(key, value).unwrap());
    Nexus::new(cluster, &chosen).unwrap()
}

/// Each device's models as (model, batch).
fn layout(plan: &Plan) -> Vec<Vec<(u32, u32)>> {
    let pair = |share: &Share| (share.model.0, share.batch);
    plan.devices.iter().map(|device| device.iter().map(pair).collect()).collect()
}

#[test]
fn saturated_models_take_whole_devices_and_the_rest_is_merged() {
    // l(b) = b + 5 for both. Model 0, SLO 40: 2 l(15) = 40, so a device carries 15 / 20 ms = 750 rps, and 1600 rps are
    // two devices and 100 rps. For these, (b - 1) * 10 + b + 5 <= 40 gives b = 4, duty cycle min(40 - 9, 40) = 31 ms.
    // Model 1, SLO 60, 50 rps: (b - 1) * 20 + b + 5 <= 60 gives b = 3, duty cycle min(60 - 8, 60) = 52 ms.
    // On one device the cycle is 31 ms: ceil(3.1) = 4 and ceil(1.55) = 2 requests, which run 9 + 7 <= 31 ms.
    let cluster = cluster(8, &[(1.0, 5.0, 64, 40.0, 1600.0), (1.0, 5.0, 64, 60.0, 50.0)]);
    let plan = nexus(&cluster, &[("headroom", "1")]).plan();
    assert_eq!(layout(&plan), [vec![(0, 15)], vec![(0, 15)], vec![(0, 4), (1, 2)]]);
    assert!((plan.devices[2][0].rps - 100.0).abs() < 1e-6);
}

#[test]
fn loads_whose_batches_do_not_fit_one_cycle_stay_apart() {
    // l(b) = b + 5, SLO 24, 300 rps each: 2 l(7) = 24. (b - 1) * 3.33 + b + 5 <= 24 gives b = 5, duty cycle
    // min(24 - 10, 16.7) = 14 ms; in it ceil(4.2) = 5 requests of each would run 10 + 10 > 14 ms.
    let cluster = cluster(8, &[(1.0, 5.0, 64, 24.0, 300.0); 2]);
    assert_eq!(layout(&nexus(&cluster, &[("headroom", "1")]).plan()), [vec![(0, 5)], vec![(1, 5)]]);
}

#[test]
fn by_default_the_plan_uses_the_whole_cluster() {
    let cluster = cluster(8, &[(1.0, 5.0, 64, 40.0, 100.0), (1.0, 5.0, 64, 60.0, 50.0)]);
    assert_eq!(nexus(&cluster, &[("headroom", "1")]).plan().devices.len(), 1);
    assert_eq!(nexus(&cluster, &[]).plan().devices.len(), 8);
}

#[test]
fn a_plan_never_has_more_devices_than_the_cluster_and_leaves_no_model_out() {
    // 24 models at rates for some 200 devices, on 2.
    let cluster = cluster(2, &[(1.0, 5.0, 64, 24.0, 5000.0); 24]);
    for headroom in ["fit", "1", "3"] {
        let plan = nexus(&cluster, &[("headroom", headroom)]).plan();
        assert_eq!(plan.devices.len(), 2);
        let mut models: Vec<u32> = plan.devices.iter().flatten().map(|share| share.model.0).collect();
        models.sort_unstable();
        models.dedup();
        assert_eq!(models.len(), 24);
    }
}

#[test]
fn early_drop_slides_past_heads_that_the_planned_batch_cannot_wait_for() {
    // l(b) = 2b + 2, SLO 12: 2 l(2) = 12, so the planned batch is 2. 0..4 runs the first request, 4..10 the next two.
    // At 10 a batch of 2 would end at 16: request 3 (due at 13.2) and request 4 (due at 15) go, although the latter
    // alone would end at 14; request 5 is left.
    let cluster = cluster(1, &[(2.0, 2.0, 64, 12.0, 300.0)]);
    let arrivals = [(0.0, 0), (0.5, 0), (1.0, 0), (1.2, 0), (3.0, 0), (4.5, 0)];
    let log = run(&cluster, &mut nexus(&cluster, &[("batch", "planned")]), &arrivals);
    assert_eq!(log.batches(), [(0, 0, 1, 0.0, 4.0), (0, 0, 2, 4.0, 10.0), (0, 0, 1, 10.0, 14.0)]);
    assert_eq!(log.dropped, [(3, 10.0), (4, 10.0)]);
}

#[test]
fn a_device_goes_round_its_models() {
    // Both models share the device. While model 0 runs 0..6, two more of it and one of model 1 arrive: model 1 is next.
    let cluster = cluster(1, &[(1.0, 5.0, 64, 100.0, 10.0); 2]);
    let arrivals = [(0.0, 0), (1.0, 0), (2.0, 0), (3.0, 1)];
    let log = run(&cluster, &mut nexus(&cluster, &[]), &arrivals);
    assert_eq!(log.batches(), [(0, 0, 1, 0.0, 6.0), (0, 1, 1, 6.0, 12.0), (0, 0, 2, 12.0, 19.0)]);
}

#[test]
fn requests_are_spread_by_the_planned_share_of_each_device() {
    // 750 rps on a device of its own and 375 rps on another: two to one.
    let cluster = cluster(2, &[(1.0, 5.0, 64, 40.0, 1125.0)]);
    let arrivals: Vec<(f64, u32)> = (0..6).map(|i| (f64::from(i) * 100.0, 0)).collect();
    let log = run(&cluster, &mut nexus(&cluster, &[("headroom", "1")]), &arrivals);
    let gpus: Vec<u32> = log.ran.iter().map(|ran| ran.gpu).collect();
    assert_eq!(gpus, [0, 1, 0, 0, 1, 0]);
}

#[test]
fn rates_that_moved_are_planned_for_after_the_least_epoch() {
    // Announced 1 rps, arriving 1600 rps: one device until 100 ms, three after.
    let cluster = cluster(8, &[(1.0, 5.0, 64, 40.0, 1.0)]);
    let mut policy = nexus(&cluster, &[("headroom", "1"), ("min_epoch", "100ms")]);
    let arrivals: Vec<(f64, u32)> = (0..320).map(|i| (f64::from(i) * 0.625, 0)).collect();
    let log = run(&cluster, &mut policy, &arrivals);
    let used = |from_ms: f64, to_ms: f64| {
        let within = log.ran.iter().filter(|ran| (from_ms..to_ms).contains(&ran.begin_ms));
        within.map(|ran| ran.gpu).max()
    };
    assert_eq!((used(0.0, 100.0), used(100.0, 300.0)), (Some(0), Some(2)));
}

#[test]
fn several_classes_are_refused() {
    let mut cluster = cluster(2, &[(1.0, 5.0, 64, 40.0, 1.0)]);
    cluster.gpus[1] = ClassId(1);
    let refusal = Nexus::new(&cluster, &NexusSettings::default()).unwrap_err();
    assert_eq!(refusal.to_string(), "nexus plans for one device class only, and this cluster has 2");
}

#[test]
fn a_turn_takes_more_than_was_planned_where_more_arrived() {
    // Two models on one device, each planned for a request per cycle: SLO 20 ms, l(b) = b + 1, 10 rps. While model 1
    // runs 0..2, fourteen requests of model 0 arrive.
    let cluster = cluster(1, &[(1.0, 1.0, 64, 20.0, 10.0), (1.0, 1.0, 64, 12.0, 10.0)]);
    let arrivals: Vec<(f64, u32)> = [(0.0, 1)].into_iter().chain([(1.0, 0); 14]).collect();
    let sizes = |batch| {
        let log = run(&cluster, &mut nexus(&cluster, &[("headroom", "1"), ("batch", batch)]), &arrivals);
        let of_model_0 = log.ran.iter().filter(|ran| ran.model == 0);
        of_model_0.map(|ran| ran.requests.len()).collect::<Vec<_>>()
    };
    // One at a time, until at 20 the next would end at 22, past its deadline at 21.
    assert_eq!(sizes("planned"), [1; 9]);
    assert_eq!(sizes("3"), [3, 3, 3, 3, 2]);
    // Model 1 tolerates a cycle of 12 - 2 ms, of which its own batch takes 2: seven requests run 8 ms.
    assert_eq!(sizes("duty"), [7, 7]);
    assert_eq!(sizes("deadline"), [14]);
}

#[test]
fn planning_for_immense_rates_stops_at_the_cluster_s_size() {
    // 1e12 rps would fill some billion devices.
    let cluster = cluster(2, &[(1.0, 5.0, 64, 40.0, 1e12), (1.0, 5.0, 64, 40.0, 1.0)]);
    for headroom in ["fit", "1", "100"] {
        assert!(nexus(&cluster, &[("headroom", headroom)]).plan().devices.len() <= 2);
    }
}

#[test]
fn spread_models_are_on_as_many_devices_as_asked_and_their_requests_on_all_of_them() {
    let cluster = cluster(3, &[(1.0, 5.0, 64, 40.0, 100.0), (1.0, 5.0, 64, 40.0, 100.0)]);
    let models_on = |spread| {
        let plan = nexus(&cluster, &[("spread", spread)]).plan();
        let models = |shares: &Vec<Share>| shares.iter().map(|share| share.model.0).collect();
        plan.devices.iter().map(models).collect::<Vec<Vec<u32>>>()
    };
    assert_eq!(models_on("2"), [vec![0], vec![0, 1], vec![1]]);
    assert_eq!(models_on("99"), vec![vec![0, 1]; 3]);
    let arrivals: Vec<(f64, u32)> = (0..100).map(|step| (10.0 * f64::from(step), 0)).collect();
    let log = run(&cluster, &mut nexus(&cluster, &[("spread", "2")]), &arrivals);
    let on_first = log.ran.iter().filter(|ran| ran.gpu == 0).count();
    assert!((30..=70).contains(&on_first), "{on_first} of 100 requests on the first of two devices");
    assert_eq!(log.ran.iter().map(|ran| ran.gpu).max(), Some(1));
}
