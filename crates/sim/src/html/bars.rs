//! Bars: goodput per policy, batch sizes per model, busy time per GPU.

use maud::{Markup, html};

use super::format;
use super::lines::{frame, grid, percent, stretched, up_class, x_axis};
use super::scale::{Axis, SIZE, extent};

/// One horizontal bar with what varied around it.
pub(super) struct Bar {
    pub(super) label: String,
    pub(super) class: String,
    pub(super) value: f64,
    /// One value per seed.
    pub(super) samples: Vec<f64>,
    /// Written at the end of the row.
    pub(super) reading: Markup,
    pub(super) hint: String,
}

/// Horizontal bars over one axis, with the samples' range as an error bar and a mark that all are read against.
pub(super) fn rows(axis: &Axis, bars: &[Bar], mark: Option<(f64, String)>) -> Markup {
    let mark = mark.filter(|(value, _)| axis.holds(*value));
    html! {
        div.rows {
            @if let Some((value, label)) = &mark {
                div.markrow {
                    @let place = axis.percent_at(*value);
                    span class=(up_class(place)) style={ "left:" (percent(place)) } { (label) }
                }
            }
            @for bar in bars {
                div.bar {
                    div.label title=(bar.label) { (bar.label) }
                    div.track title=(bar.hint) {
                        @let width = percent(axis.percent_at(bar.value));
                        span class={ "fill " (bar.class) } style={ "width:" (width) } {}
                        @if let Some((value, _)) = &mark {
                            span.bound style={ "left:" (percent(axis.percent_at(*value))) } {}
                        }
                        (error_bar(axis, &bar.samples))
                    }
                    div.reading { (bar.reading) }
                }
            }
            div.axis { (x_axis(axis)) }
        }
    }
}

/// The range of the samples, with a dot on each.
fn error_bar(axis: &Axis, samples: &[f64]) -> Markup {
    let Some((lo, hi)) = extent(samples.iter().copied()) else { return html! {} };
    let (left, right) = (axis.percent_at(lo), axis.percent_at(hi));
    html! {
        @if samples.len() > 1 {
            span.whisker style={ "left:" (percent(left)) ";width:" (percent(right - left)) } {}
            @for sample in samples.iter().filter(|s| s.is_finite()) {
                span.sample style={ "left:" (percent(axis.percent_at(*sample))) } {}
            }
        }
    }
}

/// One upright bar.
pub(super) struct Column {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) height: f64,
    pub(super) hint: String,
}

/// Upright bars in a frame.
pub(super) struct Columns<'a> {
    pub(super) class: &'a str,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) bars: Vec<Column>,
    pub(super) summary: String,
}

impl Columns<'_> {
    /// The bars in their frame.
    pub(super) fn draw(&self) -> Markup {
        let plot = html! {
            (stretched(&self.summary, &html! {
                (grid(&self.x, &self.y))
                g class={ "columns " (self.class) } {
                    @for bar in &self.bars { (self.column(bar)) }
                }
            }))
        };
        frame(&self.x, &self.y, &plot)
    }

    fn column(&self, bar: &Column) -> Markup {
        let (left, right, height) = (self.x.at(bar.left), self.x.at(bar.right), self.y.at(bar.height));
        // A tenth of the width stays free, so that neighbours are told apart.
        let gap = (right - left) * 0.1;
        html! {
            @if height > 0.0 && gap > 0.0 {
                rect x=(tenth(left + gap / 2.0)) width=(tenth(right - left - gap))
                    y=(tenth(SIZE - height)) height=(tenth(height)) { title { (bar.hint) } }
            }
        }
    }
}

/// A histogram of batch sizes, in bins of equal width, as shares of the batches.
pub(super) struct Histogram {
    counts: Vec<u64>,
    bin: usize,
}

impl Histogram {
    /// `sizes[i]` batches had `i + 1` requests; `largest` is the largest size of all histograms shown together.
    pub(super) fn new(sizes: &[u64], largest: usize) -> Self {
        const BINS_MAX: usize = 32;
        let bin = largest.div_ceil(BINS_MAX).max(1);
        Self { counts: sizes.chunks(bin).map(|chunk| chunk.iter().sum()).collect(), bin }
    }

    /// The bars, in the colour of `class`, on an x axis that ends at `largest`.
    pub(super) fn draw(&self, class: &str, largest: usize, summary: String) -> Markup {
        let total: u64 = self.counts.iter().sum();
        let share = |count: u64| if total == 0 { 0.0 } else { count as f64 / total as f64 };
        let highest = self.counts.iter().map(|count| share(*count)).fold(0.0, f64::max);
        let bars = self.counts.iter().enumerate().map(|(i, count)| {
            let (first, last) = (i * self.bin + 1, (i + 1) * self.bin);
            let sizes = if first == last { format!("{first}") } else { format!("{first} to {last}") };
            let hint = format!(
                "batch {sizes}: {} of the batches ({})",
                format::percent(share(*count)),
                format::count(*count)
            );
            Column { left: first as f64 - 0.5, right: last as f64 + 0.5, height: share(*count), hint }
        });
        let columns = Columns {
            class,
            x: Axis::from_zero([largest as f64], "requests per batch")
                .whole()
                .ending_at(largest as f64 + 0.5),
            y: Axis::from_zero([highest.max(0.01)], "share of batches").labelled(format::percent_whole),
            bars: bars.collect(),
            summary,
        };
        columns.draw()
    }
}

fn tenth(x: f64) -> String {
    format!("{x:.1}")
}
