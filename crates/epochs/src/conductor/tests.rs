use std::path::Path;

use downbeat_milp::Backend;
use downbeat_plan::Unsimulated;
use downbeat_transition::{Options, StepKind};

use super::*;

const INTERVAL: Span = Span::from_millis(5_000);

/// Two services on A100s; throughput by the rule that needs no simulator.
fn problem(count: u32) -> Problem {
    let profiles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles/a100.csv");
    let text = format!(
        "gpu = \"A100-40GB\"\nprofiles = {:?}\nrule = \"half\"\ncount = {count}\n\
         [[service]]\nname = \"a\"\nmodel = \"roberta-large\"\nrate_rps = 100\nslo_ms = 250\n\
         [[service]]\nname = \"b\"\nmodel = \"albert-large-v2\"\nrate_rps = 100\nslo_ms = 350\n",
        profiles.display()
    );
    Problem::parse(&text, Path::new("two.toml"), &Unsimulated).unwrap()
}

/// A cluster on which changes are made at once.
struct Cluster {
    conductor: Conductor,
    backend: Backend,
    now: Time,
    layout: Layout,
    changes: Vec<(Time, Change)>,
    kept: Vec<String>,
}

impl Cluster {
    fn new(count: u32) -> Cluster {
        let mut conductor = Conductor::new(problem(count), Catalogue::builtin(), Settings::default());
        let backend = Backend::best(None).unwrap();
        let layout = conductor.begin(&run(&backend)).unwrap();
        Cluster { conductor, backend, now: Time::ZERO, layout, changes: Vec::new(), kept: Vec::new() }
    }

    /// Lets seconds pass in which services get these rates, and a share of what they get is bad.
    fn pass(&mut self, seconds: u64, rates: [f64; 2], bad: f64) {
        for _ in 0..seconds / 5 {
            self.now = self.now + INTERVAL;
            let supply = Supply::of(&self.conductor.problem, &self.layout);
            let signals: Vec<Signals> = (0..2)
                .map(|service| {
                    let (arrivals, gpus) = ((rates[service] * 5.0) as u64, supply.instances(service));
                    Signals {
                        now: self.now,
                        over: INTERVAL,
                        gpus,
                        coming: 0,
                        arrivals,
                        answered: arrivals,
                        bad: (arrivals as f64 * bad) as u64,
                        batches: arrivals / 4,
                        rows: arrivals,
                        waiting: 0,
                        needed: 0.5 * f64::from(gpus),
                        deviation: 0.0,
                        busy: vec![0.8; gpus as usize],
                    }
                })
                .collect();
            let seen = Seen { now: self.now, services: &signals, layout: &self.layout, under_way: None };
            match self.conductor.decide(&seen, &run(&self.backend)).unwrap() {
                Order::Change(change) => {
                    let works = Undertaking::new(self.layout.clone(), change.transition.clone());
                    self.layout = works.target();
                    self.changes.push((self.now, *change));
                }
                Order::Stay(Some(why)) => self.kept.push(why),
                _ => {}
            }
        }
    }

    fn capacity(&self, service: usize) -> f64 {
        Supply::of(&self.conductor.problem, &self.layout).rps(&self.conductor.problem, service)
    }

    fn gpus(&self) -> usize {
        self.layout.gpus.iter().filter(|gpu| !gpu.instances.is_empty()).count()
    }

    fn causes(&self) -> Vec<Cause> {
        self.changes.iter().map(|(_, change)| change.cause).collect()
    }
}

fn run(backend: &Backend) -> Run<'_> {
    Run { stop: &|| false, on_progress: &|_| {}, backend, seed: 1 }
}

#[test]
fn a_steady_demand_changes_nothing() {
    let mut cluster = Cluster::new(16);
    cluster.pass(3 * 3_600, [100.0, 100.0], 0.0);
    assert_eq!(cluster.causes(), []);
    assert_eq!(cluster.kept.len(), 3, "{:?}", cluster.kept);
}

#[test]
fn what_a_service_outgrows_is_answered_within_a_minute_and_nobody_loses() {
    let mut cluster = Cluster::new(16);
    cluster.pass(600, [100.0, 100.0], 0.0);
    let (before, began) = (cluster.capacity(1), cluster.now);
    let rate = 2.0 * cluster.capacity(0);
    cluster.pass(60, [rate, 100.0], 0.0);
    let (at, change) = cluster.changes.first().unwrap();
    assert_eq!(change.cause, Cause::Surge);
    assert!(at.since(began) <= Span::from_millis(35_000), "{}", change.why);
    cluster.pass(600, [rate, 100.0], 0.0);
    assert!(cluster.capacity(0) >= rate && cluster.capacity(1) >= before.min(110.0));
}

