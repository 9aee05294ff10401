//! The text of a day, checked.

use std::path::Path;
use std::sync::Arc;

use downbeat_epochs::Settings;
use downbeat_input::suggestion;
use downbeat_mig::Catalogue;
use downbeat_plan::{Problem, Simulator};
use downbeat_sched::Span;
use downbeat_sim::RateTrace;
use downbeat_transition::{Driver, StepTimes};
use serde::Deserialize;
use toml::Spanned;

use super::{DayError, DayScenario, GpuFault};

/// The longest time that can be given, in seconds: a third of a year.
const LONGEST_S: f64 = 1e7;

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    duration_s: Option<Spanned<f64>>,
    seed: Option<Spanned<i64>>,
    day: Spanned<Day>,
    fault: Option<Vec<Spanned<Fault>>>,
}

/// `[day]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Day {
    problem: Spanned<String>,
    trace: Option<Spanned<String>>,
    epoch_s: Option<Spanned<f64>>,
    lead_s: Option<Spanned<f64>>,
    season_s: Option<Spanned<f64>>,
    history_days: Option<Spanned<i64>>,
    headroom: Option<Spanned<f64>>,
    driver: Option<Spanned<String>>,
    times: Option<Spanned<String>>,
    spare: Option<Spanned<i64>>,
    provision_s: Option<Spanned<f64>>,
    interval_s: Option<Spanned<f64>>,
    service: Option<Vec<Spanned<Service>>>,
}

/// `[[day.service]]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with name and trace")]
struct Service {
    name: Spanned<String>,
    trace: Spanned<String>,
}

/// `[[fault]]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with gpu and at_s")]
struct Fault {
    gpu: Spanned<i64>,
    at_s: Spanned<f64>,
}

/// A day's text.
type Source<'a> = downbeat_input::Source<'a, DayError>;

pub(super) fn day(text: &str, origin: &Path, simulator: &dyn Simulator) -> Result<DayScenario, DayError> {
    let source = Source::new(text, origin);
    let file: File = source.parse()?;
    let day = file.day.get_ref();
    let settings = settings(&source, day)?;
    let folder = origin.parent().unwrap_or(Path::new(""));
    let problem = Problem::load(&folder.join(day.problem.get_ref()), simulator)?;
    let mut catalogue = Catalogue::builtin();
    for pool in &problem.pools {
        catalogue.insert((*pool.gpu).clone());
    }
    Ok(DayScenario {
        name: origin.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        duration: time(&source, "duration_s", file.duration_s.as_ref(), Span::from_millis(86_400_000))?,
        seed: match &file.seed {
            Some(seed) => u64::from(source.whole("", "seed", seed, 0, u32::MAX)?),
            None => 1,
        },
        traces: traces(&source, &file.day, &problem, folder)?,
        interval: time(&source, "interval_s", day.interval_s.as_ref(), Span::from_millis(5_000))?,
        faults: faults(&source, file.fault.as_deref().unwrap_or_default())?,
        problem,
        catalogue,
        settings,
    })
}

fn settings(source: &Source<'_>, day: &Day) -> Result<Settings, DayError> {
    let usual = Settings::default();
    let season = time(source, "season_s", day.season_s.as_ref(), usual.season)?;
    let days = match &day.history_days {
        Some(days) => source.whole("", "history_days", days, 0, 100)?,
        None => 0,
    };
    Ok(Settings {
        epoch: time(source, "epoch_s", day.epoch_s.as_ref(), usual.epoch)?,
        lead: time(source, "lead_s", day.lead_s.as_ref(), usual.lead)?,
        provision: time_or_none(source, "provision_s", day.provision_s.as_ref(), usual.provision)?,
        headroom: match &day.headroom {
            Some(headroom) => number(source, "headroom", headroom, 1.0, 10.0)?,
            None => usual.headroom,
        },
        season,
        history: season * u64::from(days),
        driver: match &day.driver {
            Some(name) => {
                one_of(source, "driver", name, &[("nvml", Driver::Nvml), ("mig-parted", Driver::MigParted)])?
            }
            None => usual.driver,
        },
        times: match &day.times {
            Some(name) => one_of(
                source,
                "times",
                name,
                &[("2021", StepTimes::PAPER_2021), ("2024", StepTimes::PAPER_2024)],
            )?,
            None => usual.times,
        },
        spare_max: match &day.spare {
            Some(spare) => Some(source.whole("", "spare", spare, 0, 10_000)? as usize),
            None => None,
        },
    })
}

