//! The one table of failures: how each looks to clients of either protocol, and in the metrics.

/// Why a request was not answered with a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// It cannot meet its deadline.
    Expired,
    /// A queue is full.
    Overloaded,
    /// Draining, loading, or no worker.
    Unavailable,
    /// The request is wrong.
    Invalid,
    /// The request is larger than the server takes.
    TooBig,
    /// There is no such model or version.
    Unknown,
    /// The model failed.
    Failed,
    /// The client went away.
    Cancelled,
    /// The server does not do this.
    Unimplemented,
}

/// A failure with the sentence that the client reads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What kind it is.
    pub reason: Reason,
    /// What happened, and what to do about it.
    pub message: String,
}

impl Failure {
    /// A failure of this kind.
    pub fn new(reason: Reason, message: impl Into<String>) -> Failure {
        Failure { reason, message: message.into() }
    }
}

impl Reason {
    /// Every reason.
    pub const ALL: [Reason; 9] = [
        Reason::Expired,
        Reason::Overloaded,
        Reason::Unavailable,
        Reason::Invalid,
        Reason::TooBig,
        Reason::Unknown,
        Reason::Failed,
        Reason::Cancelled,
        Reason::Unimplemented,
    ];

    /// The status of an HTTP response.
    pub fn http_status(self) -> u16 {
        match self {
            Reason::Expired => 504,
            Reason::Overloaded => 429,
            Reason::Unavailable => 503,
            Reason::Invalid => 400,
            Reason::TooBig => 413,
            Reason::Unknown => 404,
            Reason::Failed => 500,
            Reason::Cancelled => 499,
            Reason::Unimplemented => 501,
        }
    }

    /// The code of a gRPC status, as gRPC numbers them.
    pub fn grpc_code(self) -> i32 {
        match self {
            Reason::Expired => 4,
            Reason::Overloaded | Reason::TooBig => 8,
            Reason::Unavailable => 14,
            Reason::Invalid => 3,
            Reason::Unknown => 5,
            Reason::Failed => 13,
            Reason::Cancelled => 1,
            Reason::Unimplemented => 12,
        }
    }

    /// The value of the label `reason` in the metrics.
    pub fn label(self) -> &'static str {
        match self {
            Reason::Expired => "expired",
            Reason::Overloaded => "overloaded",
            Reason::Unavailable => "unavailable",
            Reason::Invalid | Reason::TooBig => "invalid",
            Reason::Unknown => "unknown",
            Reason::Failed => "failed",
            Reason::Cancelled => "cancelled",
            Reason::Unimplemented => "unimplemented",
        }
    }
}
