//! Hand-worked examples: what the scheduler does in situations small enough to work out on paper.

mod classes;
mod devices;
mod drops;
mod early_starts;
mod models;
mod needs;
mod priorities;
mod rows;
mod windows;

use downbeat_sched::*;

use crate::cluster::{TestCluster, linear};

/// The paper's rule, giving up only what is lost.
const DEFERRED: Rule = Rule::DEFERRED.with_drop(DropRule::Timeout);

/// `gpus` devices of one class, and one model of l(b) = b + 5 ms for batches of up to 32.
fn one_model(rule: Rule, gpus: u32) -> TestCluster {
    one_model_with_delays(rule, gpus, Delays::default())
}

fn one_model_with_delays(rule: Rule, gpus: u32, delays: Delays) -> TestCluster {
    let mut cluster = TestCluster::new(rule, delays);
    cluster.add_model(ModelId(0), on_class_0(1.0, 5.0, 32));
    for gpu in 0..gpus {
        cluster.join(GpuId(gpu), ClassId(0));
    }
    cluster
}

/// A model of l(b) = alpha * b + beta ms on class 0.
fn on_class_0(alpha_ms: f64, beta_ms: f64, max_batch: u32) -> ModelSpec {
    ModelSpec::new([(ClassId(0), linear(alpha_ms, beta_ms, max_batch))])
}
