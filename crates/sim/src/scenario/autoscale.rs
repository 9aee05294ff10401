//! `[autoscale]`: how many devices there may be, and how long one takes to come.

use downbeat_scale::Settings;
use downbeat_sched::Span;
use toml::Spanned;

use super::check::{Least, Place};
use super::error::ScenarioError;
use super::file::{AutoscaleFile, ScenarioFile};
use super::{Autoscale, GpuClass};

const SECOND: f64 = 1.0;

/// The most devices that an autoscaled cluster may have: a replay keeps books on each.
const MOST_GPUS: u32 = 100_000;

pub(super) fn autoscale(
    file: &ScenarioFile,
    top: &Place<'_>,
    classes: &[GpuClass],
) -> Result<Option<Autoscale>, ScenarioError> {
    let Some(spanned) = &file.autoscale else { return Ok(None) };
    if classes.len() > 1 {
        return Err(top.wrong(spanned.span(), "autoscale needs one class of devices; give gpus = N"));
    }
    let AutoscaleFile { min, max, .. } = spanned.get_ref();
    let place = Place { source: top.source, who: "autoscale: ".to_owned() };
    let min = min.as_ref().map_or(Ok(1), |min| place.whole("min", min, 1, MOST_GPUS))?;
    let max = place.whole(
        "max",
        place.needed("max", max.as_ref(), spanned.span(), "[autoscale]")?,
        1,
        MOST_GPUS,
    )?;
    let gpus = classes.iter().map(|class| class.count).sum::<u32>();
    if min > max {
        return Err(
            place.wrong(spanned.span(), format!("min must be at most max ({min} is more than {max})"))
        );
    }
    if !(min..=max).contains(&gpus) {
        let message = format!(
            "gpus, with which the run begins, must be from min to max ({gpus} is not in {min}..{max})"
        );
        return Err(place.wrong(spanned.span(), message));
    }
    let interval =
        time(&place, "interval_s", spanned.get_ref().interval_s.as_ref(), Span::from_millis(5_000))?;
    Ok(Some(Autoscale { interval, settings: settings(&place, spanned, min, max)? }))
}

fn settings(
    place: &Place<'_>,
    spanned: &Spanned<AutoscaleFile>,
    min: u32,
    max: u32,
) -> Result<Settings, ScenarioError> {
    let file = spanned.get_ref();
    let usual = Settings::between(min, max).map_err(|error| place.wrong(spanned.span(), error))?;
    let share = |key: &str, value: &Option<Spanned<f64>>, usual: f64, most: f64| match value {
        Some(value) => place.number(key, value, Least::Above(0.0), most),
        None => Ok(usual),
    };
    let number = |key: &str, value: &Option<Spanned<f64>>, usual: f64| match value {
        Some(value) => place.number(key, value, Least::From(0.0), 100.0),
        None => Ok(usual),
    };
    Settings {
        provision: match &file.provision_s {
            Some(_) => place.time_or_none("provision_s", file.provision_s.as_ref(), SECOND)?,
            None => usual.provision,
        },
        react: time(place, "react_s", file.react_s.as_ref(), usual.react)?,
        calm: time(place, "calm_s", file.calm_s.as_ref(), usual.calm)?,
        cool_down: match &file.cool_down_s {
            Some(_) => place.time_or_none("cool_down_s", file.cool_down_s.as_ref(), SECOND)?,
            None => usual.cool_down,
        },
        step_up: share("step_up", &file.step_up, usual.step_up, 100.0)?,
        step_down: share("step_down", &file.step_down, usual.step_down, 1.0)?,
        hysteresis: number("hysteresis", &file.hysteresis, usual.hysteresis)?,
        reserve: number("reserve", &file.reserve, usual.reserve)?,
        forecast: file.forecast.as_ref().is_some_and(|forecast| *forecast.get_ref()),
        ..usual
    }
    .checked()
    .map_err(|error| place.wrong(spanned.span(), error))
}

fn time(
    place: &Place<'_>,
    key: &str,
    value: Option<&Spanned<f64>>,
    usual: Span,
) -> Result<Span, ScenarioError> {
    value.map_or(Ok(usual), |value| place.time(key, value, SECOND))
}
