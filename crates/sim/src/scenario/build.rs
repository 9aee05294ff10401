//! From the text of a file to a checked scenario.

use std::collections::BTreeSet;
use std::path::Path;

use downbeat_sched::{Delays, GpuId, Rule, Span};
use toml::Spanned;

use super::check::{LONGEST_S, Least, Place};
use super::error::{ScenarioError, Source};
use super::file::{FaultFile, JitterFile, QuantilesFile, ScenarioFile};
use super::load::Files;
use super::{Fault, GpuClass, Jitter, Scenario, autoscale, model, rates, subclusters};
use crate::Quantiles;

/// The most devices a scenario may have: room for the largest cluster, not for a slip of the finger.
const MOST_GPUS: u32 = 1_000_000;

const SECOND: f64 = 1.0;
const MICROSECOND: f64 = 1e-6;

/// Reads and checks a whole scenario.
pub(super) fn scenario(text: &str, origin: &Path) -> Result<Scenario, ScenarioError> {
    let source = Source::new(text, origin);
    let file: ScenarioFile = source.parse()?;
    let top = Place { source: &source, who: String::new() };

    let classes = classes(&file, &top)?;
    let (duration, warmup) = duration_and_warmup(&file, &top)?;
    let response_reserve =
        top.time_or_none("response_reserve_us", file.response_reserve_us.as_ref(), MICROSECOND)?;
    let mut models = model::Reader { top: &top, file: &file, classes: &classes, response_reserve }
        .models(&mut Files::beside(origin))?;
    let total_rps = rates::assign(&file, &top, &mut models)?;

    Ok(Scenario {
        name: origin.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        duration,
        warmup,
        seed: seed(&file, &top)?,
        rule: rule(&file, &top)?,
        delays: Delays {
            control: top.time_or_none("control_delay_us", file.control_delay_us.as_ref(), MICROSECOND)?,
            data: top.time_or_none("data_delay_us", file.data_delay_us.as_ref(), MICROSECOND)?,
        },
        response_reserve,
        response: (file.response_us.as_ref()).map(|it| quantiles("response_us", it, &top)).transpose()?,
        jitter: jitter(&file, &top)?,
        total_rps,
        faults: faults(&file, &top, &classes)?,
        autoscale: autoscale::autoscale(&file, &top, &classes)?,
        subclusters: subclusters::subclusters(&file, &top, &classes, &models)?,
        classes,
        models,
    })
}

fn classes(file: &ScenarioFile, top: &Place<'_>) -> Result<Vec<GpuClass>, ScenarioError> {
    let classes = match (&file.gpus, &file.gpu_class) {
        (Some(gpus), None) => {
            let count = top.whole("gpus", gpus, 1, MOST_GPUS)?;
            return Ok(vec![GpuClass { name: "gpu".into(), count }]);
        }
        (Some(gpus), Some(_)) => {
            return Err(top.wrong(gpus.span(), "gpus and [[gpu_class]] cannot both be given"));
        }
        (None, Some(classes)) if !classes.is_empty() => classes,
        (None, _) => {
            return Err(top.source.invalid(None, "gpus is missing; give gpus = N, or [[gpu_class]]"));
        }
    };

    let mut names = BTreeSet::new();
    let mut total = 0;
    let mut built = Vec::with_capacity(classes.len());
    for class in classes {
        let (name, count) = (&class.get_ref().name, &class.get_ref().count);
        let place = Place { source: top.source, who: format!("gpu_class {:?}: ", name.get_ref()) };
        place.name(name)?;
        if !names.insert(name.get_ref()) {
            return Err(place.wrong(name.span(), "the name is given twice"));
        }
        // Less than is left: so the sum cannot pass the limit either, nor the ids of classes run out.
        let left = MOST_GPUS - total;
        let most = if names.len() > usize::from(u16::MAX) { 0 } else { left };
        let count = place.whole("count", count, 1, most)?;
        total += count;
        built.push(GpuClass { name: name.get_ref().clone(), count });
    }
    Ok(built)
}

fn duration_and_warmup(file: &ScenarioFile, top: &Place<'_>) -> Result<(Span, Span), ScenarioError> {
    let duration = match &file.duration_s {
        Some(duration) => top.time("duration_s", duration, SECOND)?,
        None => Span::from_millis(12_000),
    };
    let warmup = match &file.warmup_s {
        Some(_) => top.time_or_none("warmup_s", file.warmup_s.as_ref(), SECOND)?,
        None => Span::from_millis(1_000),
    };
    if warmup >= duration {
        // Blames what was written: a default is never at fault.
        let (warmup_s, duration_s) = (warmup.as_secs_f64(), duration.as_secs_f64());
        let at = file.warmup_s.as_ref().or(file.duration_s.as_ref()).map(Spanned::span);
        let message = format!("warmup_s must be below duration_s ({warmup_s} is not below {duration_s})");
        return Err(top.source.invalid(at, message));
    }
    Ok((duration, warmup))
}

