//! The choice of the rule to follow.

#[cfg(test)]
mod tests;

use super::cluster_snapshot::ClusterSnapshot;
use super::loss_history::LossHistory;
use super::per_model_counts::PerModelCounts;
use super::shadow::ShadowScheduler;
use super::{ALTERNATIVES, RULES};
use crate::{ClassId, Delays, Event, Priority, Rule, Span, Time};

/// How often it is decided which rule to follow.
const ROUND: Span = Span::from_millis(250);

/// Rounds whose losses are remembered: half a minute.
const MEMORY: usize = 120;

/// Shadows start when more than this share of the requests of a round is lost: a tenth of what an objective of 99 %
/// allows.
const ALARMING: f64 = 0.001;

/// Rounds with fewer losses than that, or with a single priority, after which shadows stop or may start.
const CALM_ROUNDS: u32 = 40;

/// Rounds of a shadow in which nothing counts: rates are means over a second, and queues are empty at first.
const WARM_UP: u32 = 4;

/// By how many standard deviations a rule must be better than the one that is followed: in one test of twenty, chance
/// alone is enough.
const DEVIATIONS: f64 = 1.645;

/// The own rule is followed where that loses less than this share: it is the one that uses spare devices well.
const GOOD_ENOUGH: f64 = 0.003;

/// Chooses the rule that a scheduler follows, by class of devices.
///
/// It learns what the scheduler learns ([`observe`](Self::observe)) and what that lost ([`count`](Self::count)), and
/// says what to follow ([`decide`](Self::decide)). As long as it is not [active](Self::is_active), requests need not be
/// observed, only counted.
#[derive(Clone, Debug)]
pub struct RuleSelector {
    own: Rule,
    delays: Delays,
    snapshot: ClusterSnapshot,
    /// One for each rule, the own one first; empty while nothing is lost.
    shadows: Vec<ShadowScheduler>,
    arrived: PerModelCounts,
    history: LossHistory,
    /// The classes on which another rule than the own one is followed, and its number.
    followed: Vec<(ClassId, usize)>,
    /// Since the last decision.
    counts: LossCounts,
    next_round_at: Time,
    inactive_until: Time,
    /// Rounds since the shadows started.
    rounds: u32,
    /// Rounds without alarming losses, and with a single priority.
    calm_rounds: u32,
    one_priority_rounds: u32,
    /// The priorities of the last round that had any.
    last_priorities: u64,
}

/// What came to a scheduler, and what it lost of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossCounts {
    /// Requests that came in.
    pub arrived: u64,
    /// Requests that were not answered in time, or not at all.
    pub lost: u64,
    /// The [priorities](Self::priority) of those that came in.
    pub priorities: u64,
}

impl LossCounts {
    /// The bits that a priority adds to `priorities`, by "or": its bits, and next to them those that it has not. Where both come
    /// to be set, there are two priorities.
    pub fn priority(priority: Priority) -> u64 {
        u64::from(priority.0) | u64::from(!priority.0) << 8
    }

    /// Returns `true` where these are two priorities or more.
    pub fn are_several(priorities: u64) -> bool {
        priorities & (priorities >> 8) & 0xFF != 0
    }
}

impl RuleSelector {
    /// A selector for a scheduler of this rule and these delays, without models and devices.
    pub fn new(own: Rule, delays: Delays) -> RuleSelector {
        RuleSelector {
            own,
            delays,
            snapshot: ClusterSnapshot::default(),
            shadows: Vec::new(),
            arrived: PerModelCounts::default(),
            history: LossHistory::of_the_last(MEMORY),
            followed: Vec::new(),
            counts: LossCounts::default(),
            next_round_at: Time::ZERO,
            inactive_until: Time::ZERO,
            rounds: 0,
            calm_rounds: 0,
            one_priority_rounds: CALM_ROUNDS,
            last_priorities: 0,
        }
    }

    /// Learns of an event that the scheduler learns of. Shadows run requests whose clients go away all the same.
    pub fn observe(&mut self, now: Time, event: &Event) {
        if let Event::Arrived(request) = event {
            // Of models that were not announced nothing is compared.
            if self.is_active() && self.snapshot.has(request.model) {
                self.arrived.count(request.model);
                self.shadows.iter_mut().for_each(|shadow| shadow.arrive(now, request));
            }
        } else if self.snapshot.note(event) {
            // Its number may have been another model's.
            if let Event::ModelAdded { model, .. } = event {
                self.history.forget(*model);
                self.arrived.forget(*model);
                self.shadows.iter_mut().for_each(|shadow| shadow.lost.forget(*model));
            }
            self.shadows.iter_mut().for_each(|shadow| shadow.observe(now, event.clone()));
        }
    }

