//! Where requests go.

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

/// How requests travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1 with keep-alive: REST, one request at a time on each connection.
    Http,
    /// gRPC over HTTP/2 without TLS: many requests at a time on each connection.
    Grpc,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Http => "HTTP/1.1",
            Protocol::Grpc => "gRPC",
        })
    }
}

/// A server: `grpc://host:port` or `http://host:port[/prefix]`. Without a port, Triton's: 8001 for gRPC, 8000 for HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// How requests travel.
    pub protocol: Protocol,
    /// `host:port`.
    pub authority: String,
    /// What goes before `/v2`, such as `/team-a` behind a gateway; empty or with a leading slash and no trailing one.
    pub prefix: String,
}

/// Why a text is no address of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TargetError(String);

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Target, TargetError> {
        let wrong = |what: &str| Err(TargetError(what.to_owned()));
        let Some((scheme, rest)) = text.split_once("://") else {
            return wrong("say how to speak to it: grpc://HOST:PORT or http://HOST:PORT");
        };
        let protocol = match scheme {
            "grpc" => Protocol::Grpc,
            "http" => Protocol::Http,
            "https" | "grpcs" => {
                return wrong(
                    "TLS is not supported: go around the proxy that ends it, with http:// or grpc://",
                );
            }
            _ => return wrong("the scheme must be grpc or http"),
        };
        let (authority, path) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
        let prefix = path.trim_end_matches('/');
        if authority.is_empty() {
            return wrong("the host is missing");
        }
        if authority.contains(['@', '?', '#', ' ']) || prefix.contains(['?', '#', ' ']) {
            return wrong("only HOST:PORT and a path can be given");
        }
        if protocol == Protocol::Grpc && !prefix.is_empty() {
            return wrong("gRPC has no path: grpc://HOST:PORT");
        }
        let port = authority.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')).map(|(_, port)| port);
        let authority = match (port, protocol) {
            (Some(port), _) if port.parse::<u16>().is_err() => {
                return wrong("the port must be a number to 65535");
            }
            (Some(_), _) => authority.to_owned(),
            (None, Protocol::Grpc) => format!("{authority}:8001"),
            (None, Protocol::Http) => format!("{authority}:8000"),
        };
        Ok(Target { protocol, authority, prefix: prefix.to_owned() })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.protocol {
            Protocol::Http => "http",
            Protocol::Grpc => "grpc",
        };
        write!(f, "{scheme}://{}{}", self.authority, self.prefix)
    }
}
