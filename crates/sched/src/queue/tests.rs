use std::collections::BTreeMap;
use std::ops::Bound;

use proptest::prelude::*;

use super::run::Run;
use super::{DeadlineQueue, Entry, Ticket};
use crate::{RequestId, Time};

fn ticket(deadline: u64, id: u64) -> Ticket {
    Ticket { deadline: Time::from_nanos(deadline), id: RequestId(id) }
}

fn entry(ticket: Ticket, rows: u32) -> Entry {
    Entry { ticket, rows, leeway_us: 0 }
}

#[derive(Clone, Debug)]
enum Step {
    /// The next request, due so long after all before it.
    Append(u64),
    /// The next request, due anywhere.
    Insert(u64),
    /// The same ticket once more.
    Again(usize),
    Cancel(usize),
    /// The first past a ticket leaves.
    Pop(Option<usize>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0u64..4).prop_map(Step::Append),
        4 => (0u64..400).prop_map(Step::Insert),
        1 => any::<usize>().prop_map(Step::Again),
        2 => any::<usize>().prop_map(Step::Cancel),
        2 => prop::option::weighted(0.3, any::<usize>()).prop_map(Step::Pop),
    ];
    prop::collection::vec(step, 0..600)
}

proptest! {
    #[test]
    fn a_deadline_queue_is_a_sorted_map_of_tickets(steps in steps()) {
        let mut queue = DeadlineQueue::default();
        let mut map: BTreeMap<Ticket, u32> = BTreeMap::new();
        let mut seen: Vec<Ticket> = vec![ticket(0, 0)];
        for step in steps {
            let id = seen.len() as u64;
            let rows = 1 + (id % 3) as u32;
            let any = |of: usize| seen[of % seen.len()];
            match step {
                Step::Append(later) => {
                    let last = map.last_key_value().map_or(0, |(last, _)| last.deadline.as_nanos());
                    seen.push(ticket(last + later, id));
                    prop_assert!(queue.insert(entry(seen[id as usize], rows)));
                    map.insert(seen[id as usize], rows);
                }
                Step::Insert(deadline) => {
                    seen.push(ticket(deadline, id));
                    prop_assert!(queue.insert(entry(seen[id as usize], rows)));
                    map.insert(seen[id as usize], rows);
                }
                Step::Again(of) => {
                    let there = map.contains_key(&any(of));
                    prop_assert_eq!(queue.insert(entry(any(of), 1)), !there);
                    map.entry(any(of)).or_insert(1);
                }
                Step::Cancel(of) => prop_assert_eq!(queue.remove(any(of)), map.remove(&any(of))),
                Step::Pop(after) => {
                    let after = after.map(any);
                    let first = past(&map, after).next();
                    prop_assert_eq!(queue.first_after(after), first);
                    prop_assert_eq!(queue.pop_after(after), first);
                    first.map(|first| map.remove(&first.ticket));
                }
            }
            prop_assert!(queue.iter().eq(past(&map, None)));
            let probe = seen[id as usize / 2];
            prop_assert!(queue.iter_after(Some(probe)).eq(past(&map, Some(probe))));
            prop_assert_eq!(queue.last_before(probe), map.range(..probe).next_back().map(|(ticket, _)| *ticket));
            prop_assert_eq!(queue.len(), map.len());
            prop_assert_eq!(queue.rows(), map.values().map(|&rows| u64::from(rows)).sum::<u64>());
            prop_assert!(queue.runs.iter().all(|run| !run.is_empty()));
        }
    }
}

fn past(map: &BTreeMap<Ticket, u32>, after: Option<Ticket>) -> impl Iterator<Item = Entry> + '_ {
    let from = after.map_or(Bound::Unbounded, Bound::Excluded);
    map.range((from, Bound::Unbounded)).map(|(&ticket, &rows)| entry(ticket, rows))
}

fn bytes(queue: &DeadlineQueue) -> usize {
    let runs = queue.runs.capacity() + queue.spare.capacity();
    let entries = queue.runs.len() + queue.spare.len();
    runs * size_of::<Run>() + entries * Run::CAPACITY * size_of::<Entry>()
}

#[test]
fn a_queued_request_takes_at_most_64_bytes_however_requests_come_and_go() {
    let check = |queue: &DeadlineQueue, what: &str| {
        let each = bytes(queue) as f64 / queue.len() as f64;
        assert!(each <= 64.0, "{what}: {each} bytes");
    };
    let mut queue = DeadlineQueue::default();
    for id in 0..100_000 {
        queue.insert(entry(ticket(id, id), 1));
    }
    check(&queue, "in order");
    for id in 0..50_000 {
        queue.remove(ticket(2 * id, 2 * id));
    }
    check(&queue, "every other one cancelled");
    let mut queue = DeadlineQueue::default();
    for id in 0..100_000 {
        queue.insert(entry(ticket(id * 7_919 % 100_003, id), 1));
    }
    check(&queue, "in any order");
    while queue.pop_after(None).is_some() {}
    assert!(queue.runs.is_empty() && queue.spare.len() == 1, "an emptied queue keeps one run");
}
