use downbeat_oip::Reason;
use proptest::prelude::*;

use super::*;

const MS: Duration = Duration::from_millis(1);
const WARMUP: Duration = Duration::from_millis(100);
const SLO: Duration = Duration::from_millis(20);

fn account(models: usize) -> Arc<Account> {
    Account::new(vec![Some(SLO); models], WARMUP, WARMUP + 1_000 * MS)
}

fn due(at_ms: u32, model: usize) -> Due {
    Due { at: at_ms * MS, model }
}

fn result() -> Ending {
    Ending::Answered(Answer::Result(None))
}

#[test]
fn latency_counts_from_when_the_request_was_due() {
    let account = account(1);
    let mut ticket = account.issue(due(200, 0));
    // The client was 15 ms late: the server's 6 ms make it 21.
    ticket.sent(215 * MS);
    ticket.settle(221 * MS, result());
    let state = account.close();
    assert_eq!(state.models[0].count(Outcome::Late), 1);
    assert_eq!(state.lag_us.max(), state.lag_us.highest_equivalent(15_000));
}

#[test]
fn an_answer_on_the_very_slo_is_in_time() {
    let account = account(1);
    account.issue(due(200, 0)).settle(200 * MS + SLO, result());
    account.issue(due(200, 0)).settle(200 * MS + SLO + Duration::from_nanos(1), result());
    let state = account.close();
    assert_eq!((state.models[0].count(Outcome::Ok), state.models[0].count(Outcome::Late)), (1, 1));
}

#[test]
fn the_warm_up_is_followed_and_not_counted() {
    let account = account(1);
    let ticket = account.issue(due(99, 0));
    assert_eq!(account.waiting(), 1);
    ticket.settle(101 * MS, result());
    assert_eq!((account.waiting(), account.close().models[0].offered), (0, 0));
}

#[test]
fn what_comes_after_the_end_changes_nothing() {
    let account = account(1);
    let late = account.issue(due(200, 0));
    let state = account.close();
    assert_eq!(state.models[0].count(Outcome::Unanswered), 1);
    late.settle(201 * MS, result());
    drop(account.issue(due(300, 0)));
    assert_eq!(account.waiting(), 0);
}

#[test]
fn the_first_message_of_each_kind_is_kept() {
    let account = account(1);
    for message in ["first", "second"] {
        let ending = Ending::Answered(Answer::Refused(Reason::Failed, message.to_owned()));
        account.issue(due(200, 0)).settle(201 * MS, ending);
    }
    assert_eq!(account.close().models[0].messages[&Outcome::Refused(Reason::Failed)], "first");
}

#[derive(Clone, Copy, Debug)]
enum Fate {
    Settled(u32),
    Refused,
    Lost,
    Dropped,
    Kept,
}

fn fates() -> impl Strategy<Value = Fate> {
    prop_oneof![
        (0u32..60).prop_map(Fate::Settled),
        Just(Fate::Refused),
        Just(Fate::Lost),
        Just(Fate::Dropped),
        Just(Fate::Kept)
    ]
}

proptest! {
    #[test]
    fn every_request_has_exactly_one_outcome(
        requests in prop::collection::vec((0u32..1_500, 0usize..3, any::<bool>(), fates()), 0..200),
    ) {
        let account = account(3);
        let mut kept = Vec::new();
        let counted = requests.iter().filter(|(at, ..)| *at * MS >= WARMUP).count() as u64;
        for (at, model, sent, fate) in requests {
            let mut ticket = account.issue(due(at, model));
            if sent {
                ticket.sent(at * MS);
            }
            match fate {
                Fate::Settled(after) => ticket.settle((at + after) * MS, result()),
                Fate::Refused => {
                    let answer = Answer::Refused(Reason::Expired, String::new());
                    ticket.settle(at * MS, Ending::Answered(answer));
                }
                Fate::Lost => ticket.settle(at * MS, Ending::Lost(Outcome::Transport, String::new())),
                Fate::Dropped => drop(ticket),
                Fate::Kept => kept.push(ticket),
            }
        }
        prop_assert_eq!(account.waiting(), kept.len() as u64);
        let state = account.close();
        for tally in &state.models {
            prop_assert_eq!(tally.offered, tally.outcomes.values().sum::<u64>());
            prop_assert_eq!(tally.bad(), tally.offered - tally.count(Outcome::Ok));
            prop_assert_eq!(tally.latency_us.len(), tally.count(Outcome::Ok) + tally.count(Outcome::Late));
        }
        let offered = state.models.iter().map(|tally| tally.offered).sum::<u64>();
        prop_assert_eq!(offered, counted);
        prop_assert_eq!(offered, state.slices.iter().map(|slice| slice.offered).sum::<u64>());
        drop(kept);
        prop_assert_eq!(account.waiting(), 0);
    }
}
