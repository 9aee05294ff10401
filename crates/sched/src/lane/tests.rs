//! The counted views of a lane, against the two ordered sets of the published algorithm, moved one by one.

use std::collections::BTreeSet;

use downbeat_profile::{LatencyProfile, Span};
use proptest::prelude::*;

use super::{Lane, View};
use crate::candidate::Finish;
use crate::margin::Margin;
use crate::queue::Ticket;
use crate::{Delays, Priority, RequestId, Time};

/// Candidate formation as Symphony's authors wrote it, step by step, with two sets.
///
/// Two things are said here that they leave open. A request due before the last one that was moved to the prefix joins it
/// there, as long as there is a prefix. And where only the prefix is left, because what it was given up for has been cancelled, it may run after all.
#[derive(Default)]
struct Sets {
    prefix: BTreeSet<Ticket>,
    suffix: BTreeSet<Ticket>,
    /// The last ticket that was moved to the prefix; it may have left since.
    moved: Option<Ticket>,
}

impl Sets {
    fn insert(&mut self, ticket: Ticket) {
        if !self.prefix.is_empty() && Some(ticket) < self.moved {
            self.prefix.insert(ticket)
        } else {
            self.suffix.insert(ticket)
        };
    }

    fn remove(&mut self, ticket: Ticket) -> bool {
        self.prefix.remove(&ticket) || self.suffix.remove(&ticket)
    }

    /// What is dropped, and what would run.
    fn form(&mut self, finish: &Finish<'_>, target: usize) -> (Vec<Ticket>, Vec<Ticket>) {
        let finish_at = |b: usize| finish.start(b as u32) + finish.profile.latency(b as u32);
        let largest = finish.profile.max_batch() as usize;
        let mut dropped = Vec::new();
        while let Some(&head) = self.suffix.first() {
            if head.deadline >= finish_at(self.suffix.len().min(largest)) {
                break;
            }
            self.suffix.remove(&head);
            self.prefix.insert(head);
            self.moved = Some(head);
        }
        let mut b = target.min(self.suffix.len()).max(1);
        while let Some(&head) = self.prefix.first() {
            if head.deadline >= finish_at(b) {
                break;
            }
            self.prefix.remove(&head);
            dropped.push(head);
        }
        let together: Vec<Ticket> = self.prefix.union(&self.suffix).copied().collect();
        let Some(head) = together.first() else { return (dropped, Vec::new()) };
        while b < together.len().min(largest) && head.deadline >= finish_at(b + 1) {
            b += 1;
        }
        (dropped, together[..b].to_vec())
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// A request due so many ms from now.
    Insert(u64),
    /// The request that came so many before the last one goes away.
    Cancel(u64),
    /// Time passes.
    Pass(u64),
    /// The batch is formed for a device that is free in so many ms, and started or not.
    Form { free_in: u64, start: bool },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0u64..30).prop_map(Step::Insert),
        1 => (0u64..10).prop_map(Step::Cancel),
        4 => (0u64..4).prop_map(Step::Pass),
        4 => (0u64..6, any::<bool>()).prop_map(|(free_in, start)| Step::Form { free_in, start }),
    ];
    prop::collection::vec(step, 0..120)
}

fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

/// Each view's counts, counted again.
fn check_counts(lane: &Lane) -> Result<(), TestCaseError> {
    for View { given_up, alive, prefix, suffix } in &lane.views {
        prop_assert!(prefix >= given_up);
        prop_assert_eq!(*alive, lane.iter().filter(|ticket| Some(*ticket) > *given_up).count());
        prop_assert_eq!(*suffix, lane.iter().filter(|ticket| Some(*ticket) > *prefix).count());
    }
    Ok(())
}

fn delays() -> impl Strategy<Value = Delays> {
    (0u64..2, 0u64..2).prop_map(|(control, data)| Delays { control: ms(control), data: ms(data) })
}