#[test]
fn an_epoch_with_less_demand_gives_gpus_back() {
    let mut cluster = Cluster::new(16);
    cluster.pass(600, [900.0, 700.0], 0.0);
    let most = cluster.gpus();
    cluster.pass(2 * 3_600, [60.0, 60.0], 0.0);
    assert!(cluster.gpus() < most, "{:?}", cluster.kept);
    assert_eq!(cluster.causes().last(), Some(&Cause::Epoch));
}

#[test]
fn a_gpu_that_is_gone_is_replaced() {
    let mut cluster = Cluster::new(16);
    cluster.pass(600, [600.0, 500.0], 0.0);
    cluster.pass(600, [600.0, 500.0], 0.0);
    let wanted = [cluster.capacity(0), cluster.capacity(1)];
    cluster.layout.gpus.remove(0);
    cluster.pass(30, [600.0, 500.0], 0.0);
    assert_eq!(cluster.causes().last(), Some(&Cause::Loss));
    let planned = cluster.conductor.planned_rps().to_vec();
    assert!((0..2).all(|service| cluster.capacity(service) >= planned[service].min(wanted[service]) * 0.999));
}

#[test]
fn losses_that_nothing_explains_are_answered_with_more() {
    let mut cluster = Cluster::new(16);
    cluster.pass(600, [100.0, 100.0], 0.0);
    let before = cluster.conductor.planned_rps().to_vec();
    cluster.pass(120, [100.0, 100.0], 0.05);
    assert_eq!(cluster.causes().first(), Some(&Cause::Overload));
    assert!(cluster.conductor.planned_rps()[0] > before[0] * 1.05);
}

#[test]
fn a_surge_that_would_rearrange_everything_gets_gpus_beside_what_there_is() {
    let mut cluster = Cluster::new(16);
    for round in 0..6u32 {
        cluster.pass(300, [100.0, 100.0], 0.0);
        let rate = cluster.capacity(round as usize % 2) * 1.02;
        let rates = if round % 2 == 0 { [rate, 100.0] } else { [100.0, rate] };
        cluster.pass(120, rates, 0.0);
    }
    for (_, change) in cluster.changes.iter().filter(|(_, change)| change.cause == Cause::Surge) {
        let beside = change.plan.notes.iter().any(|note| note.contains("beside what there is"));
        let only_creates = change.transition.steps.iter().all(|step| step.kind == StepKind::Create);
        assert!(!beside || only_creates, "{:?}", change.transition.steps);
        assert!(
            change.transition.expected_s <= 400.0,
            "{} takes {}",
            change.why,
            change.transition.expected_s
        );
    }
    assert!(cluster.causes().contains(&Cause::Surge));
}

#[test]
fn too_few_gpus_serve_what_they_can_and_say_so() {
    let mut cluster = Cluster::new(2);
    cluster.pass(120, [2_000.0, 2_000.0], 0.0);
    let (_, change) = cluster.changes.first().unwrap();
    assert!(change.share < 1.0 && change.plan.gpus == 2);
    assert!(change.why.contains("too few"), "{}", change.why);
    assert!(cluster.capacity(0) > 300.0 && cluster.capacity(1) > 100.0);
    let changes = cluster.changes.len();
    // It does not try again and again.
    cluster.pass(3_000, [2_000.0, 2_000.0], 0.0);
    assert!(cluster.changes.len() <= changes + 5, "{:?}", cluster.causes());
}

#[test]
fn a_change_that_leads_nowhere_is_stopped() {
    let mut cluster = Cluster::new(16);
    cluster.pass(600, [100.0, 100.0], 0.0);
    let target = cluster.layout.clone();
    let mut works = None;
    // A change to what there is, under way, when a surge comes.
    let capacity = cluster.capacity(0);
    for _ in 0..12 {
        cluster.now = cluster.now + INTERVAL;
        let supply = Supply::of(&cluster.conductor.problem, &target);
        let signals: Vec<Signals> = (0..2)
            .map(|service| Signals {
                now: cluster.now,
                over: INTERVAL,
                gpus: supply.instances(service),
                coming: 0,
                arrivals: if service == 0 { (capacity * 10.0) as u64 } else { 500 },
                answered: 500,
                bad: 0,
                batches: 100,
                rows: 500,
                waiting: 0,
                needed: 0.5,
                deviation: 0.0,
                busy: vec![0.5; supply.instances(service) as usize],
            })
            .collect();
        let options = Options::default();
        let nothing = downbeat_transition::plan(&target, &target, &Catalogue::builtin(), &options).unwrap();
        let under_way = works.get_or_insert_with(|| Undertaking::new(target.clone(), nothing));
        let seen = Seen { now: cluster.now, services: &signals, layout: &target, under_way: Some(under_way) };
        match cluster.conductor.decide(&seen, &run(&cluster.backend)).unwrap() {
            Order::Stop(why) => {
                assert!(why.contains("neither what there is nor what is to be"), "{why}");
                return;
            }
            Order::Stay(_) => {}
            Order::Change(change) => panic!("a second change: {}", change.why),
        }
    }
    panic!("it was never stopped");
}
