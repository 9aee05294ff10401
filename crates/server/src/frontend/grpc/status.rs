//! Failures and timeouts, as gRPC has them.

#[cfg(test)]
mod tests;

use std::time::Duration;

use downbeat_oip::Failure;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};

/// The status of a failure.
pub(super) fn status(failure: Failure) -> Status {
    Status::new(Code::from_i32(failure.reason.grpc_code()), failure.message)
}

/// The time that the client gives a call (`grpc-timeout`); `None` where it gives none, or nothing readable.
pub(super) fn timeout(metadata: &MetadataMap) -> Option<Duration> {
    let text = metadata.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    // The protocol allows 8 digits; so nothing below overflows.
    let amount: u64 = digits.parse().ok().filter(|_| digits.len() <= 8)?;
    match unit {
        "H" => Some(Duration::from_secs(amount * 3600)),
        "M" => Some(Duration::from_secs(amount * 60)),
        "S" => Some(Duration::from_secs(amount)),
        "m" => Some(Duration::from_millis(amount)),
        "u" => Some(Duration::from_micros(amount)),
        "n" => Some(Duration::from_nanos(amount)),
        _ => None,
    }
}