fn profile() -> impl Strategy<Value = LatencyProfile> {
    (0u32..3, 1u32..6, 1u32..12)
        .prop_map(|(alpha, beta, max)| LatencyProfile::linear(alpha.into(), beta.into(), max))
        .prop_filter_map("valid coefficients", Result::ok)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_lane_forms_the_batches_and_drops_the_heads_that_the_two_sets_do(
        steps in steps(), delays in delays(), profile in profile(), target in 1u32..8
    ) {
        let target = target.min(profile.max_batch());
        let mut lane = Lane::new(Priority(1), 1);
        let mut sets = Sets::default();
        let mut arrived = Vec::new();
        let mut now = Time::ZERO;
        for step in steps {
            match step {
                Step::Insert(due_in) => {
                    let id = RequestId(arrived.len() as u64);
                    let ticket = Ticket { deadline: now + ms(due_in), id };
                    arrived.push(ticket);
                    prop_assert!(lane.insert(ticket));
                    sets.insert(ticket);
                }
                Step::Cancel(back) => {
                    if let Some(&ticket) = arrived.iter().rev().nth(back as usize) {
                        prop_assert_eq!(lane.remove(ticket), sets.remove(ticket));
                    }
                }
                Step::Pass(by) => now = now + ms(by),
                Step::Form { free_in, start } => {
                    let finish = Finish { profile: &profile, margin: Margin::default(), delays: &delays, now, free_at: now + ms(free_in) };
                    let (dropped, expected) = sets.form(&finish, target as usize);
                    let formed = lane.form(0, &finish, target);
                    prop_assert_eq!(std::iter::from_fn(|| lane.take_lost(|_| true)).collect::<Vec<_>>(), dropped);
                    prop_assert_eq!(formed.map(|batch| batch.deadline), expected.first().map(|head| head.deadline));
                    let size = formed.map_or(0, |batch| batch.size);
                    // A copy takes the batch out; where it is started, the copy is what remains.
                    let mut rest = lane.clone();
                    let taken: Vec<_> = (0..size).filter_map(|_| rest.take(0)).collect();
                    prop_assert_eq!(&taken, &expected);
                    if start {
                        lane = rest;
                        taken.into_iter().for_each(|ticket| { sets.remove(ticket); });
                    }
                }
            }
            check_counts(&lane)?;
            prop_assert!(lane.iter().eq(sets.prefix.union(&sets.suffix).copied()));
        }
    }

    #[test]
    fn the_views_of_several_classes_count_right_and_a_request_is_lost_only_to_all_that_count(
        steps in steps(), delays in delays(), profiles in [profile(), profile()], targets in [1u32..8, 1u32..8]
    ) {
        let mut lane = Lane::new(Priority(1), 2);
        let mut arrived = Vec::new();
        let mut now = Time::ZERO;
        for (turn, step) in steps.into_iter().enumerate() {
            let class = turn % 2;
            match step {
                Step::Insert(due_in) => {
                    let id = RequestId(arrived.len() as u64);
                    arrived.push(Ticket { deadline: now + ms(due_in), id });
                    lane.insert(Ticket { deadline: now + ms(due_in), id });
                }
                Step::Cancel(back) => {
                    arrived.iter().rev().nth(back as usize).map(|&ticket| lane.remove(ticket));
                }
                Step::Pass(by) => now = now + ms(by),
                Step::Form { free_in, start } => {
                    let finish =
                        Finish { profile: &profiles[class], margin: Margin::default(), delays: &delays, now, free_at: now + ms(free_in) };
                    let size = lane.form(class, &finish, targets[class].min(finish.profile.max_batch())).map_or(0, |batch| batch.size);
                    prop_assert!(size <= lane.alive(class));
                    (0..if start { size } else { 0 }).for_each(|_| { lane.take(class); });
                    while let Some(lost) = lane.take_lost(|counts| start || counts == class) {
                        prop_assert!(lane.views[class].given_up >= Some(lost));
                        prop_assert!(!start || lane.views[1 - class].given_up >= Some(lost));
                    }
                    prop_assert!(start || lane.iter().all(|ticket| Some(ticket) > lane.views[class].given_up));
                }
            }
            check_counts(&lane)?;
        }
    }
}
