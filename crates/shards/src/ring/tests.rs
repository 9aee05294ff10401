use super::{Words, ring};

/// Two words that belong together.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pair(u64);

impl Words for Pair {
    type Packed = [u64; 2];

    fn pack(self) -> [u64; 2] {
        [self.0, !self.0]
    }

    fn unpack([first, second]: [u64; 2]) -> Pair {
        assert_eq!(first, !second, "torn");
        Pair(first)
    }
}

#[cfg(not(loom))]
#[test]
fn a_ring_gives_back_what_was_put_in_and_refuses_more_than_it_holds() {
    let (mut producer, mut consumer) = ring(3);
    for round in 0..10 {
        for value in 0..4 {
            assert!(producer.push(Pair(10 * round + value)));
        }
        assert!(!producer.push(Pair(0)), "4 is 3 rounded up");
        for value in 0..4 {
            assert_eq!(consumer.pop(), Some(Pair(10 * round + value)));
        }
        assert_eq!(consumer.pop(), None);
    }
}

#[cfg(not(loom))]
#[test]
fn a_ring_carries_a_million_values_from_thread_to_thread_in_order() {
    let (mut producer, mut consumer) = ring(64);
    let sender = std::thread::spawn(move || {
        for value in 0..1_000_000 {
            while !producer.push(Pair(value)) {
                std::thread::yield_now();
            }
        }
    });
    for value in 0..1_000_000 {
        let received = loop {
            match consumer.pop() {
                Some(received) => break received,
                None => std::thread::yield_now(),
            }
        };
        assert_eq!(received, Pair(value));
    }
    sender.join().unwrap();
}

#[cfg(loom)]
mod model_checks {
    use super::{Pair, ring};

    #[test]
    fn a_ring_loses_tears_and_reorders_nothing() {
        loom::model(|| {
            let (mut producer, mut consumer) = ring(2);
            let sender = loom::thread::spawn(move || {
                let mut sent = 0;
                for _ in 0..4 {
                    if producer.push(Pair(sent)) {
                        sent += 1;
                    }
                }
                sent
            });
            let mut received = 0;
            for _ in 0..2 {
                if let Some(pair) = consumer.pop() {
                    assert_eq!(pair, Pair(received));
                    received += 1;
                }
            }
            let sent = sender.join().unwrap();
            while let Some(pair) = consumer.pop() {
                assert_eq!(pair, Pair(received));
                received += 1;
            }
            assert_eq!(received, sent);
        });
    }
}
