use super::Mailbox;

#[cfg(not(loom))]
#[test]
fn a_mailbox_keeps_the_latest_and_asks_to_be_listed_once() {
    let mailbox = Mailbox::<3>::default();
    assert!(mailbox.write(&[1, 2]));
    assert!(!mailbox.write(&[3, 4, 5]), "it is on the list already");
    let mut words = [0; 3];
    assert!(mailbox.read(&mut words));
    assert_eq!(words, [3, 4, 5]);
    assert!(mailbox.write(&[6, 7, 8]), "it was taken off the list");
}

#[cfg(loom)]
mod model_checks {
    use super::Mailbox;
    use crate::ring::{Words, ring};
    use crate::sync::Arc;

    #[derive(Clone, Copy)]
    struct Listed;

    impl Words for Listed {
        type Packed = [u64; 1];

        fn pack(self) -> [u64; 1] {
            [0]
        }

        fn unpack(_: [u64; 1]) -> Listed {
            Listed
        }
    }

    /// Whatever the order of steps, the reader never sees a mixture, never goes back, and when the list is empty it has
    /// seen the last value. The list never has more entries than there are mailboxes, and so needs no more room.
    #[test]
    fn the_last_word_is_read_whole() {
        loom::model(|| {
            let mailbox = Arc::new(Mailbox::<2>::default());
            let (mut list, mut listed) = ring(1);
            let writer = loom::thread::spawn({
                let mailbox = Arc::clone(&mailbox);
                move || {
                    for value in 1..=2 {
                        if mailbox.write(&[value, value]) {
                            assert!(list.push(Listed), "no room on the list");
                        }
                    }
                }
            });
            let mut seen = 0;
            let mut read_if_listed = || {
                if listed.pop().is_some() {
                    let mut words = [0; 2];
                    if mailbox.read(&mut words) {
                        assert_eq!(words[0], words[1], "a mixture");
                        assert!(words[0] >= seen, "gone back");
                        seen = words[0];
                    }
                }
            };
            read_if_listed();
            read_if_listed();
            writer.join().unwrap();
            read_if_listed();
            assert_eq!(seen, 2);
        });
    }
}
