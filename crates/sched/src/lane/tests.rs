//! The counted views of a lane, against the two ordered sets of the published algorithm, moved one by one.

use std::collections::BTreeMap;

use downbeat_profile::{LatencyProfile, Span};
use proptest::prelude::*;

use super::{Lane, View};
use crate::candidate::Finish;
use crate::margin::Margin;
use crate::queue::{Entry, Ticket};
use crate::{Delays, Priority, RequestId, Time};

/// Candidate formation as Symphony's authors wrote it, step by step, with two sets.
///
/// Two things are said here that they leave open. A request due before the last one that was moved to the prefix joins
/// it there, as long as there is a prefix. And where only the prefix is left, because what it was given up for has been
/// cancelled, it may run after all.
///
/// And they know no rows. Here a batch is the longest run of requests that fits, and a head runs whole or not at all.
#[derive(Default)]
struct Sets {
    prefix: BTreeMap<Ticket, u32>,
    suffix: BTreeMap<Ticket, u32>,
    /// The last ticket that was moved to the prefix; it may have left since.
    moved: Option<Ticket>,
}

impl Sets {
    fn insert(&mut self, ticket: Ticket, rows: u32) {
        if !self.prefix.is_empty() && Some(ticket) < self.moved {
            self.prefix.insert(ticket, rows)
        } else {
            self.suffix.insert(ticket, rows)
        };
    }

    fn remove(&mut self, ticket: Ticket) -> Option<u32> {
        self.prefix.remove(&ticket).or_else(|| self.suffix.remove(&ticket))
    }

    fn together(&self) -> Vec<(Ticket, u32)> {
        self.prefix.iter().chain(&self.suffix).map(|(&ticket, &rows)| (ticket, rows)).collect()
    }

    /// What is dropped, and what would run.
    fn form(&mut self, finish: &Finish<'_>, target: u32) -> (Vec<Ticket>, Vec<Ticket>) {
        let largest = finish.profile.max_batch();
        let finish_at = |b: u32| finish.start(b) + finish.profile.latency(b);
        let in_time = |head: &Ticket, b: u32| b <= largest && head.deadline >= finish_at(b);
        let mut dropped = Vec::new();
        while let Some((&head, &rows)) = self.suffix.first_key_value() {
            let all: u32 = self.suffix.values().sum();
            if in_time(&head, rows) && in_time(&head, all.min(largest)) {
                break;
            }
            self.suffix.remove(&head);
            self.prefix.insert(head, rows);
            self.moved = Some(head);
        }
        let suffix: Vec<_> = self.suffix.clone().into_iter().collect();
        let goal = rows_of(run_within(target, &suffix)).max(1);
        while let Some((&head, &rows)) = self.prefix.first_key_value() {
            if in_time(&head, rows.max(goal)) {
                break;
            }
            self.prefix.remove(&head);
            dropped.push(head);
        }
        let together = self.together();
        let Some((head, _)) = together.first() else { return (dropped, Vec::new()) };
        let limit = (1..=largest).rev().find(|&b| in_time(head, b)).unwrap_or(0);
        (dropped, run_within(limit, &together).iter().map(|(ticket, _)| *ticket).collect())
    }
}

/// The longest run of `requests` from the first on with at most `limit` rows.
fn run_within(limit: u32, requests: &[(Ticket, u32)]) -> &[(Ticket, u32)] {
    let fits = |count: &usize| rows_of(&requests[..*count]) <= limit;
    &requests[..(0..=requests.len()).rev().find(fits).unwrap_or(0)]
}

fn rows_of(requests: &[(Ticket, u32)]) -> u32 {
    requests.iter().map(|(_, rows)| rows).sum()
}

/// Takes a batch of `rows` out of a lane.
fn take(lane: &mut Lane, class: usize, rows: u32) -> Vec<Ticket> {
    let mut taken = Vec::new();
    lane.share = rows;
    lane.take_share(class, |ticket, rows| taken.push((ticket, rows)));
    assert_eq!(rows_of(&taken), rows, "no request is split");
    taken.into_iter().map(|(ticket, _)| ticket).collect()
}

#[derive(Clone, Debug)]
enum Step {
    /// A request due so many ms from now, of so many rows.
    Insert(u64, u32),
    /// The request that came so many before the last one goes away.
    Cancel(u64),
    /// Time passes.
    Pass(u64),
    /// The batch is formed for a device that is free in so many ms, and started or not.
    Form { free_in: u64, start: bool },
}

/// Half of all times, every request has one row.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop_oneof![steps_of(1..2u32), steps_of(prop_oneof![1..4u32, 1..14u32])]
}

fn steps_of(rows: impl Strategy<Value = u32>) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0u64..30, rows).prop_map(|(due_in, rows)| Step::Insert(due_in, rows)),
        1 => (0u64..10).prop_map(Step::Cancel),
        4 => (0u64..4).prop_map(Step::Pass),
        4 => (0u64..6, any::<bool>()).prop_map(|(free_in, start)| Step::Form { free_in, start }),
    ];
    prop::collection::vec(step, 0..120)
}

fn entry(ticket: Ticket, rows: u32) -> Entry {
    Entry { ticket, rows, leeway_us: 0 }
}

fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

/// Each view's counts, counted again.
fn check_counts(lane: &Lane) -> Result<(), TestCaseError> {
    let rows_past = |after: Option<Ticket>| {
        lane.iter().filter(|entry| Some(entry.ticket) > after).map(|entry| u64::from(entry.rows)).sum::<u64>()
    };
    for View { given_up, alive, prefix, suffix, .. } in &lane.views {
        prop_assert!(prefix >= given_up);
        prop_assert_eq!(*alive, rows_past(*given_up));
        prop_assert_eq!(*suffix, rows_past(*prefix));
    }
    prop_assert_eq!(lane.queue.rows(), rows_past(None));
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
                Step::Insert(due_in, rows) => {
                    let id = RequestId(arrived.len() as u64);
                    let ticket = Ticket { deadline: now + ms(due_in), id };
                    arrived.push(ticket);
                    prop_assert!(lane.insert(entry(ticket, rows)));
                    sets.insert(ticket, rows);
                }
                Step::Cancel(back) => {
                    if let Some(&ticket) = arrived.iter().rev().nth(back as usize) {
                        prop_assert_eq!(lane.remove(ticket), sets.remove(ticket));
                    }
                }
                Step::Pass(by) => now = now + ms(by),
                Step::Form { free_in, start } => {
                    let finish = Finish { profile: &profile, margin: Margin::default(), delays: &delays, now, free_at: now + ms(free_in) };
                    let (dropped, expected) = sets.form(&finish, target);
                    let formed = lane.form(0, &finish, target);
                    prop_assert_eq!(std::iter::from_fn(|| lane.take_lost(|_| true)).collect::<Vec<_>>(), dropped);
                    prop_assert_eq!(formed.map(|batch| batch.deadline), expected.first().map(|head| head.deadline));
                    // A copy takes the batch out; where it is started, the copy is what remains.
                    let mut rest = lane.clone();
                    let taken = take(&mut rest, 0, formed.map_or(0, |batch| batch.rows));
                    prop_assert_eq!(&taken, &expected);
                    if start {
                        lane = rest;
                        taken.into_iter().for_each(|ticket| { sets.remove(ticket); });
                    }
                }
            }
            check_counts(&lane)?;
            prop_assert!(lane.iter().map(|entry| (entry.ticket, entry.rows)).eq(sets.together()));
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
                Step::Insert(due_in, rows) => {
                    let id = RequestId(arrived.len() as u64);
                    arrived.push(Ticket { deadline: now + ms(due_in), id });
                    lane.insert(entry(Ticket { deadline: now + ms(due_in), id }, rows));
                }
                Step::Cancel(back) => {
                    arrived.iter().rev().nth(back as usize).map(|&ticket| lane.remove(ticket));
                }
                Step::Pass(by) => now = now + ms(by),
                Step::Form { free_in, start } => {
                    let finish =
                        Finish { profile: &profiles[class], margin: Margin::default(), delays: &delays, now, free_at: now + ms(free_in) };
                    let formed = lane.form(class, &finish, targets[class].min(finish.profile.max_batch()));
                    if let Some(batch) = formed {
                        prop_assert!((1..=batch.reach).contains(&batch.rows) && batch.reach <= lane.alive(class));
                        prop_assert!(finish.whole(batch.rows) <= batch.deadline);
                        take(&mut lane, class, if start { batch.rows } else { 0 });
                    }
                    while let Some(lost) = lane.take_lost(|counts| start || counts == class) {
                        prop_assert!(lane.views[class].given_up >= Some(lost));
                        prop_assert!(!start || lane.views[1 - class].given_up >= Some(lost));
                    }
                    prop_assert!(start || lane.iter().all(|entry| Some(entry.ticket) > lane.views[class].given_up));
                }
            }
            check_counts(&lane)?;
        }
    }
}

/// Two classes: one takes batches of 4, the other of 16. The request of 8 rows is too large for the first, which says
/// nothing about a smaller one that is due before it.
#[test]
fn a_request_due_before_one_that_was_given_up_for_its_rows_is_judged_on_its_own() {
    let small = LatencyProfile::linear(1.0, 1.0, 4).unwrap();
    let delays = Delays::default();
    let finish = Finish {
        profile: &small,
        margin: Margin::default(),
        delays: &delays,
        now: Time::ZERO,
        free_at: Time::ZERO,
    };
    let mut lane = Lane::new(Priority(1), 2);
    let ticket = |due: u64| Ticket { deadline: Time::ZERO + ms(due), id: RequestId(due) };
    lane.insert(entry(ticket(40), 8));
    lane.insert(entry(ticket(50), 9));
    assert!(lane.form(0, &finish, 1).is_none());
    lane.insert(entry(ticket(45), 3));
    assert_eq!(lane.form(0, &finish, 1).map(|batch| batch.rows), Some(3));
    lane.insert(entry(ticket(30), 9));
    assert_eq!(lane.form(0, &finish, 1).map(|batch| batch.rows), Some(3), "too large as well");
    lane.insert(entry(ticket(20), 1));
    assert_eq!(lane.form(0, &finish, 1).map(|batch| (batch.rows, batch.blocked)), Some((1, true)));
}
