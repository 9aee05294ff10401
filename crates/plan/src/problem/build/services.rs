//! The services of a problem.

use std::collections::BTreeMap;

use toml::Spanned;

use super::super::file::{ProblemFile, ServiceFile};
use super::super::source::{ProblemError, Source, suggestion};
use super::super::{Pool, Service};

/// The highest rate that is believed.
const MOST_RPS: f64 = 1e9;
/// The longest objective that is believed: an hour.
const LONGEST_SLO_MS: f64 = 3.6e6;
/// The most memory that is believed: a pebibyte.
const MOST_MIB: f64 = (1u64 << 30) as f64;

/// The services of a file, in its order. A service without a name has its model's, numbered where that is taken.
pub(super) fn services(
    file: &ProblemFile,
    source: &Source<'_>,
    pools: &[Pool],
) -> Result<Vec<Service>, ProblemError> {
    let listed = file.service.as_deref().unwrap_or_default();
    if listed.is_empty() {
        return Err(
            source.invalid(None, "there is no service; add [[service]] with model, rate_rps and slo_ms")
        );
    }
    // Names that the user gave come first, so that no number takes one of them.
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    for name in listed.iter().filter_map(|service| service.get_ref().name.as_ref()) {
        if name.get_ref().trim().is_empty() || name.get_ref().chars().any(char::is_control) {
            return Err(source.invalid(Some(name.span()), "name must be text that can be printed"));
        }
        if taken.insert(name.get_ref().clone(), 0).is_some() {
            return Err(
                source.invalid(Some(name.span()), format!("service {:?} is given twice", name.get_ref()))
            );
        }
    }
    let mut services = Vec::with_capacity(listed.len());
    for service in listed {
        let name = match &service.get_ref().name {
            Some(name) => name.get_ref().clone(),
            None => free_name(service.get_ref().model.get_ref(), &mut taken),
        };
        services.push(read(source, pools, name, service.get_ref())?);
    }
    Ok(services)
}

fn free_name(model: &str, taken: &mut BTreeMap<String, usize>) -> String {
    let mut name = model.to_owned();
    let mut number = 1;
    while taken.contains_key(&name) {
        number = taken.get(model).copied().unwrap_or(0).max(number) + 1;
        name = format!("{model}-{number}");
        taken.insert(model.to_owned(), number);
    }
    taken.insert(name.clone(), 1);
    name
}

fn read(
    source: &Source<'_>,
    pools: &[Pool],
    name: String,
    file: &ServiceFile,
) -> Result<Service, ProblemError> {
    let who = format!("service {name:?}: ");
    let known = |model: &Spanned<String>| {
        pools.iter().any(|pool| pool.measured.models().any(|known| known == model.get_ref()))
    };
    if !known(&file.model) {
        let mut models: Vec<&str> = pools.iter().flat_map(|pool| pool.measured.models()).collect();
        models.dedup();
        models.truncate(200);
        let model = file.model.get_ref();
        let near = suggestion(model, &models);
        let near =
            if near.contains("did you mean") { near } else { format!("; it has {} models", models.len()) };
        let files: Vec<&str> = pools.iter().map(|pool| pool.measured.name()).collect();
        return Err(source
            .invalid(Some(file.model.span()), format!("{who}{} has no model {model:?}{near}", files[0])));
    }
    let replicas =
        file.min_replicas.as_ref().map(|n| source.whole(&who, "min_replicas", n, 1, 10_000)).transpose()?;
    let memory =
        file.memory_mib.as_ref().map(|mib| source.positive(&who, "memory_mib", mib, MOST_MIB)).transpose()?;
    Ok(Service {
        model: file.model.get_ref().clone(),
        rate_rps: source.positive(&who, "rate_rps", &file.rate_rps, MOST_RPS)?,
        slo_ms: source.positive(&who, "slo_ms", &file.slo_ms, LONGEST_SLO_MS)?,
        min_replicas: replicas.unwrap_or(1),
        memory_mib: memory,
        headroom: 1.0,
        name,
    })
}
