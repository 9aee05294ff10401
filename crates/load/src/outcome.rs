//! What became of a request.

#[cfg(test)]
mod tests;

use downbeat_oip::Reason;

/// What became of a request. Each has exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Answered with a result inside the SLO.
    Ok,
    /// Answered with a result after the SLO.
    Late,
    /// Answered without a result.
    Refused(Reason),
    /// The connection could not be made, or ended before the answer.
    Transport,
    /// No answer until the run was over and its patience too.
    Unanswered,
    /// Never sent: too many requests were waiting for their answers already.
    Unsent,
}

impl Outcome {
    /// Every outcome, in the order in which reports list them.
    pub fn all() -> impl Iterator<Item = Outcome> {
        let refused = Reason::ALL.into_iter().map(Outcome::Refused);
        let rest = [Outcome::Transport, Outcome::Unanswered, Outcome::Unsent];
        [Outcome::Ok, Outcome::Late].into_iter().chain(refused).chain(rest)
    }

    /// Its name in reports. Reasons have the names that they have in a server's metrics.
    pub fn label(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::Late => "late",
            Outcome::Refused(reason) => reason.label(),
            Outcome::Transport => "transport",
            Outcome::Unanswered => "unanswered",
            Outcome::Unsent => "unsent",
        }
    }
}

/// Why a server of the protocol gave this HTTP status; `None` for a result.
pub(crate) fn reason_of_http(status: u16) -> Option<Reason> {
    if (200..300).contains(&status) {
        return None;
    }
    let known = Reason::ALL.into_iter().find(|reason| reason.http_status() == status);
    Some(known.unwrap_or(if (400..500).contains(&status) { Reason::Invalid } else { Reason::Failed }))
}

/// Why a server of the protocol gave this gRPC code; `None` for a result.
pub(crate) fn reason_of_grpc(code: i32) -> Option<Reason> {
    if code == 0 {
        return None;
    }
    Some(Reason::ALL.into_iter().find(|reason| reason.grpc_code() == code).unwrap_or(Reason::Failed))
}
