//! A scheduler with its selector against the same scheduler alone, on traffic on which its own rule is not the
//! best.

#![allow(clippy::unwrap_used, reason = "a test fails where something does")]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use downbeat_sched::{
    Action, Actions, BatchId, ClassId, Delays, Event, GpuId, LatencyProfile, LossCounts, ModelId, ModelSpec,
    PortfolioScheduler, Priority, Request, RequestId, Rule, RuleSelector, Scheduler, Span, Time,
};
use rand::SeedableRng;
use rand_distr::{Distribution, Gamma};
use rand_xoshiro::Xoshiro256PlusPlus;

const CLASS: ClassId = ClassId(0);

/// alpha and beta of l(b), the objective and the rate of a model.
type Model = (f64, f64, f64, f64);

/// Six models on four devices, of which three run for longer than the third can wait. Its requests are lost, the own
/// rule hurries, and hurrying the long ones only makes them stand in its way more often: Symphony's rule loses half as
/// much.
const LONG_AND_SHORT: [Model; 6] = [
    (0.372, 8.06, 36.5, 112.0),
    (1.928, 23.44, 136.5, 5.6),
    (0.587, 1.42, 4.4, 112.0),
    (7.23, 27.96, 179.6, 11.2),
    (11.781, 56.47, 212.9, 5.6),
    (0.073, 4.01, 10.8, 225.0),
];

/// The shape of the gamma distribution of the time between two requests of a model.
const BURSTY: f64 = 0.2;

/// By then it must be known whom to follow.
const LEARNED_S: f64 = 20.0;

struct World {
    models: Vec<Model>,
    gpus: u32,
    seconds: f64,
    priorities: u8,
}

/// What became of a run.
#[derive(Debug, Default, PartialEq)]
struct Result {
    arrived: u64,
    lost: u64,
    /// Of each model, once there was time to learn.
    lost_at_last: [u64; LONG_AND_SHORT.len()],
    /// Everything that was started: when, of which model, on which device, how much.
    started: Vec<(Time, ModelId, GpuId, u32)>,
}

impl World {
    /// Runs it with whoever handles its events.
    fn run(&self, mut handle: impl FnMut(Time, Event, &mut Actions)) -> Result {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut out = Actions::new();
        for (model, (alpha, beta, ..)) in (0..).map(ModelId).zip(&self.models) {
            let spec = ModelSpec::new([(CLASS, LatencyProfile::linear(*alpha, *beta, 64).unwrap())]);
            handle(Time::ZERO, Event::ModelAdded { model, spec }, &mut out);
        }
        for gpu in (0..self.gpus).map(GpuId) {
            handle(Time::ZERO, Event::GpuJoined { gpu, class: CLASS }, &mut out);
        }
        let mut pause = |model: usize| {
            let gap = Gamma::new(BURSTY, 1.0 / (BURSTY * self.models[model].3)).unwrap();
            Span::from_secs_f64(gap.sample(&mut random))
        };
        let mut arrivals: BinaryHeap<Reverse<(Time, usize)>> =
            (0..self.models.len()).map(|model| Reverse((Time::ZERO + pause(model), model))).collect();
        let mut finishes: BinaryHeap<Reverse<(Time, GpuId, BatchId)>> = BinaryHeap::new();
        let mut timer = Time::NEVER;
        let end = Time::ZERO + Span::from_secs_f64(self.seconds);
        let learned = Time::ZERO + Span::from_secs_f64(LEARNED_S);
        let mut model_of: Vec<usize> = Vec::new();
        let mut result = Result::default();
        loop {
            let Some(&Reverse((arrival, model))) = arrivals.peek() else { return result };
            let finish = finishes.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at);
            let now = arrival.min(finish).min(timer);
            if now > end {
                return result;
            }
            let event = if now == finish {
                let Some(Reverse((_, gpu, batch))) = finishes.pop() else { return result };
                Event::BatchFinished { gpu, batch }
            } else if now == timer {
                timer = Time::NEVER;
                Event::Timer
            } else {
                arrivals.pop();
                arrivals.push(Reverse((now + pause(model), model)));
                let id = RequestId(result.arrived);
                result.arrived += 1;
                model_of.push(model);
                let deadline = now + Span::from_millis_f64(self.models[model].2);
                let priority = Priority(1 + (id.0 % u64::from(self.priorities)) as u8);
                Event::Arrived(Request { id, model: ModelId(model as u32), deadline, priority, rows: 1 })
            };
            handle(now, event, &mut out);
            for action in out.list() {
                match action {
                    Action::Start(start) => {
                        finishes.push(Reverse((start.finish_at, start.gpu, start.batch)));
                        result.started.push((now, start.model, start.gpu, start.rows));
                    }
                    Action::Answer { request, .. } => {
                        result.lost += 1;
                        result.lost_at_last[model_of[request.0 as usize]] += u64::from(now > learned);
                    }
                    Action::ArmTimer { at } => timer = *at,
                }
            }
            out.clear();
        }
    }

    fn alone(&self, rule: Rule) -> Result {
        let mut scheduler = Scheduler::new(Rule::ADAPTIVE, Delays::default());
        scheduler.handle(Time::ZERO, Event::RuleChanged { class: CLASS, rule }, &mut Actions::new());
        self.run(|now, event, out| scheduler.handle(now, event, out))
    }

    fn portfolio(&self) -> Result {
        let mut portfolio = PortfolioScheduler::new(Rule::ADAPTIVE, Delays::default());
        self.run(|now, event, out| portfolio.handle(now, event, out))
    }
}

