//! `downbeat serve`, `worker` and `profile` as processes, over real sockets.
//!
//! Most models are emulated, so that nothing but the binary is needed; what must run on ONNX Runtime says so.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "processes live in real time")]

mod client;
mod models;
mod server;

mod crowd;
mod deadlines;
mod elsewhere;
mod loading;
mod profile;
mod settings;
mod start;
mod stopping;
mod workers;
