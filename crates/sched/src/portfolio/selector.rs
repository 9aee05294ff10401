//! Which rule to follow.

#[cfg(test)]
mod tests;

use super::portfolio_of;
use crate::{ClassId, Delays, Event, Priority, Rule, Span, Time};

use super::cluster_snapshot::ClusterSnapshot;
use super::loss_history::{LossHistory, RULE_COUNT};
use super::per_model_counts::PerModelCounts;
use super::replica::ShadowReplica;

/// How often it is decided whom to follow.
const ROUND: Span = Span::from_millis(250);

/// Rounds for which it is remembered what selector lost: a minute, or more where whole rounds pass without a
/// request.
const MEMORY: usize = 240;

/// They are woken when more than this share of the requests of a round was lost: a tenth of what an objective of 99 %
/// allows.
const ALARMING: f64 = 0.001;

/// On so many stages they rehearse at most.
const STAGES_MOST: u64 = 4;

/// So many requests are heard in a round, on all stages together, before there are fewer stages: who hears more than
/// these knows soon enough by one.
const HEARD_MOST: u64 = 4_000;

/// Rounds with fewer losses than that after which they go to sleep; or after which there is a single level of priority
/// again.
const CALM_ROUNDS: u32 = 40;

/// Rounds after waking in which nothing counts: rates are means over a second, and queues are empty at first.
const WARM_UP: u32 = 4;

/// By how many standard deviations one rule must be better than the one that is followed. More, and it takes longer
/// than it gains: who follows one of two that are hard to tell apart loses little by either.
const DOUBT: f64 = 0.7;

/// `adaptive` follows its own rule where that loses less than this share: it is the one that leaves devices idle.
const GOOD_ENOUGH: f64 = 0.003;

/// The last rounds, five seconds, are the present. What was before is forgotten where the present contradicts it.
const LATELY: usize = 20;

/// By how many standard deviations another rule must be better than the one that is followed for the present to
/// contradict what was before.
const CHANGED: f64 = 3.0;

/// All selector of a scheduler that follows [`Adaptive`](downbeat_sched::Adaptive).
///
/// They are told what that scheduler is told ([`hear`](Self::hear)) and what became of it ([`count`](Self::count)), and
/// say whom to follow ([`decide`](Self::decide)). As long as none is [awake](Self::is_active), requests need not be
/// told, only counted.
#[derive(Clone, Debug)]
pub struct RuleSelector {
    /// By number, the own one first.
    rules: [Rule; RULE_COUNT],
    delays: Delays,
    snapshot: ClusterSnapshot,
    /// None while nobody rehearses.
    stages: Vec<ShadowReplica>,
    arrived: PerModelCounts,
    record: LossHistory,
    /// Where another rule than `adaptive`'s own is followed.
    followed: Vec<(ClassId, usize)>,
    /// Since the last decision.
    counts: LossCounts,
    next_round_at: Time,
    rest_until: Time,
    /// Rounds since they were woken.
    awake: u32,
    /// Rounds without alarming losses, and with a single level of priority.
    calm: u32,
    level: u32,
    /// The levels of the last round that had any.
    last_levels: u64,
}

/// What came to the one that serves, and what it lost of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossCounts {
    /// Requests that came in.
    pub arrived: u64,
    /// Requests that were not answered in time, or not at all, as far as whoever counts knows.
    pub lost: u64,
    /// The [levels](Self::level) of those that came in.
    pub levels: u64,
}

impl LossCounts {
    /// What a priority adds to `levels`, by "or": its bits, and beside them those that it has not. Where both come to
    /// be set, there are two priorities.
    pub fn level(priority: Priority) -> u64 {
        u64::from(priority.0) | u64::from(!priority.0) << 8
    }

    /// Whether there are two priorities in this.
    pub fn are_several(levels: u64) -> bool {
        levels & (levels >> 8) & 0xFF != 0
    }
}

impl RuleSelector {
    /// A selector without models and devices. `own` is the rule of the scheduler that serves while nothing is lost, and
    /// `delays` are that scheduler's.
    pub fn new(own: Rule, delays: Delays) -> RuleSelector {
        RuleSelector {
            rules: portfolio_of(own),
            delays,
            snapshot: ClusterSnapshot::default(),
            stages: Vec::new(),
            arrived: PerModelCounts::default(),
            record: LossHistory::of_the_last(MEMORY),
            followed: Vec::new(),
            counts: LossCounts::default(),
            next_round_at: Time::ZERO,
            rest_until: Time::ZERO,
            awake: 0,
            calm: 0,
            level: CALM_ROUNDS,
            last_levels: 0,
        }
    }

    /// What the one that serves is told. Requests whose clients go away are run all the same.
    pub fn hear(&mut self, now: Time, event: &Event) {
        if let Event::Arrived(request) = event {
            // Of models that were not announced nothing is compared.
            if self.is_active() && self.snapshot.has(request.model) {
                self.arrived.count(request.model);
                self.stages.iter_mut().for_each(|stage| stage.arrive(now, request));
            }
        } else if self.snapshot.note(event) {
            // Its number may have been another model's.
            if let Event::ModelAdded { model, .. } = event {
                self.record.strike(*model);
                self.arrived.strike(*model);
                self.stages.iter_mut().for_each(|stage| stage.strike(*model));
            }
            self.stages.iter_mut().for_each(|stage| stage.hear(now, event));
        }
    }

    /// What came to the one that serves since this was last told, and what it lost.
    pub fn count(&mut self, counts: LossCounts) {
        self.counts.arrived += counts.arrived;
        self.counts.lost += counts.lost;
        self.counts.levels |= counts.levels;
    }