fn long_and_short(priorities: u8) -> World {
    World { models: LONG_AND_SHORT.to_vec(), gpus: 4, seconds: 80.0, priorities }
}

#[test]
fn the_rule_that_loses_fewer_is_followed() {
    let world = long_and_short(1);
    let most_lost = |result: Result| result.lost_at_last.into_iter().max().unwrap_or(0);
    let [own, deferred] = [Rule::ADAPTIVE, Rule::DEFERRED].map(|rule| most_lost(world.alone(rule)));
    assert!(3 * deferred < 2 * own, "{own} lost, and {deferred} by deferral: there is not much to learn");
    let portfolio = most_lost(world.portfolio());
    assert!(
        portfolio < (own + deferred) / 2,
        "{portfolio} lost; {own} by the own rule, {deferred} by deferral"
    );
}

#[test]
fn the_same_events_give_the_same_decisions() {
    let world = long_and_short(1);
    assert_eq!(world.portfolio(), world.portfolio());
}

#[test]
fn where_nothing_is_lost_the_own_rule_is_followed_and_no_shadow_runs() {
    let mut world = long_and_short(1);
    world.models.iter_mut().for_each(|(.., rate)| *rate *= 0.1);
    let portfolio = world.portfolio();
    assert_eq!(portfolio.lost, 0);
    assert_eq!(portfolio, world.alone(Rule::ADAPTIVE));
    let mut watched = Watched::new();
    world.run(|now, event, out| {
        watched.handle(now, event, out);
        assert!(!watched.selector.is_active());
    });
}

#[test]
fn where_there_are_several_levels_the_own_rule_is_followed() {
    let world = long_and_short(2);
    let portfolio = world.portfolio();
    assert!(portfolio.lost > 0);
    assert_eq!(portfolio, world.alone(Rule::ADAPTIVE));
}

/// Requests of one priority.
fn one_level() -> u64 {
    LossCounts::priority(Priority(1))
}

/// What [`PortfolioScheduler`] is, with its selector in sight.
struct Watched {
    lead: Scheduler,
    selector: RuleSelector,
    followed: Vec<(ClassId, Rule)>,
    now: Time,
}

impl Watched {
    fn new() -> Watched {
        Watched {
            lead: Scheduler::new(Rule::ADAPTIVE, Delays::default()),
            selector: RuleSelector::new(Rule::ADAPTIVE, Delays::default()),
            followed: Vec::new(),
            now: Time::ZERO,
        }
    }

    /// At the end of [`long_and_short`], when another rule than the own one is followed.
    fn who_follows_another() -> Watched {
        let mut watched = Watched::new();
        long_and_short(1).run(|now, event, out| watched.handle(now, event, out));
        assert_eq!(watched.followed.last(), Some(&(CLASS, Rule::DEFERRED)));
        assert!(watched.selector.is_active());
        watched.followed.clear();
        watched
    }