/// Each service's trace: its own, or that of all.
fn traces(
    source: &Source<'_>,
    day: &Spanned<Day>,
    problem: &Problem,
    folder: &Path,
) -> Result<Vec<Arc<RateTrace>>, DayError> {
    let load = |csv: &Spanned<String>| RateTrace::load(&folder.join(csv.get_ref())).map(Arc::new);
    let common = day.get_ref().trace.as_ref().map(load).transpose()?;
    let mut traces: Vec<Option<Arc<RateTrace>>> = vec![None; problem.services.len()];
    for entry in day.get_ref().service.iter().flatten() {
        let Service { name, trace } = entry.get_ref();
        let Some(index) = problem.services.iter().position(|service| service.name == *name.get_ref()) else {
            let known: Vec<&str> = problem.services.iter().map(|service| service.name.as_str()).collect();
            let said = suggestion(name.get_ref(), &known);
            return Err(
                source.invalid(Some(name.span()), format!("there is no service {:?}{said}", name.get_ref()))
            );
        };
        if traces[index].is_some() {
            return Err(
                source.invalid(Some(name.span()), format!("service {:?} is given twice", name.get_ref()))
            );
        }
        traces[index] = Some(load(trace)?);
    }
    let own = |(trace, service): (Option<Arc<RateTrace>>, &downbeat_plan::Service)| {
        trace.or_else(|| common.clone()).ok_or_else(|| {
            let said = format!("trace is missing: service {:?} has none of its own", service.name);
            source.invalid(Some(day.span()), said)
        })
    };
    traces.into_iter().zip(&problem.services).map(own).collect()
}

fn faults(source: &Source<'_>, faults: &[Spanned<Fault>]) -> Result<Vec<GpuFault>, DayError> {
    let fault = |entry: &Spanned<Fault>| {
        let Fault { gpu, at_s } = entry.get_ref();
        let gpu = source.whole("", "fault.gpu", gpu, 0, 1_000_000)?;
        Ok(GpuFault { gpu, at: Span::from_secs_f64(number(source, "fault.at_s", at_s, 0.0, LONGEST_S)?) })
    };
    let mut faults = faults.iter().map(fault).collect::<Result<Vec<GpuFault>, DayError>>()?;
    faults.sort_by_key(|fault| (fault.at, fault.gpu));
    Ok(faults)
}

fn number(
    source: &Source<'_>,
    key: &str,
    value: &Spanned<f64>,
    least: f64,
    most: f64,
) -> Result<f64, DayError> {
    let number = *value.get_ref();
    if (least..=most).contains(&number) {
        return Ok(number);
    }
    Err(source.invalid(Some(value.span()), format!("{key} must be from {least} to {most} (is {number})")))
}

/// A time of at least a second.
fn time(source: &Source<'_>, key: &str, value: Option<&Spanned<f64>>, usual: Span) -> Result<Span, DayError> {
    let Some(value) = value else { return Ok(usual) };
    Ok(Span::from_secs_f64(number(source, key, value, 1.0, LONGEST_S)?))
}

fn time_or_none(
    source: &Source<'_>,
    key: &str,
    value: Option<&Spanned<f64>>,
    usual: Span,
) -> Result<Span, DayError> {
    let Some(value) = value else { return Ok(usual) };
    Ok(Span::from_secs_f64(number(source, key, value, 0.0, LONGEST_S)?))
}

fn one_of<T: Copy>(
    source: &Source<'_>,
    key: &str,
    word: &Spanned<String>,
    known: &[(&str, T)],
) -> Result<T, DayError> {
    let found = known.iter().find(|(name, _)| name == word.get_ref());
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        let said = suggestion(word.get_ref(), &names);
        source.invalid(Some(word.span()), format!("{key} {:?} is not known{said}", word.get_ref()))
    })
}
