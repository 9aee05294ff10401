//! Checks a request against the model it is for.

use std::time::Duration;

use downbeat_engine::onnx::check_strings;
use downbeat_oip::{DataType, Failure, InferRequest, Reason, Tensor, TensorSpec};
use downbeat_repository::{Backend, ModelDefinition, Priorities};
use downbeat_sched::Priority;

/// A request that fits its model.
#[derive(Debug)]
pub(crate) struct Intake {
    /// In the order in which the model declares them.
    pub(crate) inputs: Vec<Tensor>,
    pub(crate) rows: u32,
    pub(crate) priority: Priority,
    pub(crate) timeout: Option<Duration>,
}

fn invalid<T>(message: String) -> Result<T, Failure> {
    Err(Failure::new(Reason::Invalid, message))
}

/// Checks a request and takes out of it what will run.
pub(crate) fn take_in(definition: &ModelDefinition, request: &mut InferRequest) -> Result<Intake, Failure> {
    let (priority, timeout) = (priority(definition.priorities, request.priority()?), request.timeout()?);
    let model = &definition.name;
    for output in &request.outputs {
        if !definition.outputs.iter().any(|declared| declared.name == output.name) {
            let names = listed(&definition.outputs);
            return invalid(format!(
                "unexpected output {:?} for model {model:?}, which has {names}",
                output.name
            ));
        }
    }
    let given = std::mem::take(&mut request.inputs);
    let mut slots: Vec<Option<Tensor>> = definition.inputs.iter().map(|_| None).collect();
    for input in given {
        let Some(slot) = definition.inputs.iter().position(|declared| declared.name == input.name) else {
            let names = listed(&definition.inputs);
            return invalid(format!(
                "unexpected input {:?} for model {model:?}, which takes {names}",
                input.name
            ));
        };
        check(model, &definition.inputs[slot], &input)?;
        if definition.backend == Backend::Onnx && input.datatype == DataType::Bytes {
            // Known now, it does not cost everybody in its batch a second run.
            check_strings(&input).map_err(|error| Failure::new(Reason::Invalid, error.to_string()))?;
        }
        slots[slot] = Some(input);
    }
    let rows = if definition.max_batch == 0 { 1 } else { rows(definition, &slots)? };
    let mut inputs = Vec::with_capacity(slots.len());
    for (slot, declared) in slots.into_iter().zip(&definition.inputs) {
        match slot {
            Some(input) => inputs.push(input),
            None => return invalid(format!("input {:?} of model {model:?} is missing", declared.name)),
        }
    }
    Ok(Intake { inputs, rows, priority, timeout })
}

/// The batch dimension that all inputs agree on.
fn rows(definition: &ModelDefinition, inputs: &[Option<Tensor>]) -> Result<u32, Failure> {
    let (model, most) = (&definition.name, definition.max_batch);
    let dimension = |input: &Tensor| input.shape.first().copied().unwrap_or(0);
    let Some(first) = inputs.iter().flatten().next() else { return Ok(1) };
    let rows = dimension(first);
    if let Some(other) = inputs.iter().flatten().find(|input| dimension(input) != rows) {
        let (a, b, others) = (&first.name, &other.name, dimension(other));
        return invalid(format!("the batch dimensions differ: {rows} of input {a:?}, {others} of {b:?}"));
    }
    match u32::try_from(rows) {
        Ok(rows) if rows > 0 && rows <= most => Ok(rows),
        _ => invalid(format!("a batch dimension of {rows} for model {model:?}, which takes 1 to {most}")),
    }
}

fn check(model: &str, declared: &TensorSpec, input: &Tensor) -> Result<(), Failure> {
    let name = &input.name;
    if input.datatype != declared.datatype {
        let (given, wanted) = (input.datatype.name(), declared.datatype.name());
        return invalid(format!("input {name:?} of model {model:?} has type {given}; it must be {wanted}"));
    }
    let fits = |(&wanted, &given): (&i64, &u64)| wanted < 0 || u64::try_from(wanted) == Ok(given);
    let shape = declared.shape.iter().zip(&input.shape);
    if declared.shape.len() != input.shape.len() || !shape.clone().all(fits) {
        let (wanted, given) = (&declared.shape, &input.shape);
        return invalid(format!(
            "unexpected shape for input {name:?} for model {model:?}: expected {wanted:?}, got {given:?}"
        ));
    }
    Ok(())
}

fn listed(specs: &[TensorSpec]) -> String {
    specs.iter().map(|spec| format!("{:?}", spec.name)).collect::<Vec<_>>().join(", ")
}

/// The priority of requests at their model's default level.
///
/// A model's levels count from there, since they mean nothing to other models: one that calls its default 2 of 3 is not
/// behind those that have no levels.
pub(crate) const DEFAULT_PRIORITY: Priority = Priority(128);

/// The priority of a request at a level of its model, 0 for the default one.
fn priority(priorities: Option<Priorities>, level: u64) -> Priority {
    let Priorities { levels, default } = priorities.unwrap_or(Priorities { levels: u64::MAX, default: 1 });
    // Levels past the last are the last.
    let level = if level == 0 { default } else { level.min(levels) };
    let below = i128::from(level) - i128::from(default);
    Priority((i128::from(DEFAULT_PRIORITY.0) + below).clamp(1, 255) as u8)
}

#[cfg(test)]
mod tests;
