//! How a runtime is set up, and what cannot be done.

use std::io;

use downbeat_sched::{Delays, ModelId, Span};

use crate::host::DomainId;
use crate::posting::CLASSES_PER_MODEL;

/// How a [`Runtime`](crate::Runtime) is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What a start costs before the device can begin.
    pub delays: Delays,
    /// Matchmakers, each with devices of its own.
    pub domains: u16,
    /// Models have numbers below this. Each takes half a kilobyte from the start.
    pub models: u32,
    /// Devices should have numbers below this; room is made for them from the start.
    pub gpus: u32,
    /// Threads never sleep: they look for work all the time, each on a processor of its own.
    pub spin: bool,
    /// Every thread is bound to a processor of its own, as long as there are enough.
    pub pin: bool,
    /// How long before its window opens the matchmaker must know of a batch.
    pub notice: Span,
    /// What is done late by no more than this counts as done in time. A window can be a microsecond wide, and to give
    /// up its requests because the operating system woke a thread after it would help nobody.
    pub grace: Span,
    /// Called with the name of a thread that has panicked, on that thread.
    pub on_panic: Option<fn(&str)>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            delays: Delays::default(),
            domains: 1,
            models: 16_384,
            gpus: 65_536,
            spin: false,
            pin: false,
            notice: Span::from_micros(200),
            grace: Span::ZERO,
            on_panic: None,
        }
    }
}

/// What cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] io::Error),
    /// No shards, no domains, or too many of either.
    #[error(
        "{shards} shards and {domains} domains: there must be at least one of each, and at most {MOST_THREADS}"
    )]
    Threads {
        /// Shards asked for.
        shards: usize,
        /// Domains asked for.
        domains: u16,
    },
    /// Not as many hosts as shards.
    #[error("{hosts} hosts for {shards} shards: each must have one")]
    Hosts {
        /// Hosts there are.
        hosts: usize,
        /// Shards there should be.
        shards: usize,
    },
    /// A model's number is too large.
    #[error("model {} is past the {models} that there is room for; raise the setting", model.0)]
    Model {
        /// The model.
        model: ModelId,
        /// The room there is.
        models: u32,
    },
    /// There is no such domain.
    #[error("there is no domain {}; there are {domains}, numbered from 0", domain.0)]
    Domain {
        /// The domain asked for.
        domain: DomainId,
        /// How many there are.
        domains: u16,
    },
    /// A model is deployed on too many classes.
    #[error(
        "a model can be deployed on at most {CLASSES_PER_MODEL} classes of devices of its domain (is on {0})"
    )]
    Classes(usize),
    /// A thread has panicked; what it knew is lost.
    #[error("a thread of the scheduler has panicked")]
    Panicked,
}

/// More threads than this are a mistake.
pub const MOST_THREADS: usize = 1_024;
