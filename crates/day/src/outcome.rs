//! From what was seen of a day to its report.

use downbeat_sim::Tally;
use downbeat_transition::Driver;

use crate::report::{DayMinute, DayReport, LogLine, ServiceDay, Window};
use crate::site::Site;
use crate::{DayScenario, IN_SLO_LEAST};

/// A service-minute with fewer requests says too little about a share of 1 %.
const COUNTED: u64 = 1_000;

/// What is gathered while a day goes by.
pub(crate) struct Facts {
    fixed_gpus: u32,
    windows: Vec<Window>,
    pub(crate) minutes: Vec<DayMinute>,
    pub(crate) log: Vec<LogLine>,
}

impl Facts {
    pub(crate) fn new(fixed_gpus: u32, windows: Vec<Window>) -> Facts {
        Facts { fixed_gpus, windows, minutes: Vec::new(), log: Vec::new() }
    }

    fn is_excused(&self, minute: usize) -> bool {
        let (from_s, until_s) = (60.0 * minute as f64, 60.0 * (minute + 1) as f64);
        self.windows.iter().any(|window| window.from_s < until_s && from_s < window.until_s)
    }
}

/// Lets the last requests leave, and adds everything up.
pub(crate) fn report(day: &DayScenario, seed: u64, site: Site<'_>, mut facts: Facts) -> DayReport {
    let gpu_hours = site.gpu_seconds() / 3600.0;
    let record = site.record;
    let outcome = site.live.finish();
    let share = |tally: Option<&Tally>| tally.map_or(1.0, |tally| 1.0 - tally.bad_rate());
    for (index, minute) in facts.minutes.iter_mut().enumerate() {
        let tallies = outcome.minutes.get(index);
        let services = 0..day.problem.services.len();
        minute.in_slo =
            services.map(|service| share(tallies.and_then(|tallies| tallies.get(service)))).collect();
    }
    let (mut service_minutes, mut missed, mut missed_unexcused) = (0, 0, 0);
    for (index, tallies) in outcome.minutes.iter().enumerate() {
        for tally in tallies.iter().filter(|tally| tally.answered >= COUNTED) {
            service_minutes += 1;
            if 1.0 - tally.bad_rate() < IN_SLO_LEAST {
                missed += 1;
                missed_unexcused += u64::from(!facts.is_excused(index));
            }
        }
    }
    let services = (day.problem.services.iter().enumerate())
        .map(|(index, service)| {
            let counted = outcome.minutes.iter().filter_map(|tallies| tallies.get(index));
            let counted = counted.filter(|tally| tally.answered >= COUNTED);
            let model = outcome.models[index];
            let instances = || facts.minutes.iter().map(|minute| minute.instances[index]);
            ServiceDay {
                name: service.name.clone(),
                model: service.model.clone(),
                slo_ms: service.slo_ms,
                requests: model.arrivals,
                in_slo: 1.0 - part(model.bad + (model.arrivals - model.answered), model.arrivals),
                in_slo_worst_minute: counted.map(|tally| 1.0 - tally.bad_rate()).fold(1.0, f64::min),
                instances_least: instances().min().unwrap_or(0),
                instances_most: instances().max().unwrap_or(0),
            }
        })
        .collect();
    let sum = |count: fn(&downbeat_sim::ModelOutcome) -> u64| outcome.models.iter().map(count).sum::<u64>();
    let (requests, answered, bad) = (sum(|m| m.arrivals), sum(|m| m.answered), sum(|m| m.bad));
    let gpus = || facts.minutes.iter().map(|minute| minute.gpus);
    let fixed_gpu_hours = f64::from(facts.fixed_gpus) * day.duration.as_secs_f64() / 3600.0;
    DayReport {
        day: day.name.clone(),
        seed,
        duration_s: day.duration.as_secs_f64(),
        epoch_s: day.settings.epoch.as_secs_f64(),
        driver: match day.settings.driver {
            Driver::Nvml => "nvml".to_owned(),
            Driver::MigParted => "mig-parted".to_owned(),
        },
        provision_s: day.settings.provision.as_secs_f64(),
        gpu_hours,
        gpus_least: gpus().min().unwrap_or(0),
        gpus_most: gpus().max().unwrap_or(0),
        fixed_gpus: facts.fixed_gpus,
        fixed_gpu_hours,
        saved: if fixed_gpu_hours > 0.0 { 1.0 - gpu_hours / fixed_gpu_hours } else { 0.0 },
        requests,
        lost: requests - answered,
        bad,
        in_slo: 1.0 - part(bad + (requests - answered), requests),
        service_minutes,
        missed,
        missed_unexcused,
        services,
        changes: record.changes,
        instances: record.instances,
        gpus: record.gpus,
        violations: record.violations,
        notes: day.problem.notes.clone(),
        windows: facts.windows,
        minutes: facts.minutes,
        log: facts.log,
        wall_s: 0.0,
    }
}

fn part(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
