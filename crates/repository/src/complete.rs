//! Completes a configuration from a model file, and checks the one against the other.

use downbeat_oip::proto::model_config::SchedulingChoice;
use downbeat_oip::proto::{ModelConfig, ModelDynamicBatching, ModelInput, ModelOutput};

use crate::header::{Declared, Header};
use crate::tensors::{self, Role, Slot, data_type, full_shape, slots};

/// The largest batch of a model whose configuration does not say, but whose file has a batch dimension. Triton takes 4;
/// Downbeat never makes a batch larger than its deadlines allow, so it can afford more.
pub const DEFAULT_MAX_BATCH: i32 = 64;

/// Fills in what a configuration leaves out and the file says. Where it says how large a batch may be, that is what it
/// means: 0 for a model whose rows depend on each other, whatever its file looks like.
pub(crate) fn complete(
    config: &mut ModelConfig,
    says_max_batch: bool,
    header: &Header,
) -> Result<(), String> {
    if !says_max_batch && may_batch(config, header) {
        config.max_batch_size = DEFAULT_MAX_BATCH;
    }
    for input in &header.inputs {
        if config.input.iter().all(|given| given.name != input.name) {
            config.input.push(ModelInput { name: input.name.clone(), ..ModelInput::default() });
        }
    }
    // A configuration may leave out outputs that nobody wants; one without any wants all.
    if config.output.is_empty() {
        let output = |output: &Declared| ModelOutput { name: output.name.clone(), ..ModelOutput::default() };
        config.output = header.outputs.iter().map(output).collect();
    }
    let batching = config.max_batch_size > 0;
    for slot in slots(config) {
        let Some(declared) = find(header, slot.role, slot.name) else { continue };
        if *slot.data_type == 0 {
            *slot.data_type = data_type(declared.datatype).into();
        }
        if slot.dims.is_empty() && slot.reshape.is_none() {
            let shape = declared.shape.as_ref().ok_or_else(|| {
                let role = slot.role.name();
                format!("the file does not say the shape of the {role} {:?}; give its dims", slot.name)
            })?;
            *slot.dims = shape.iter().skip(usize::from(batching)).copied().collect();
        }
    }
    if config.max_batch_size > 1 && config.scheduling_choice.is_none() {
        config.scheduling_choice = Some(SchedulingChoice::DynamicBatching(ModelDynamicBatching::default()));
    }
    Ok(())
}

/// What is to be told when the largest batch was filled in.
pub(crate) fn notice() -> String {
    format!(
        "no max_batch_size is set, and the first dimension of every tensor is open: it is taken for the batch, of up to \
         {DEFAULT_MAX_BATCH} rows; set max_batch_size to 0 if the rows of different requests must not meet"
    )
}

/// Whether a model can run batches though its configuration does not say so: the first dimension of every tensor is
/// open, and the configuration does not count it among its dims.
fn may_batch(config: &mut ModelConfig, header: &Header) -> bool {
    let open = |declared: &Declared| declared.shape.as_ref().is_some_and(|shape| shape.first() == Some(&-1));
    let counted = |slot: Slot<'_>| {
        let declared = find(header, slot.role, slot.name).and_then(|declared| declared.shape.as_ref());
        !slot.dims.is_empty() && declared.is_some_and(|shape| shape.len() == slot.model_dims().len())
    };
    !header.inputs.is_empty()
        && header.inputs.iter().chain(&header.outputs).all(open)
        && !slots(config).any(counted)
}

/// Whether a configuration describes this file. `file` is how messages call it.
pub(crate) fn check(config: &mut ModelConfig, header: &Header, file: &str) -> Result<(), String> {
    let batching = config.max_batch_size > 0;
    if let Some(missing) =
        header.inputs.iter().find(|input| config.input.iter().all(|given| given.name != input.name))
    {
        return Err(format!("{file} has an input {:?} that the configuration lacks; add it", missing.name));
    }
    for slot in slots(config) {
        let role = slot.role.name();
        let declared = find(header, slot.role, slot.name).ok_or_else(|| {
            let names: Vec<&str> =
                slot.role.of(header).iter().map(|declared| declared.name.as_str()).collect();
            format!("{file} has no {role} {:?}; its {role}s are {names:?}", slot.name)
        })?;
        check_type(&slot, declared, file)?;
        if let Some(shape) = &declared.shape {
            check_shape(&slot, shape, batching, file)?;
        }
    }
    Ok(())
}

fn check_type(slot: &Slot<'_>, declared: &Declared, file: &str) -> Result<(), String> {
    if tensors::datatype(*slot.data_type) == Some(declared.datatype) {
        return Ok(());
    }
    let (role, name, right) = (slot.role.name(), slot.name, data_type(declared.datatype).as_str_name());
    Err(format!("the {role} {name:?} is {right} in {file}; change its data_type to that"))
}

fn check_shape(slot: &Slot<'_>, shape: &[i64], batching: bool, file: &str) -> Result<(), String> {
    let (role, name) = (slot.role.name(), slot.name);
    if batching && shape.first() != Some(&-1) {
        return Err(format!(
            "the {role} {name:?} has the shape {shape:?} in {file}, whose first dimension is no batch; set max_batch_size to 0, \
             or export the model with an open first dimension"
        ));
    }
    let given = full_shape(slot.model_dims(), batching);
    let fits = given.len() == shape.len()
        && given.iter().zip(shape).all(|(&given, &fixed)| given == fixed || given == -1 || fixed == -1);
    if fits {
        return Ok(());
    }
    let right = &shape[usize::from(batching)..];
    let hint = if batching { ", without the batch dimension" } else { "" };
    let what = if slot.reshape.is_some() { "the shape of its reshape" } else { "its dims" };
    Err(format!("the {role} {name:?} has the shape {shape:?} in {file}; change {what} to {right:?}{hint}"))
}

pub(crate) fn find<'a>(header: &'a Header, role: Role, name: &str) -> Option<&'a Declared> {
    role.of(header).iter().find(|declared| declared.name == name)
}
