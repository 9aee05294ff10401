//! The steps of every change: a strip of the whole day, and each change by itself.

use downbeat_sim::html::lines::{percent, x_axis};
use downbeat_sim::html::page::{Swatch, colour, figure, legend, nothing, tabs};
use downbeat_sim::html::scale::Axis;
use maud::{Markup, html};

use super::{clock, time_axis};
use crate::report::{ChangeReport, DayReport, StepRun};

const KINDS: [&str; 4] = ["create", "migrate", "delete", "repartition"];

/// The height of a row, in CSS pixels.
const ROW: usize = 16;

/// In percent of the width: a step of a minute is to be seen in a day.
const WIDTH_MIN: f64 = 0.2;

/// No more steps of a change than this, lest the page become a wall.
const STEPS_MAX: usize = 80;

/// No more changes than this are drawn by themselves.
const CHANGES_MAX: usize = 60;

pub(super) fn draw(report: &DayReport) -> Markup {
    if report.changes.iter().all(|change| change.steps.is_empty()) {
        return figure("wide", "Steps", "", &nothing("Nothing was changed."));
    }
    let kinds: Vec<(String, String)> =
        (KINDS.iter().enumerate()).map(|(index, kind)| (colour(index), (*kind).to_owned())).collect();
    let steps: Vec<&StepRun> = report.changes.iter().flat_map(|change| &change.steps).collect();
    let row_of = |step: &StepRun| KINDS.iter().position(|kind| step.kind == **kind).unwrap_or(0);
    let labels: Vec<String> = KINDS.iter().map(|kind| (*kind).to_owned()).collect();
    let day = chart(&labels, &time_axis(report), &steps, row_of, |at_s| at_s / 3600.0, report.duration_s);
    let note = "Each block is a step, from its begin to its end.";
    let panels: Vec<(String, Markup)> = (report.changes.iter())
        .filter(|change| !change.steps.is_empty())
        .take(CHANGES_MAX)
        .map(|change| (clock(change.at_s), one(report, change)))
        .collect();
    html! {
        (figure("wide", "Steps over the day", note, &html! { (legend(Swatch::Area, &kinds)) (day) }))
        h2 { "Change by change" }
        (tabs("change", &panels))
    }
}

fn one(report: &DayReport, change: &ChangeReport) -> Markup {
    let steps: Vec<&StepRun> = change.steps.iter().take(STEPS_MAX).collect();
    let last_s = change.steps.iter().filter_map(|step| step.until_s).fold(change.at_s + 1.0, f64::max);
    let length_s = change.ended_s.unwrap_or(last_s) - change.at_s;
    let axis = Axis::from_zero([length_s], "seconds from the decision").between(0.0, length_s);
    let labels: Vec<String> = steps.iter().map(|step| format!("GPU {}", step.gpu)).collect();
    let row_of = |step: &StepRun| steps.iter().position(|other| other.id == step.id).unwrap_or(0);
    let title = format!(
        "{}: {}, {} of {} steps, to {} GPUs",
        clock(change.at_s),
        change.cause,
        change.steps.len(),
        change.planned_steps,
        change.gpus
    );
    let body = html! {
        (chart(&labels, &axis, &steps, row_of, |at_s| at_s - change.at_s, report.duration_s))
        @for note in &change.notes { p.hint { (note) } }
    };
    figure("wide", &title, &change.why, &body)
}

/// Blocks in rows.
fn chart(
    labels: &[String],
    axis: &Axis,
    steps: &[&StepRun],
    row_of: impl Fn(&StepRun) -> usize,
    at: impl Fn(f64) -> f64,
    end_s: f64,
) -> Markup {
    let height = labels.len() * ROW;
    let block = |step: &StepRun| {
        let left = axis.percent_at(at(step.from_s));
        let width = axis.percent_at(at(step.until_s.unwrap_or(end_s))) - left;
        let kind = KINDS.iter().position(|kind| step.kind == **kind).unwrap_or(0);
        html! {
            g class=(colour(kind)) {
                title {
                    "Step " (step.id) ": " (step.what) ", " (clock(step.from_s))
                    @if let Some(until_s) = step.until_s { " to " (clock(until_s)) }
                    @if step.failed { ", failed" }
                }
                rect x=(percent(left)) y=(row_of(step) * ROW + 1) width=(percent(width.max(WIDTH_MIN))) height=(ROW - 2) {}
            }
        }
    };
    html! {
        div.scroll tabindex="0" role="region" aria-label="Steps" {
            div.gantt {
                div.gpus style={ "height:" (height) "px;line-height:" (ROW) "px" } aria-hidden="true" {
                    @for label in labels { span style={ "line-height:" (ROW) "px" } { (label) } }
                }
                svg height=(height) role="img" aria-label="One block per step" {
                    @for row in 0..labels.len() { rect.idle y=(row * ROW + 1) width="100%" height=(ROW - 2) {} }
                    @for step in steps { (block(step)) }
                }
                (x_axis(axis))
            }
        }
    }
}
