//! A solution as machines with blocks that serve jobs, checked.

use serde::Serialize;

use crate::problem::Problem;
use crate::solver::{Run, Solver, Unsolved};

/// A schedule with its certificate.
#[derive(Clone, Debug, Serialize)]
pub struct Schedule {
    /// How many machines it takes.
    pub machines: u32,
    /// No schedule takes fewer.
    pub lower_bound: f64,
    /// How that is known.
    pub bound_name: String,
    /// Whether the bound is reached.
    pub proved_optimal: bool,
    /// How much could be saved at most, as a share.
    pub gap: f64,
    /// How long it took; left to whoever has a clock.
    pub seconds: f64,
    /// The solver.
    pub algorithm: String,
    /// The machines; those that are alike together.
    pub schedule: Vec<Machine>,
}

/// Machines that are alike.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Machine {
    /// How many.
    pub count: u32,
    /// How many blocks of each type such a machine has.
    pub configuration: Vec<u32>,
    /// What its blocks serve.
    pub blocks: Vec<Block>,
}

/// A block and the job it serves.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Block {
    /// The type of block.
    pub block: String,
    /// The job.
    pub job: String,
}

/// Solves an instance that came from [`Cms`](super::Cms), gives every block its job and checks that every demand is
/// met.
pub fn schedule(problem: &Problem, solver: &dyn Solver, run: &Run<'_>) -> Result<Schedule, Unsolved> {
    let solved = solver.solve(problem, run)?;
    let mut left = solved.allocation.instances.clone();
    let mut machines: Vec<Machine> = Vec::new();
    let mut served = vec![0.0; problem.services.len()];
    for (configuration, &count) in problem.configurations.iter().zip(&solved.allocation.gpus) {
        for _ in 0..count {
            let mut blocks = Vec::new();
            for (slice, &has) in configuration.slices.iter().enumerate() {
                for _ in 0..has {
                    let Some(job) = left.iter().position(|counts| counts[slice] > 0) else { break };
                    left[job][slice] -= 1;
                    served[job] += problem.curves[job][slice].as_ref().map_or(0.0, |curve| curve.capacity(1));
                    blocks.push(Block {
                        block: problem.slice_name(slice).to_owned(),
                        job: problem.services[job].name.clone(),
                    });
                }
            }
            let machine = Machine { count: 1, configuration: configuration.slices.clone(), blocks };
            match machines.last_mut() {
                Some(last)
                    if last.configuration == machine.configuration && last.blocks == machine.blocks =>
                {
                    last.count += 1;
                }
                _ => machines.push(machine),
            }
        }
    }
    // What no machine had room for was not served, and so it shows here.
    for (service, served) in problem.services.iter().zip(&served) {
        if *served < service.rate_rps * (1.0 - 1e-6) {
            let why = format!("job {:?} gets {served} of {}", service.name, service.rate_rps);
            return Err(Unsolved::Refused { solver: solver.name(), why });
        }
    }
    let count = solved.allocation.gpu_count();
    let gap = ((f64::from(count) - solved.bound.cost) / f64::from(count.max(1))).max(0.0);
    Ok(Schedule {
        machines: count,
        lower_bound: solved.bound.cost,
        bound_name: solved.bound.name.to_owned(),
        proved_optimal: gap <= 1e-9,
        gap: if gap <= 1e-9 { 0.0 } else { gap },
        seconds: 0.0,
        algorithm: solver.name().to_owned(),
        schedule: machines,
    })
}