    /// Learns what came to the scheduler since this was last called, and what it lost.
    pub fn count(&mut self, counts: LossCounts) {
        self.counts.arrived += counts.arrived;
        self.counts.lost += counts.lost;
        self.counts.priorities |= counts.priorities;
    }

    /// Returns `true` while shadows run.
    pub fn is_active(&self) -> bool {
        !self.shadows.is_empty()
    }

    /// Names each class of devices on which another rule is to be followed from now on. To be called at any time: it is
    /// decided a few times a second.
    pub fn decide(&mut self, now: Time, mut follow: impl FnMut(ClassId, Rule)) {
        if now < self.next_round_at {
            return;
        }
        self.next_round_at = now + ROUND;
        let counts = std::mem::take(&mut self.counts);
        let alarming = counts.lost as f64 > ALARMING * counts.arrived as f64;
        self.calm_rounds = if alarming { 0 } else { self.calm_rounds.saturating_add(1) };
        // Whom to serve where there are several priorities is not a matter of how many are lost.
        let several = LossCounts::are_several(self.last_priorities | counts.priorities);
        self.one_priority_rounds = if several { 0 } else { self.one_priority_rounds.saturating_add(1) };
        if counts.priorities != 0 {
            self.last_priorities = counts.priorities;
        }
        if self.one_priority_rounds < CALM_ROUNDS || self.calm_rounds >= CALM_ROUNDS {
            return self.stop(follow);
        }
        if !self.is_active() {
            if alarming && now >= self.inactive_until {
                self.start(now);
            }
            return;
        }
        self.rounds = self.rounds.saturating_add(1);
        if self.rounds > WARM_UP {
            self.history.add(&self.arrived, &self.shadows.iter().map(|shadow| &shadow.lost));
        }
        self.arrived.clear();
        self.shadows.iter_mut().for_each(|shadow| shadow.lost.clear());
        self.reconsider(&mut follow);
    }

    /// Stops the shadows, and starts none before `until`: they cannot keep up.
    pub fn back_off(&mut self, until: Time, follow: impl FnMut(ClassId, Rule)) {
        self.inactive_until = until;
        self.stop(follow);
    }

    fn start(&mut self, now: Time) {
        let rules = std::iter::once(self.own).chain(ALTERNATIVES);
        let shadow = |rule| ShadowScheduler::new(rule, self.delays, now, self.snapshot.introductions());
        self.shadows = rules.map(shadow).collect();
        self.rounds = 0;
    }

    /// Stops the shadows; the own rule is followed everywhere.
    fn stop(&mut self, mut follow: impl FnMut(ClassId, Rule)) {
        self.shadows.clear();
        self.arrived = PerModelCounts::default();
        self.history.clear();
        for (class, _) in self.followed.drain(..) {
            follow(class, self.own);
        }
    }

    /// Chooses anew by what is remembered.
    fn reconsider(&mut self, follow: &mut impl FnMut(ClassId, Rule)) {
        let classes = self.snapshot.classes();
        // Of a class without devices nothing is known.
        for (class, _) in self.followed.extract_if(.., |(class, _)| !classes.contains(class)) {
            follow(class, self.own);
        }
        for class in classes {
            let followed = self.followed_on(class);
            let best = self.best_on(class, followed);
            if best != followed {
                self.followed.retain(|(of, _)| *of != class);
                if best != 0 {
                    self.followed.push((class, best));
                }
                follow(class, if best == 0 { self.own } else { ALTERNATIVES[best - 1] });
            }
        }
    }

    fn followed_on(&self, class: ClassId) -> usize {
        self.followed.iter().find(|(of, _)| *of == class).map_or(0, |(_, rule)| *rule)
    }

    /// The rule that is followed, unless another one is better beyond doubt; the own one where that is no worse, or
    /// good enough by now.
    fn best_on(&self, class: ClassId, followed: usize) -> usize {
        let comparison = self.history.of_models(self.snapshot.models_on(class));
        let own = comparison.badness(0);
        if own < GOOD_ENOUGH {
            return 0;
        }
        let incumbent = if own <= comparison.badness(followed) { 0 } else { followed };
        let better = (0..RULES).filter(|&rule| comparison.is_better(rule, incumbent, DEVIATIONS));
        let badness = |rule: &usize| comparison.badness(*rule);
        better.min_by(|one, other| badness(one).total_cmp(&badness(other))).unwrap_or(incumbent)
    }
}