    /// Whether anybody rehearses.
    pub fn is_active(&self) -> bool {
        !self.stages.is_empty()
    }

    /// Says of each class of devices on which another rule is to be followed from now on. To be called at any time: it
    /// is decided a few times a second.
    pub fn decide(&mut self, now: Time, follow: impl FnMut(ClassId, Rule)) {
        if now < self.next_round_at {
            return;
        }
        let round = ROUND + now.since(self.next_round_at);
        self.next_round_at = now + ROUND;
        let counts = std::mem::take(&mut self.counts);
        // What came in until a late decision did not come in a single round.
        let arrived_a_round = (counts.arrived as f64 * (ROUND.as_secs_f64() / round.as_secs_f64())) as u64;
        let alarming = counts.lost as f64 > ALARMING * counts.arrived as f64;
        self.calm = if alarming { 0 } else { self.calm.saturating_add(1) };
        // Whom to serve where there are several levels is not a matter of how many are lost.
        let several = LossCounts::are_several(self.last_levels | counts.levels);
        self.level = if several { 0 } else { self.level.saturating_add(1) };
        if counts.levels != 0 {
            self.last_levels = counts.levels;
        }
        if self.level < CALM_ROUNDS || (self.calm >= CALM_ROUNDS && self.followed.is_empty()) {
            return self.sleep(follow);
        }
        if !self.is_active() {
            if alarming && now >= self.rest_until {
                self.wake(now, self.stages_for(arrived_a_round));
            }
            return;
        }
        self.awake = self.awake.saturating_add(1);
        if self.awake > WARM_UP {
            self.record.add(&self.arrived, self.stages.len() as u32, |rule| {
                let mut lost = PerModelCounts::default();
                self.stages.iter().for_each(|stage| lost.add(stage.lost_by(rule)));
                lost
            });
        }
        self.arrived.clear();
        // One that began now would hear less than the others: none comes before they have slept.
        self.stages.truncate(self.stages_for(arrived_a_round) as usize);
        self.stages.iter_mut().for_each(ShadowReplica::clear_lost);
        self.reconsider(follow);
    }

    /// Says whom to follow by what is remembered.
    fn reconsider(&mut self, mut follow: impl FnMut(ClassId, Rule)) {
        let classes = self.snapshot.classes();
        // Of a class without devices nothing is known.
        for (class, _) in self.followed.extract_if(.., |(class, _)| !classes.contains(class)) {
            follow(class, self.rules[0]);
        }
        if classes.iter().any(|class| self.is_contradicted(*class, self.followed_on(*class))) {
            self.record.forget_before_last(LATELY);
        }
        for class in classes {
            let now_followed = self.followed_on(class);
            let best = self.best_on(class, now_followed);
            if best != now_followed {
                self.followed.retain(|(of, _)| *of != class);
                if best != 0 {
                    self.followed.push((class, best));
                }
                follow(class, self.rules[best]);
            }
        }
    }

    /// Sends everybody to sleep, and follows `adaptive`'s own rule everywhere.
    fn sleep(&mut self, mut follow: impl FnMut(ClassId, Rule)) {
        self.stages.clear();
        self.arrived = PerModelCounts::default();
        self.record.clear();
        for (class, _) in self.followed.drain(..) {
            follow(class, self.rules[0]);
        }
    }

    /// Sends everybody to sleep, and lets nobody be woken before some time has counts: they cannot keep up.
    pub fn rest(&mut self, until: Time, follow: impl FnMut(ClassId, Rule)) {
        self.rest_until = until;
        self.sleep(follow);
    }

    /// How many stages there are to be where so many requests come in a round.
    fn stages_for(&self, arrived: u64) -> u32 {
        let models = self.snapshot.models() as u64;
        // One model meets nobody but itself, on any stage. Of many, each takes memory on every one, whether it has
        // requests or not.
        if models < 2 { 1 } else { (HEARD_MOST / arrived.max(models)).clamp(1, STAGES_MOST) as u32 }
    }

    fn wake(&mut self, now: Time, stages: u32) {
        let introductions = || self.snapshot.introductions();
        self.stages = (0..stages)
            .map(|number| ShadowReplica::new(&self.rules, number, self.delays, now, introductions))
            .collect();
        self.awake = 0;
    }

    fn followed_on(&self, class: ClassId) -> usize {
        let followed = self.followed.iter().find(|(of, _)| *of == class);
        followed.map_or(0, |(_, rule)| *rule)
    }

    /// Whether another rule is better than the one that is followed by what happened lately, and is not by all that is
    /// remembered.
    fn is_contradicted(&self, class: ClassId, followed: usize) -> bool {
        let all = self.record.about(self.snapshot.models_on(class));
        let lately = self.record.about_last(LATELY, self.snapshot.models_on(class));
        let mut rules = 0..RULE_COUNT;
        rules.any(|rule| lately.is_better(rule, followed, CHANGED) && !all.is_better(rule, followed, DOUBT))
    }

    /// The rule that is followed, unless another one is better beyond doubt; `adaptive`'s own where that is no worse,
    /// or good enough by now.
    fn best_on(&self, class: ClassId, followed: usize) -> usize {
        let all = self.record.about(self.snapshot.models_on(class));
        let lately = self.record.about_last(LATELY, self.snapshot.models_on(class));
        let own = all.bad(0);
        if own.min(lately.bad(0)) < GOOD_ENOUGH {
            return 0;
        }
        let incumbent = if own <= all.bad(followed) { 0 } else { followed };
        let better = (0..RULE_COUNT).filter(|&rule| all.is_better(rule, incumbent, DOUBT));
        better.min_by(|&one, &other| all.bad(one).total_cmp(&all.bad(other))).unwrap_or(incumbent)
    }
}
