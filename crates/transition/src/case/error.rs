//! What is wrong with two plans.

use downbeat_mig::UnknownGpu;

/// Why there is nothing to be planned between two layouts.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CaseError {
    /// One layout cannot be.
    #[error("{side}: GPU {gpu}: {what}")]
    IllegalLayout {
        /// Which of the two.
        side: &'static str,
        /// The GPU's number.
        gpu: u32,
        /// What is wrong.
        what: String,
    },
    /// What a plan says of a service is not what its layout has.
    #[error(
        "{side}: service {service:?} has {listed} instances in the list of services, and {there} in the layout: the plan contradicts itself"
    )]
    Contradiction {
        /// Which of the two.
        side: &'static str,
        /// The service.
        service: String,
        /// As many as it says there are.
        listed: u32,
        /// As many as there are.
        there: u32,
    },
    /// A GPU type is not known.
    #[error("{side}: {cause}")]
    UnknownGpu {
        /// Which of the two.
        side: &'static str,
        /// With a suggestion.
        cause: UnknownGpu,
    },
    /// The layouts are for different GPUs.
    #[error(
        "the plans are for different GPU types: the first for {first}, the second for {second}; plan both for the same"
    )]
    DifferentTypes {
        /// Types of the first.
        first: String,
        /// Types of the second.
        second: String,
    },
    /// A GPU differs in what cannot change.
    #[error(
        "GPU {gpu} is {first} in the first plan and {second} in the second; plan the second with `downbeat plan --from` the first"
    )]
    DifferentGpu {
        /// Its number.
        gpu: u32,
        /// What the first says.
        first: String,
        /// What the second says.
        second: String,
    },
    /// Services are on one side only.
    #[error(
        "{}; give both plans the same services, or say --services-may-differ to start and retire them",
        one_sided(only_first, only_second)
    )]
    DifferentServices {
        /// Those only the first layout has.
        only_first: Vec<String>,
        /// Those only the second has.
        only_second: Vec<String>,
    },
}

fn one_sided(first: &[String], second: &[String]) -> String {
    let side = |names: &[String], here: &str, there: &str| {
        let some: Vec<String> = names.iter().take(3).map(|name| format!("{name:?}")).collect();
        let more = if names.len() > 3 { format!(" and {} more", names.len() - 3) } else { String::new() };
        let (service, is) = if names.len() == 1 { ("service", "is") } else { ("services", "are") };
        format!("{service} {}{more} {is} in the {here} plan and not in the {there}", some.join(", "))
    };
    let sides = [(first, "first", "second"), (second, "second", "first")];
    let sides: Vec<String> = sides
        .iter()
        .filter(|side| !side.0.is_empty())
        .map(|(names, here, there)| side(names, here, there))
        .collect();
    sides.join("; ")
}