    fn handle(&mut self, now: Time, event: Event, out: &mut Actions) {
        self.now = now;
        self.selector.observe(now, &event);
        let arrived = matches!(event, Event::Arrived(_));
        self.lead.handle(now, event, out);
        let answered = |action: &&Action| matches!(action, Action::Answer { .. });
        let lost = out.list().iter().filter(answered).count() as u64;
        self.selector.count(LossCounts { arrived: u64::from(arrived), lost, priorities: one_level() });
        self.selector.decide(now, |class, rule| {
            self.lead.handle(now, Event::RuleChanged { class, rule }, out);
            self.followed.push((class, rule));
        });
    }

    /// Rounds in which so many of a hundred requests are lost, of these levels.
    fn pass(&mut self, rounds: u32, lost: u64, priorities: u64) {
        for _ in 0..rounds {
            self.now = self.now + Span::from_millis(250);
            self.selector.count(LossCounts { arrived: 100, lost, priorities });
            self.selector.decide(self.now, |class, rule| self.followed.push((class, rule)));
        }
    }
}

#[test]
fn when_shadows_back_off_the_own_rule_is_followed() {
    let mut watched = Watched::who_follows_another();
    watched.selector.back_off(watched.now, |class, rule| watched.followed.push((class, rule)));
    assert_eq!(watched.followed, [(CLASS, Rule::ADAPTIVE)]);
}

#[test]
fn when_another_level_comes_the_own_rule_is_followed() {
    let mut watched = Watched::who_follows_another();
    let levels = [Priority(128), Priority(129)].map(LossCounts::priority);
    watched.pass(2, 10, levels[0] | levels[1]);
    assert_eq!(watched.followed, [(CLASS, Rule::ADAPTIVE)]);
    watched.pass(20, 10, levels[0]);
    assert!(!watched.selector.is_active());
    watched.pass(30, 10, levels[0]);
    assert!(watched.selector.is_active());
}

/// Few requests: each round has one, or none.
#[test]
fn levels_that_come_in_turn_are_several() {
    let mut watched = Watched::who_follows_another();
    let levels = [Priority(1), Priority(65)].map(LossCounts::priority);
    for level in [levels[0], 0, levels[1], 0, levels[0]] {
        watched.pass(1, 10, level);
    }
    assert_eq!(watched.followed, [(CLASS, Rule::ADAPTIVE)]);
    assert!(!watched.selector.is_active());
}

#[test]
fn two_priorities_are_told_from_one_whichever_they_are() {
    for one in 0..=u8::MAX {
        for other in 0..=u8::MAX {
            let levels = LossCounts::priority(Priority(one)) | LossCounts::priority(Priority(other));
            assert_eq!(LossCounts::are_several(levels), one != other, "{one} and {other}");
        }
    }
    assert!(!LossCounts::are_several(0));
}

/// Ten seconds after the last loss.
#[test]
fn when_it_is_calm_no_shadow_runs_and_the_own_rule_is_followed() {
    let mut watched = Watched::who_follows_another();
    watched.pass(35, 0, one_level());
    assert_eq!(watched.followed, []);
    assert!(watched.selector.is_active());
    watched.pass(10, 0, one_level());
    assert_eq!(watched.followed, [(CLASS, Rule::ADAPTIVE)]);
    assert!(!watched.selector.is_active());
}

#[test]
fn on_a_class_without_devices_the_own_rule_is_followed() {
    let mut watched = Watched::who_follows_another();
    (0..4).for_each(|gpu| watched.selector.observe(watched.now, &Event::GpuLeft { gpu: GpuId(gpu) }));
    watched.pass(1, 0, one_level());
    assert_eq!(watched.followed, [(CLASS, Rule::ADAPTIVE)]);
    watched.pass(50, 0, one_level());
    assert!(!watched.selector.is_active());
}

