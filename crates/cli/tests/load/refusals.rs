//! What cannot be done is said, with what to do, before anything is sent.

use std::net::TcpListener;

use crate::models::{Models, QUICK};
use crate::server::Server;
use crate::{refusal, urls};

#[test]
fn a_server_that_is_not_there_is_named() {
    // A port that was free a moment ago.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for scheme in ["http", "grpc"] {
        let message = refusal(&format!("--url={scheme}://{address}"), &["--model=m"]);
        assert!(
            message.contains(&address.to_string()) && message.contains("is the server running"),
            "{message}"
        );
    }
}

#[test]
fn a_model_that_is_not_there_is_named_in_the_servers_words() {
    let server = Server::start(&Models::with("quick", QUICK), &["--device", "emulated:1"]);
    for url in urls(&server) {
        let message = refusal(&url, &["--model=quick", "--model=missing"]);
        assert!(message.contains("model 'missing'"), "{message}");
        let message = refusal(&url, &["--model=quick", "--shape=INPUT0:1,9"]);
        assert!(message.contains("does not fit [-1, 4]"), "{message}");
        let message = refusal(&url, &["--model=quick", "--shape=nope:1,2"]);
        assert!(message.contains("'nope'") && message.contains("INPUT0"), "{message}");
        let message = refusal(&url, &["--model=quick", "--data=/nowhere.json"]);
        assert!(message.contains("/nowhere.json: cannot be read"), "{message}");
        let message = refusal(&url, &["--model=quick", "--data=other=/nowhere.json"]);
        assert!(message.contains("'other'"), "{message}");
    }
}

#[test]
fn arguments_that_make_no_sense_are_refused_with_what_would() {
    let url = "--url=grpc://127.0.0.1:1";
    for (flags, words) in [
        (vec!["--model=m", "--rate=-5"], "above 0"),
        (vec!["--model=m", "--duration=0"], "above 0"),
        (vec!["--model=m", "--slo-ms=0"], "above 0"),
        (vec!["--model=m", "--arrival=sometimes"], "gamma:SHAPE"),
        (vec!["--model=m:speed=3"], "weight, slo_ms"),
        (vec!["--model=m", "--model=m"], "twice"),
        (vec!["--model=m", "--connections=0"], "from 1"),
        (vec!["--model=m", "--precision=0.1"], "--find-goodput"),
    ] {
        // The last of a flag counts where it may be given once.
        let mut command = crate::downbeat(&["load", url]);
        if !flags.iter().any(|flag| flag.starts_with("--rate")) {
            command.arg("--rate=5");
        }
        command.args(&flags);
        let output = crate::run(command);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        assert!(message.contains(words), "{flags:?}: {message}");
    }
    let output = crate::run(crate::downbeat(&["load", "--url=localhost:8000", "--model=m", "--rate=5"]));
    assert!(String::from_utf8(output.stderr).unwrap().contains("grpc://HOST:PORT"));
    let output = crate::run(crate::downbeat(&["load", url, "--model=m"]));
    assert!(String::from_utf8(output.stderr).unwrap().contains("--rate is missing"));
}
