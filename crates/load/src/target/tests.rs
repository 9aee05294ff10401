use super::*;

fn target(text: &str) -> Result<Target, String> {
    text.parse().map_err(|error: TargetError| error.to_string())
}

#[test]
fn an_address_is_read_and_written_alike() {
    for text in ["grpc://127.0.0.1:8001", "http://[::1]:80", "http://gateway:80/team-a/x"] {
        assert_eq!(target(text).unwrap().to_string(), text);
    }
}

#[test]
fn ports_are_tritons_unless_given() {
    assert_eq!(target("grpc://host").unwrap().authority, "host:8001");
    assert_eq!(target("http://host/").unwrap(), target("http://host:8000").unwrap());
    assert_eq!(target("http://[::1]").unwrap().authority, "[::1]:8000");
}

#[test]
fn what_is_no_address_is_refused_with_advice() {
    for (text, advice) in [
        ("localhost:8000", "grpc://HOST:PORT"),
        ("https://host", "TLS is not supported"),
        ("ftp://host", "must be grpc or http"),
        ("grpc://", "host is missing"),
        ("grpc://host:123456", "port must be a number"),
        ("grpc://host/path", "gRPC has no path"),
        ("http://host?x", "only HOST:PORT"),
    ] {
        let message = target(text).unwrap_err();
        assert!(message.contains(advice), "{text}: {message}");
    }
}
