//! Instances as JSON.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use downbeat_mig::{Evidence, GpuModel, SliceProfile};
use downbeat_profile::ProfileFile;
use serde::Deserialize;

use crate::problem::{Configuration, Pool, Problem, Service, Slice};
use crate::rule::{Curve, Rule};

/// An instance of configurable machine scheduling.
///
/// ```json
/// { "blocks": ["small", "large"],
///   "configurations": [[4, 0], [1, 1]],
///   "jobs": [{ "name": "a", "demand": 10, "values": [1, 3.5] }] }
/// ```
///
/// Instead of a list, `"configurations": { "sizes": [1, 3], "capacity": 4 }` stands for every multiset of blocks whose
/// sizes sum to at most the capacity. A value of 0 is a block that is of no use to the job.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cms {
    /// The types of blocks.
    pub blocks: Vec<String>,
    configurations: Configurations,
    jobs: Vec<Job>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Configurations {
    Listed(Vec<Vec<u32>>),
    UpToSize { sizes: Vec<u32>, capacity: u32 },
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Job {
    name: Option<String>,
    demand: f64,
    values: Vec<f64>,
}

/// What is wrong with an instance.
#[derive(Debug, thiserror::Error)]
#[error("{}: {message}", path.display())]
pub struct CmsError {
    path: PathBuf,
    message: String,
}

/// Configurations that are enumerated, at most.
const MOST_CONFIGURATIONS: usize = 100_000;
/// Blocks that the jobs may need in all: every one is written down, and demands count in any unit.
const MOST_BLOCKS: f64 = 1e6;

impl Cms {
    /// Reads and checks an instance.
    pub fn load(path: &Path) -> Result<Cms, CmsError> {
        let fail = |message: String| CmsError { path: path.to_owned(), message };
        let text = std::fs::read_to_string(path).map_err(|cause| fail(format!("cannot be read: {cause}")))?;
        Cms::parse(&text).map_err(fail)
    }

    /// Checks an instance.
    pub fn parse(text: &str) -> Result<Cms, String> {
        let cms: Cms = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let types = cms.blocks.len();
        if types == 0 || types > 64 {
            return Err(format!("blocks must have from 1 to 64 types (has {types})"));
        }
        if let Some(twice) = repeated(cms.blocks.iter().cloned()) {
            return Err(format!("blocks has {twice:?} twice; each type needs a name of its own"));
        }
        if cms.jobs.is_empty() {
            return Err("jobs must have at least one".to_owned());
        }
        for (index, job) in cms.jobs.iter().enumerate() {
            let who = format!("job {} ({})", index + 1, job.name.as_deref().unwrap_or("without a name"));
            if !(job.demand > 0.0 && job.demand.is_finite()) {
                return Err(format!("{who}: demand must be a number above 0 (is {})", job.demand));
            }
            if job.values.len() != types {
                return Err(format!(
                    "{who}: values must have one number for each of {types} blocks (has {})",
                    job.values.len()
                ));
            }
            if let Some(bad) = job.values.iter().find(|value| !(value.is_finite() && **value >= 0.0)) {
                return Err(format!("{who}: values must be numbers of at least 0 (one is {bad})"));
            }
        }
        match &cms.configurations {
            Configurations::Listed(listed) => {
                if listed.is_empty() || listed.iter().any(|blocks| blocks.len() != types) {
                    return Err(format!("configurations must each have {types} counts, and be at least one"));
                }
                if listed.iter().flatten().any(|&count| f64::from(count) > MOST_BLOCKS) {
                    return Err(format!("configurations must have counts of at most {MOST_BLOCKS}"));
                }
            }
            Configurations::UpToSize { sizes, capacity } => {
                if sizes.len() != types || sizes.iter().any(|&size| size == 0 || size > *capacity) {
                    return Err(format!("sizes must be {types} numbers from 1 to the capacity"));
                }
                if sizes.iter().any(|&size| f64::from(capacity / size) > MOST_BLOCKS) {
                    return Err(format!("a machine may have at most {MOST_BLOCKS} blocks; scale the sizes"));
                }
            }
        }
        if cms.multisets().len() >= MOST_CONFIGURATIONS {
            return Err(format!("there are more than {MOST_CONFIGURATIONS} configurations"));
        }
        cms.check_jobs()?;
        Ok(cms)
    }

    /// That jobs are told apart, and can be served by a number of blocks that can be written down.
    fn check_jobs(&self) -> Result<(), String> {
        let names = (0..self.jobs.len()).map(|index| self.job_name(index));
        if let Some(twice) = repeated(names) {
            return Err(format!("jobs has {twice:?} twice; each job needs a name of its own"));
        }
        let multisets = self.multisets();
        let mut blocks = 0.0;
        for (index, job) in self.jobs.iter().enumerate() {
            let offered = |block: &usize| multisets.iter().any(|multiset| multiset[*block] > 0);
            let values = (0..self.blocks.len()).filter(offered).map(|block| job.values[block]);
            let best = values.fold(0.0, f64::max);
            let who = format!("job {:?}", self.job_name(index));
            if best <= 0.0 {
                return Err(format!(
                    "no schedule exists: {who}: no block of any configuration is of use to it"
                ));
            }
            blocks += (job.demand / best).ceil();
            if blocks > MOST_BLOCKS {
                return Err(format!(
                    "the jobs up to {who} need at least {blocks:.0} blocks, more than the {MOST_BLOCKS} that can be scheduled"
                ));
            }
        }
        Ok(())
    }

    fn job_name(&self, index: usize) -> String {
        self.jobs[index].name.clone().unwrap_or_else(|| format!("job-{}", index + 1))
    }

    /// The configurations that are part of no other.
    fn multisets(&self) -> Vec<Vec<u32>> {
        let mut all = match &self.configurations {
            Configurations::Listed(listed) => listed.clone(),
            Configurations::UpToSize { sizes, capacity } => {
                let mut largest_first: Vec<usize> = (0..sizes.len()).collect();
                largest_first.sort_by_key(|&block| std::cmp::Reverse(sizes[block]));
                let mut found = Vec::new();
                maximal(sizes, *capacity, &mut vec![0; sizes.len()], &largest_first, &mut found);
                found
            }
        };
        all.sort();
        all.dedup();
        if all.len() > 2_000 {
            return all;
        }
        let within = |a: &Vec<u32>, b: &Vec<u32>| a != b && a.iter().zip(b).all(|(a, b)| a <= b);
        all.iter().filter(|a| !all.iter().any(|b| within(a, b))).cloned().collect()
    }

    /// The same as a problem that every solver takes: blocks as slices of one machine, jobs as services.
    pub fn problem(&self, name: &str) -> Problem {
        let profile = |name: &String| SliceProfile {
            name: name.clone(),
            compute: 1,
            size: 1,
            starts: vec![0],
            memory_mib: f64::INFINITY,
            sms: None,
            most: u8::MAX,
            evidence: Evidence::UserDefined,
        };
        let gpu = Arc::new(GpuModel {
            name: "machine".to_owned(),
            units: 1,
            compute: 1,
            profiles: self.blocks.iter().map(profile).collect(),
        });
        // Nothing was measured: values are given.
        let measured = ProfileFile::parse(b"model,slice,batch,latency_ms\njob,block,1,1\n", "machine.csv");
        let profiles: Vec<usize> = (0..self.blocks.len()).collect();
        let pools = measured
            .into_iter()
            .map(|measured| Pool {
                gpu: Arc::clone(&gpu),
                count: None,
                cost: 1.0,
                gpus_per_node: 8,
                profiles: profiles.clone(),
                measured: Arc::new(measured),
                device: "machine".to_owned(),
            })
            .collect();
        let service = |(index, job): (usize, &Job)| Service {
            name: self.job_name(index),
            model: "job".to_owned(),
            rate_rps: job.demand,
            slo_ms: 1.0,
            min_replicas: 1,
            memory_mib: None,
            headroom: 1.0,
        };
        let multisets = self.multisets();
        let offered = |block: usize| multisets.iter().any(|multiset| multiset[block] > 0);
        // A block that no configuration has serves nobody.
        let curve = |(block, value): (usize, &f64)| {
            (*value > 0.0 && offered(block)).then(|| Curve::linear(*value, 1))
        };
        Problem {
            name: name.to_owned(),
            rule: Rule::Paper,
            pools,
            services: self.jobs.iter().enumerate().map(service).collect(),
            slices: profiles.iter().map(|&profile| Slice { pool: 0, profile }).collect(),
            configurations: self
                .multisets()
                .into_iter()
                .map(|slices| Configuration { pool: 0, slices })
                .collect(),
            curves: self.jobs.iter().map(|job| job.values.iter().enumerate().map(curve).collect()).collect(),
            notes: Vec::new(),
        }
    }
}

/// Every multiset that no block fits beside, as far as they are to be counted. `order` is of the blocks still to be
/// decided, the largest first: once the smallest has taken all the room it can, nothing fits beside.
fn maximal(sizes: &[u32], left: u32, counts: &mut Vec<u32>, order: &[usize], found: &mut Vec<Vec<u32>>) {
    let Some((&block, smaller)) = order.split_first() else {
        found.push(counts.clone());
        return;
    };
    let most = left / sizes[block];
    let least = if smaller.is_empty() { most } else { 0 };
    for count in least..=most {
        if found.len() >= MOST_CONFIGURATIONS {
            break;
        }
        counts[block] = count;
        maximal(sizes, left - count * sizes[block], counts, smaller, found);
    }
    counts[block] = 0;
}

/// A name that is there twice.
fn repeated(names: impl Iterator<Item = String>) -> Option<String> {
    let mut seen = BTreeSet::new();
    names.into_iter().find(|name| !seen.insert(name.clone()))
}
