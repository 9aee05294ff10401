use std::time::Duration;

use tokio::time::Instant;

use super::{REFUSALS_EVERY, Refusals};

#[test]
fn that_connections_are_refused_is_said_now_and_then_with_how_many() {
    let (mut refusals, start) = (Refusals::default(), Instant::now());
    assert_eq!(refusals.count(start), Some(1), "the first at once");
    for _ in 0..100 {
        assert_eq!(refusals.count(start + Duration::from_secs(1)), None);
    }
    assert_eq!(refusals.count(start + REFUSALS_EVERY), Some(101));
}
