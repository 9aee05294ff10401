//! The messages and the service of the gRPC protocol, generated from `proto/`.

#![allow(missing_docs, unused_qualifications, unreachable_pub, clippy::all, reason = "generated")]

tonic::include_proto!("inference");

/// The compiled descriptions of all messages, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
