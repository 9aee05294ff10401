//! Compiles the protocol's messages. `protox` is a compiler in Rust, so that a build needs nothing but cargo.

use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;

use prost::Message;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let descriptors = protox::compile(["service.proto"], ["proto"])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    // The text format of model configurations is read by reflection.
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        .bytes("ModelInferRequest.raw_input_contents")
        .bytes("ModelInferResponse.raw_output_contents")
        .compile_fds(descriptors)?;
    Ok(())
}
