//! How GPUs are cut and what runs in each slice, over time.

use std::collections::BTreeSet;

use downbeat_sim::html::lines::{percent, x_axis};
use downbeat_sim::html::page::{Swatch, colour, figure, legend, nothing};
use downbeat_sim::html::scale::Axis;
use maud::{Markup, html};

use super::{clock, time_axis};
use crate::report::{DayReport, InstanceLife};

/// The height of a memory unit, in CSS pixels.
const UNIT: usize = 6;

/// Between two GPUs.
const GAP: usize = 6;

/// No more GPUs than this, lest the page become a wall.
const GPUS_MAX: usize = 40;

pub(super) fn draw(report: &DayReport) -> Markup {
    let gpus: BTreeSet<u32> = report.instances.iter().map(|life| life.gpu).collect();
    let shown: Vec<u32> = gpus.iter().copied().take(GPUS_MAX).collect();
    let Some(units) = report.instances.iter().map(|life| usize::from(life.units)).max() else {
        return figure("wide", "Layouts", "", &nothing("Nothing ever ran."));
    };
    let row = units * UNIT + GAP;
    let height = shown.len() * row;
    let axis = time_axis(report);
    let names: Vec<(String, String)> = (report.services.iter().enumerate())
        .map(|(index, service)| (colour(index), service.name.clone()))
        .collect();
    let body = html! {
        (legend(Swatch::Area, &names))
        div.scroll tabindex="0" role="region" aria-label="Layouts over time" {
            div.gantt {
                div.gpus style={ "height:" (height) "px" } aria-hidden="true" {
                    @for gpu in &shown { span { "GPU " (gpu) } }
                }
                svg height=(height) role="img" aria-label="One row per GPU, its memory units from top to bottom, one block per instance" {
                    @for (index, gpu) in shown.iter().enumerate() {
                        @for stay in report.gpus.iter().filter(|stay| stay.gpu == *gpu) {
                            (block(&axis, stay.from_s, stay.until_s.unwrap_or(report.duration_s), index * row, units * UNIT, "idle", ""))
                        }
                    }
                    @for life in &report.instances {
                        @if let Some(index) = shown.iter().position(|gpu| *gpu == life.gpu) {
                            (instance(report, &axis, life, index * row))
                        }
                    }
                }
                (x_axis(&axis))
            }
        }
    };
    let more = if gpus.len() > shown.len() {
        format!(" The first {} of {} GPUs.", shown.len(), gpus.len())
    } else {
        String::new()
    };
    let note = format!(
        "One row per GPU, its memory units from top to bottom; a block is an instance, faint while it starts, from its first request to its \
         last. Point at a block for what it is.{more}"
    );
    figure("wide", "Layouts over the day", &note, &body)
}

fn instance(report: &DayReport, axis: &Axis, life: &InstanceLife, row: usize) -> Markup {
    let service = report.services.iter().position(|service| service.name == life.service).unwrap_or(0);
    let (y, height) = (row + usize::from(life.start) * UNIT, usize::from(life.size) * UNIT);
    let until_s = life.until_s.unwrap_or(report.duration_s);
    let serving_s = life.from_s.unwrap_or(until_s).min(until_s);
    html! {
        g class=(colour(service)) {
            title {
                (life.service) " on " (life.profile) " at " (life.start) " of GPU " (life.gpu) ", started " (clock(life.asked_s))
                @match life.from_s {
                    Some(from_s) => { ", served from " (clock(from_s)) " to " (clock(until_s)) },
                    None => { ", never served" },
                }
            }
            (block(axis, life.asked_s, serving_s, y, height, "", "opacity:.4"))
            (block(axis, serving_s, until_s, y, height, "", ""))
        }
    }
}

fn block(
    axis: &Axis,
    from_s: f64,
    until_s: f64,
    y: usize,
    height: usize,
    class: &str,
    style: &str,
) -> Markup {
    let left = axis.percent_at(from_s / 3600.0);
    let width = axis.percent_at(until_s / 3600.0) - left;
    html! {
        @if width > 0.0 {
            rect class=(class) style=(style) x=(percent(left)) y=(y) width=(percent(width)) height=(height) {}
        }
    }
}