fn seed(file: &ScenarioFile, top: &Place<'_>) -> Result<u64, ScenarioError> {
    let Some(seed) = &file.seed else { return Ok(1) };
    u64::try_from(*seed.get_ref())
        .map_err(|_| top.wrong(seed.span(), format!("seed must be at least 0 (is {})", seed.get_ref())))
}

/// The rule that uses devices as `spare_devices` says.
fn rule(file: &ScenarioFile, top: &Place<'_>) -> Result<Rule, ScenarioError> {
    let Some(word) = &file.spare_devices else { return Ok(Rule::ADAPTIVE) };
    match word.get_ref().as_str() {
        "answer" => Ok(Rule::ADAPTIVE),
        "idle" => Ok(Rule::ADAPTIVE.without_early_starts()),
        _ => Err(top.unknown("spare_devices", word, &["answer", "idle"])),
    }
}

fn jitter(file: &ScenarioFile, top: &Place<'_>) -> Result<Jitter, ScenarioError> {
    let Some(spanned) = &file.jitter else { return Ok(Jitter::None) };
    let JitterFile { kind, sigma, added_us } = spanned.get_ref();
    if kind.get_ref() != "added" {
        top.unused("jitter.added_us", added_us.as_ref(), &format!("jitter kind {:?}", kind.get_ref()))?;
    }
    match kind.get_ref().as_str() {
        "none" => {
            top.unused("jitter.sigma", sigma.as_ref(), "jitter kind \"none\"")?;
            Ok(Jitter::None)
        }
        "lognormal" => {
            let sigma =
                top.needed("jitter.sigma", sigma.as_ref(), spanned.span(), "jitter kind \"lognormal\"")?;
            // e^10: past that, nearly every batch takes either no time or the whole run.
            Ok(Jitter::Lognormal { sigma: top.number("jitter.sigma", sigma, Least::From(0.0), 10.0)? })
        }
        "added" => {
            top.unused("jitter.sigma", sigma.as_ref(), "jitter kind \"added\"")?;
            let added =
                top.needed("jitter.added_us", added_us.as_ref(), spanned.span(), "jitter kind \"added\"")?;
            Ok(Jitter::Added(quantiles("jitter.added_us", added, top)?))
        }
        _ => Err(top.unknown("jitter kind", kind, &["none", "lognormal", "added"])),
    }
}

/// Times in microseconds, by the share that stays within each.
fn quantiles(
    key: &str,
    points: &Spanned<QuantilesFile>,
    top: &Place<'_>,
) -> Result<Quantiles, ScenarioError> {
    let longest_us = LONGEST_S / MICROSECOND;
    let wrong = || {
        let rule = "pairs of a share and microseconds, of which shares rise, the last one to 1, and times do not fall";
        top.wrong(points.span(), format!("{key} must be {rule}, as in [[0.5, 20], [0.99, 300], [1, 4000]]"))
    };
    let point = |&(share, us): &(f64, f64)| {
        (0.0..=longest_us).contains(&us).then(|| (share, Span::from_secs_f64(us * MICROSECOND)))
    };
    let points: Option<Vec<_>> = points.get_ref().iter().map(point).collect();
    points.and_then(Quantiles::new).ok_or_else(wrong)
}

/// Which devices fail when, the first failure first.
fn faults(file: &ScenarioFile, top: &Place<'_>, classes: &[GpuClass]) -> Result<Vec<Fault>, ScenarioError> {
    let last = classes.iter().map(|class| class.count).sum::<u32>() - 1;
    let fault = |spanned: &Spanned<FaultFile>| {
        let FaultFile { gpu, at_s } = spanned.get_ref();
        let gpu = GpuId(top.whole("fault.gpu", gpu, 0, last)?);
        Ok(Fault { gpu, at: top.time("fault.at_s", at_s, SECOND)? })
    };
    let mut faults = file.fault.iter().flatten().map(fault).collect::<Result<Vec<Fault>, ScenarioError>>()?;
    faults.sort_by_key(|fault| (fault.at, fault.gpu));
    Ok(faults)
}
