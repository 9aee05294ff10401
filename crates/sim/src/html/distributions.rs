//! How large the batches were, and how busy the GPUs.

use maud::{Markup, html};

use super::bars::{Column, Columns, Histogram};
use super::cast::{Cast, name};
use super::format;
use super::page::{figure, nothing};
use super::scale::Axis;
use crate::RunReport;

/// One small histogram of batch sizes per model shown, all on the same x axis.
pub(super) fn batch_sizes(run: &RunReport, cast: &Cast) -> Markup {
    let largest = run.detail.batch_sizes.iter().map(|sizes| last_used(sizes)).max().unwrap_or(0);
    let pooled = pool_sizes(run, 0..run.detail.batch_sizes.len());
    if largest == 0 {
        return figure("wide", "Batch sizes", "", &nothing("No batch was run."));
    }
    let title = format!("The mean batch holds {}", requests(mean_size(&pooled)));
    let note = match cast.named.len() {
        1 => String::new(),
        _ => cast.note() + "All on the same axis of sizes; each on its own axis of shares.",
    };
    let body = html! {
        div.multiples {
            @for model in &cast.named {
                @let sizes = pool_sizes(run, [*model]);
                (one_histogram(name(run, *model), &cast.class(*model), &sizes, largest))
            }
            @if !cast.pooled.is_empty() {
                @let sizes = pool_sizes(run, cast.pooled.iter().copied());
                (one_histogram(&cast.pooled_label(), "rest", &sizes, largest))
            }
        }
    };
    figure("wide", &title, &note, &body)
}

fn one_histogram(label: &str, class: &str, sizes: &[u64], largest: usize) -> Markup {
    let mean = mean_size(sizes);
    html! {
        div.multiple {
            h4 title=(label) {
                span class={ "swatch area " (class) } {}
                span.name { (label) }
                span.aside { "mean " (format::number(mean)) }
            }
            @if mean.is_nan() {
                (nothing("No batch."))
            } @else {
                (Histogram::new(sizes, largest).draw(class, largest, format!("Batch sizes of {label}")))
            }
        }
    }
}

fn pool_sizes(run: &RunReport, models: impl IntoIterator<Item = usize>) -> Vec<u64> {
    let mut pooled = Vec::new();
    for sizes in models.into_iter().filter_map(|model| run.detail.batch_sizes.get(model)) {
        let used = &sizes[..last_used(sizes)];
        pooled.resize(pooled.len().max(used.len()), 0);
        for (sum, count) in pooled.iter_mut().zip(used) {
            *sum += count;
        }
    }
    pooled
}

/// The largest size that occurred.
fn last_used(sizes: &[u64]) -> usize {
    sizes.iter().rposition(|count| *count > 0).map_or(0, |index| index + 1)
}

/// `1 request`, `20.9 requests`.
fn requests(mean: f64) -> String {
    let number = format::number(mean);
    if number == "1" { "1 request".to_owned() } else { format!("{number} requests") }
}

/// Requests per batch; NaN when there is no batch.
fn mean_size(sizes: &[u64]) -> f64 {
    let batches: u64 = sizes.iter().sum();
    let requests: u64 = sizes.iter().zip(1u64..).map(|(count, size)| count * size).sum();
    requests as f64 / batches as f64
}

/// The share of time each GPU was busy, by id.
pub(super) fn gpu_busy(run: &RunReport) -> Markup {
    let busy = &run.gpus.busy_fraction;
    if busy.is_empty() {
        return figure("", "Busy time of the GPUs", "", &nothing("There is no GPU."));
    }
    let title = format!(
        "{} of {} carry 99 % of the work; {} of GPU time is busy",
        format::count(run.gpus.used as u64),
        format::counted(run.gpus.count, "GPU"),
        format::percent_whole(mean_busy(run)),
    );
    let bar = |(id, share): (usize, &f64)| Column {
        left: id as f64 - 0.5,
        right: id as f64 + 0.5,
        height: *share,
        hint: format!("GPU {id}: busy {}", format::percent(*share)),
    };
    let last = busy.len() as f64;
    let columns = Columns {
        class: "busy",
        x: Axis::over([-0.5, last - 0.5], "GPU id").whole().between(-0.5, last - 0.5),
        y: Axis::from_zero([1.0], "share of time busy").labelled(format::percent_whole),
        bars: busy.iter().enumerate().map(bar).collect(),
        summary: title.clone(),
    };
    let note = "A GPU that stays idle could be given back; time idle on all of them alike cannot.";
    figure("", &title, note, &columns.draw())
}

/// The mean share of time that a GPU was busy; NaN without GPUs.
pub(super) fn mean_busy(run: &RunReport) -> f64 {
    let busy: Vec<f64> = run.gpus.busy_fraction.iter().copied().filter(|x| x.is_finite()).collect();
    busy.iter().sum::<f64>() / busy.len() as f64
}
