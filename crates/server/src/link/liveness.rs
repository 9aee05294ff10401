//! Peers that vanish without a word: a host without power, a cable that is cut.

use std::io;
use std::net::TcpStream;
use std::time::Duration;

use rustix::net::sockopt;

/// How long a connection is silent before the peer's system is asked whether it is there, and how often it is asked
/// again.
const IDLE: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_secs(3);
const TRIES: u32 = 3;

/// How long the peer's system may leave what was sent unacknowledged.
const UNACKNOWLEDGED: Duration = Duration::from_secs(20);

/// Lets a connection break when the host at the other end is gone. A process that ends or hangs is noticed otherwise.
pub(crate) fn notice_death(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, IDLE)?;
    sockopt::set_tcp_keepintvl(stream, AGAIN)?;
    sockopt::set_tcp_keepcnt(stream, TRIES)?;
    sockopt::set_tcp_user_timeout(stream, UNACKNOWLEDGED.as_millis() as u32)?;
    Ok(())
}

#[cfg(test)]
mod tests;
