//! The checker: does a plan do what it says? It shares no code with the solvers.
//!
//! It starts from the written plan and the measurements, and counts everything anew: slices against the GPU's table,
//! batches against memory and SLO, throughput against demand. Under the rule `measured` the table of simulated goodput
//! is taken as given; everything else is worked out here.

mod pools;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use downbeat_profile::Measurement;

use crate::plan::{GpuLayout, Instance, Plan};
use crate::problem::{Pool, Problem, Service};
use crate::rule::Rule;

/// Numbers may differ by this share: they are written and summed in floating point.
const SLACK: f64 = 1e-6;

/// What is wrong with a plan, one sentence each; at least one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct Violations(pub Vec<String>);

/// Checks a plan against its problem: placement, memory, latency, demand, pools, and its own sums.
pub fn check(problem: &Problem, plan: &Plan) -> Result<(), Violations> {
    let mut wrong = Vec::new();
    let mut seen = BTreeMap::new();
    for gpu in &plan.layout {
        if seen.insert(gpu.gpu, ()).is_some() {
            wrong.push(format!("GPU {} is there twice", gpu.gpu));
        }
        match least_wrong(problem, gpu) {
            Some(found) => wrong.extend(found),
            None => wrong.push(format!(
                "GPU {} is of the type {}, which the problem does not have",
                gpu.gpu, gpu.gpu_type
            )),
        }
    }
    pools::check(problem, plan, &mut wrong);
    let mut by_service: BTreeMap<&str, BySlice<'_>> = BTreeMap::new();
    for gpu in &plan.layout {
        for instance in &gpu.instances {
            let own = by_service.entry(&instance.service).or_default();
            own.entry((&gpu.gpu_type, &instance.profile)).or_default().push(instance);
        }
    }
    for service in &problem.services {
        let instances = by_service.remove(service.name.as_str()).unwrap_or_default();
        check_service(problem, plan, service, instances, &mut wrong);
    }
    for (name, _) in by_service {
        wrong.push(format!("the service {name:?} is not in the problem"));
    }
    if plan.gpus as usize != plan.layout.len() {
        wrong.push(format!("{} GPUs are claimed, {} are laid out", plan.gpus, plan.layout.len()));
    }
    if wrong.is_empty() { Ok(()) } else { Err(Violations(wrong)) }
}

/// The pools of a type: a plan does not say which of several a GPU is of.
fn pools_of<'a>(problem: &'a Problem, gpu_type: &str) -> impl Iterator<Item = (usize, &'a Pool)> {
    problem.pools.iter().enumerate().filter(move |(_, pool)| pool.gpu.name == gpu_type)
}

/// What is wrong with a GPU in the pool of its type where least is; `None` where the type is not there.
fn least_wrong(problem: &Problem, gpu: &GpuLayout) -> Option<Vec<String>> {
    pools_of(problem, &gpu.gpu_type).map(|(_, pool)| placement(pool, gpu)).min_by_key(Vec::len)
}

/// What is wrong with a GPU as one of this pool.
fn placement(pool: &Pool, gpu: &GpuLayout) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut owner: Vec<Option<&str>> = vec![None; pool.gpu.units.into()];
    let mut compute = 0u32;
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for instance in &gpu.instances {
        let index = pool.gpu.profiles.iter().position(|profile| profile.name == instance.profile);
        let Some(index) = index.filter(|index| pool.profiles.contains(index)) else {
            wrong.push(format!("GPU {}: the slice {} may not be used", gpu.gpu, instance.profile));
            continue;
        };
        let profile = &pool.gpu.profiles[index];
        if !profile.starts.contains(&instance.start) {
            wrong.push(format!("GPU {}: {} may not begin at {}", gpu.gpu, instance.profile, instance.start));
        }
        compute += u32::from(profile.compute);
        *counts.entry(&profile.name).or_default() += 1;
        if counts[profile.name.as_str()] > u32::from(profile.most) {
            wrong.push(format!("GPU {}: more than {} of {}", gpu.gpu, profile.most, profile.name));
        }
        for unit in instance.start..instance.start.saturating_add(profile.size) {
            match owner.get_mut(usize::from(unit)) {
                None => wrong.push(format!(
                    "GPU {}: {} at {} ends beyond the GPU",
                    gpu.gpu, instance.profile, instance.start
                )),
                Some(Some(other)) => wrong
                    .push(format!("GPU {}: unit {unit} is in {other} and in {}", gpu.gpu, instance.profile)),
                Some(free) => *free = Some(&profile.name),
            }
        }
    }
    if compute > u32::from(pool.gpu.compute) {
        wrong.push(format!("GPU {}: {compute} compute slices of {}", gpu.gpu, pool.gpu.compute));
    }
    wrong
}

/// A service's instances, by type of GPU and profile.
type BySlice<'a> = BTreeMap<(&'a str, &'a str), Vec<&'a Instance>>;

