//! Autoscaling in virtual time.
mod elastic;
mod ledger;
