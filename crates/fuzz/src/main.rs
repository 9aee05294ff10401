//! A target under AFL++: `downbeat-fuzz TARGET`, started by `cargo afl fuzz`.

#![allow(clippy::print_stderr, reason = "said to whoever starts it by hand")]

fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    let Some(target) = downbeat_fuzz::target(&name) else {
        eprintln!("no target {name:?}; there are: {:?}", downbeat_fuzz::TARGETS.map(|(name, _)| name));
        std::process::exit(2);
    };
    afl::fuzz!(|data: &[u8]| target(data));
}
