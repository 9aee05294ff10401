//! The scheduler through its public interface: one binary, so that all tests share one [`cluster`].

mod behaviour;
mod cluster;
mod oracle;
mod properties;
