//! scratch
mod bell;
mod mailbox;
mod ring;
mod sync;
