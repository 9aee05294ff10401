#[cfg(loom)]
mod model_checks {
    use crate::bell::Bell;
    use crate::sync::{Arc, AtomicBool, Ordering};

    /// loom reports a thread that sleeps for ever as a deadlock.
    #[test]
    fn whoever_is_given_something_to_do_does_not_sleep_on() {
        loom::model(|| {
            let bell = Arc::new(Bell::default());
            let something = Arc::new(AtomicBool::new(false));
            bell.own();
            let giver = loom::thread::spawn({
                let (bell, something) = (Arc::clone(&bell), Arc::clone(&something));
                move || {
                    something.store(true, Ordering::Relaxed);
                    bell.ring();
                }
            });
            while !something.load(Ordering::Relaxed) {
                bell.announce();
                if something.load(Ordering::Relaxed) {
                    bell.stay();
                } else {
                    bell.sleep();
                }
            }
            giver.join().unwrap();
        });
    }
}

#[cfg(not(loom))]
mod threads {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use crate::bell::Bell;

    #[test]
    fn a_sleeper_is_woken_for_every_thing_it_is_given() {
        let bell = Arc::new(Bell::default());
        let given = Arc::new(AtomicU32::new(0));
        let sleeper = std::thread::spawn({
            let (bell, given) = (Arc::clone(&bell), Arc::clone(&given));
            move || {
                bell.own();
                let mut done = 0;
                while done < 1_000 {
                    bell.announce();
                    if given.load(Ordering::Relaxed) > done {
                        bell.stay();
                        done += 1;
                    } else {
                        // So long that the test would not end if it were slept out often.
                        bell.sleep(Duration::from_secs(60));
                    }
                }
            }
        });
        for _ in 0..1_000 {
            given.fetch_add(1, Ordering::Relaxed);
            bell.ring();
        }
        sleeper.join().unwrap();
    }
}
