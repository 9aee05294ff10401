//! Long computations go where they do not hold up the connections of others.

use downbeat_oip::{Failure, Reason};

/// From how many bytes on reading or writing JSON, or (un)packing, is worth a thread change: about a millisecond of
/// work.
const LONG_BYTES: usize = 256 << 10;

/// Runs `work`, which goes over so many bytes, on a thread for blocking work if those are many.
pub(super) async fn offload<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    if bytes < LONG_BYTES {
        return work();
    }
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(Failure::new(Reason::Failed, format!("the server failed: {error}"))))
}
