//! Whether a model is slow to take another size of batches.

use std::cmp;

use downbeat_profile::Span;

use super::OnnxModel;
use crate::synthetic::synthetic_inputs;
use crate::{Clock, EngineError, Model, WallClock};

/// Runs of each kind; the quickest counts.
const RUNS: usize = 3;

/// Whether a batch takes far longer after one of another size than after one of its own. Tried out, since it depends on
/// the model's operators, the provider and its version.
pub(super) fn changes_of_size(model: &mut OnnxModel) -> Result<bool, EngineError> {
    let inputs = model.signature().inputs.clone();
    let sizes = [1, 2].map(|rows| (rows, synthetic_inputs(&inputs, rows, 1, rows.into())));
    let mut clock = WallClock::start();
    let mut run = |at: usize| {
        let (rows, inputs) = &sizes[at];
        let before = clock.now();
        model.run(inputs, *rows)?;
        Ok::<Span, EngineError>(clock.now() - before)
    };
    // The first run of either size is like no other.
    run(0)?;
    run(1)?;
    let (mut changed, mut same) = (Span::MAX, Span::MAX);
    for _ in 0..RUNS {
        changed = cmp::min(changed, run(0)?);
        same = cmp::min(same, run(0)?);
        run(1)?;
    }
    Ok(changed > same * 2 + Span::from_millis(1))
}