#[test]
fn shadows_that_start_before_there_is_a_device_learn_all_the_same() {
    let mut selector = RuleSelector::new(Rule::ADAPTIVE, Delays::default());
    let mut lead = Scheduler::new(Rule::ADAPTIVE, Delays::default());
    let mut followed = Vec::new();
    // Awake before anything is there: requests are lost.
    selector.count(LossCounts { arrived: 10, lost: 10, priorities: one_level() });
    selector.decide(Time::ZERO, |_, _| ());
    assert!(selector.is_active());
    long_and_short(1).run(|now, event, out| {
        selector.observe(now, &event);
        lead.handle(now, event, out);
        selector.count(LossCounts { arrived: 1, lost: 1, priorities: one_level() });
        selector.decide(now, |class, rule| followed.push((class, rule)));
    });
    assert!(followed.contains(&(CLASS, Rule::DEFERRED)), "{followed:?}");
}

/// A selector that knows of one model and one device, and requests for it at twice the rate that it can take.
struct Trial {
    selector: RuleSelector,
    now: Time,
    next: u64,
}

impl Trial {
    fn new() -> Trial {
        let mut selector = RuleSelector::new(Rule::ADAPTIVE, Delays::default());
        let spec = ModelSpec::new([(CLASS, LatencyProfile::linear(1.0, 5.0, 1).unwrap())]);
        selector.observe(Time::ZERO, &Event::ModelAdded { model: ModelId(0), spec });
        selector.observe(Time::ZERO, &Event::GpuJoined { gpu: GpuId(0), class: CLASS });
        Trial { selector, now: Time::ZERO, next: 0 }
    }

    fn run(&mut self, seconds: u64, lost_of_a_hundred: u64) {
        for _ in 0..seconds * 300 {
            self.now = self.now + Span::from_micros(3_333);
            self.next += 1;
            let deadline = self.now + Span::from_millis(30);
            let (id, model) = (RequestId(self.next), ModelId(0));
            let request = Request { id, model, deadline, priority: Priority(1), rows: 1 };
            self.selector.observe(self.now, &Event::Arrived(request));
            let lost = u64::from(self.next % 100 < lost_of_a_hundred);
            self.selector.count(LossCounts {
                arrived: 1,
                lost,
                priorities: LossCounts::priority(Priority(1)),
            });
            self.selector.decide(self.now, |_, _| ());
        }
    }
}

#[test]
fn shadows_start_with_losses_and_stop_when_it_is_calm() {
    let mut trial = Trial::new();
    trial.run(5, 0);
    assert!(!trial.selector.is_active());
    trial.run(1, 5);
    assert!(trial.selector.is_active());
    trial.run(60, 5);
    assert!(trial.selector.is_active());
    trial.selector.observe(trial.now, &Event::GpuJoined { gpu: GpuId(1), class: CLASS });
    trial.selector.observe(trial.now, &Event::GpuJoined { gpu: GpuId(2), class: CLASS });
    trial.run(60, 0);
    assert!(!trial.selector.is_active());
}

#[test]
fn shadows_that_cannot_keep_up_back_off() {
    let mut trial = Trial::new();
    trial.run(5, 5);
    let until = trial.now + Span::from_millis(10_000);
    trial.selector.back_off(until, |_, _| ());
    assert!(!trial.selector.is_active());
    trial.run(9, 5);
    assert!(!trial.selector.is_active());
    trial.run(2, 5);
    assert!(trial.selector.is_active());
}

#[test]
fn where_no_model_runs_there_is_nothing_to_follow_and_stray_numbers_are_nobodys() {
    let mut selector = RuleSelector::new(Rule::ADAPTIVE, Delays::default());
    selector.observe(Time::ZERO, &Event::GpuJoined { gpu: GpuId(0), class: CLASS });
    let spec = ModelSpec::new([(CLASS, LatencyProfile::linear(1.0, 5.0, 1).unwrap())]);
    selector.observe(Time::ZERO, &Event::ModelAdded { model: ModelId(u32::MAX), spec });
    for round in 0..100 {
        let now = Time::ZERO + Span::from_millis(300) * round;
        let (id, model, priority) = (RequestId(0), ModelId(u32::MAX), Priority(1));
        selector.observe(now, &Event::Arrived(Request { id, model, deadline: now, priority, rows: 1 }));
        selector.count(LossCounts { arrived: 10, lost: 5, priorities: one_level() });
        selector.decide(now, |class, rule| panic!("{class:?} is to follow {rule}"));
    }
    assert!(selector.is_active());
}