fn check_service(
    problem: &Problem,
    plan: &Plan,
    service: &Service,
    instances: BySlice<'_>,
    wrong: &mut Vec<String>,
) {
    let mut total = 0.0;
    let mut replicas = 0;
    for ((gpu_type, profile), instances) in instances {
        // Tens of thousands may be equal: each kind is looked at once.
        let mut kinds = BTreeSet::new();
        for instance in &instances {
            total += instance.throughput_rps;
            if !kinds.insert((&instance.model, instance.batch, instance.throughput_rps.to_bits())) {
                continue;
            }
            // In any pool of the type that has such slices.
            let mut checked = pools_of(problem, gpu_type)
                .map(|(pool, _)| check_instance(problem, pool, service, instance, instances.len()));
            let first = checked.next().unwrap_or(Ok(()));
            if let Err(why) = first.or_else(|why| checked.find(Result::is_ok).unwrap_or(Err(why))) {
                wrong.push(format!("service {:?} on {profile}: {why}", service.name));
            }
        }
        replicas += instances.len();
    }
    let needed = service.rate_rps * service.headroom;
    if total.is_nan() || total < needed * (1.0 - SLACK) {
        wrong.push(format!("service {:?} gets {total} of {needed} requests per second", service.name));
    }
    if replicas < service.min_replicas as usize {
        wrong.push(format!(
            "service {:?} has {replicas} instances of at least {}",
            service.name, service.min_replicas
        ));
    }
    match plan.services.iter().find(|supply| supply.name == service.name) {
        Some(supply) if (supply.provided_rps - total).abs() > SLACK * total.abs().max(1.0) => {
            wrong.push(format!(
                "service {:?} is said to get {}, it gets {total}",
                service.name, supply.provided_rps
            ));
        }
        Some(_) => {}
        None => wrong.push(format!("service {:?} is not listed", service.name)),
    }
}

/// Whether an instance, one of `siblings` on equal slices, serves what it is counted for.
fn check_instance(
    problem: &Problem,
    pool_index: usize,
    service: &Service,
    instance: &Instance,
    siblings: usize,
) -> Result<(), String> {
    let pool = &problem.pools[pool_index];
    if instance.model != service.model {
        return Err(format!("it runs {}, not {}", instance.model, service.model));
    }
    let measured =
        measurements(pool, &service.model, &instance.profile).ok_or("it was not measured there")?;
    let profile = pool.gpu.profiles.iter().find(|profile| profile.name == instance.profile);
    let memory = profile.map_or(0.0, |profile| profile.memory_mib);
    let in_time = |point: &Measurement| -> Result<(), String> {
        let needs = service.memory_mib.or(point.peak_mib).or(point.weights_mib).unwrap_or(0.0);
        if needs > memory {
            return Err(format!("a batch of {} needs {needs} MiB of {memory}", point.batch));
        }
        let waits = match problem.rule {
            Rule::Paper | Rule::Measured => 0.0,
            Rule::Half => 1.0,
            Rule::Staggered => 1.0 / siblings as f64,
        };
        let takes = point.latency_ms * (1.0 + waits);
        if takes > service.slo_ms * (1.0 + SLACK) {
            return Err(format!("a batch of {} takes {takes} ms of {}", point.batch, service.slo_ms));
        }
        Ok(())
    };
    let unmeasured = || format!("a batch of {} was not measured", instance.batch);
    if problem.rule == Rule::Measured {
        // The scheduler runs sizes between those measured, too: one as large or larger must be in time.
        let mut larger = measured.iter().filter(|point| point.batch >= instance.batch).map(in_time);
        let first = larger.next().ok_or_else(unmeasured)?;
        first.or_else(|why| larger.find(Result::is_ok).unwrap_or(Err(why)))?;
        return check_simulated(problem, pool_index, service, instance, siblings);
    }
    let point = measured.iter().find(|point| point.batch == instance.batch).ok_or_else(unmeasured)?;
    in_time(point)?;
    let serves = f64::from(instance.batch) * 1000.0 / point.latency_ms;
    if instance.throughput_rps > serves * (1.0 + SLACK) {
        return Err(format!(
            "{} requests per second are claimed, it serves {serves}",
            instance.throughput_rps
        ));
    }
    Ok(())
}

/// Under the rule `measured` the simulated table says what `siblings` instances serve.
fn check_simulated(
    problem: &Problem,
    pool: usize,
    service: &Service,
    instance: &Instance,
    siblings: usize,
) -> Result<(), String> {
    let index = problem.services.iter().position(|other| other.name == service.name).unwrap_or_default();
    let own =
        |slice: &usize| problem.slices[*slice].pool == pool && problem.slice_name(*slice) == instance.profile;
    let slice = (0..problem.slices.len()).find(own).ok_or("the slice may not be used")?;
    let curve = problem.curves[index][slice].as_ref().ok_or("nothing was simulated to be served")?;
    // Siblings in another pool of the type count apart; how many there are is not written down.
    let shared = pools_of(problem, &problem.pools[pool].gpu.name).count() > 1;
    let fewest = if shared { 1 } else { siblings };
    let serves = (fewest..=siblings).map(|n| curve.capacity(n as u32) / n as f64);
    let most = serves.fold(0.0, f64::max);
    if instance.throughput_rps > most * (1.0 + SLACK) {
        return Err(format!(
            "{} requests per second are claimed, {most} were simulated",
            instance.throughput_rps
        ));
    }
    Ok(())
}

/// What was measured of a model on a slice, by the slice's full name or the part before its memory.
fn measurements<'a>(pool: &'a Pool, model: &str, profile: &str) -> Option<&'a [Measurement]> {
    let (compute, rest) = profile.split_once('.').unwrap_or((profile, ""));
    let suffix = rest.find(['+', '-']).map_or("", |at| &rest[at..]);
    let classes = [format!("{}/{profile}", pool.device), format!("{}/{compute}{suffix}", pool.device)];
    classes.iter().find_map(|class| pool.measured.measurements(model, class))
}
