//! Who ran what when: one row per GPU, one block per batch.

use maud::{Markup, html};

use super::cast::{Cast, name};
use super::format;
use super::lines::{percent, x_axis};
use super::page::{Swatch, figure, legend, nothing};
use super::scale::Axis;
use crate::{Execution, RunReport};

/// How many typical batches one row shows: enough to see a pattern, few enough that blocks have room for a number.
const BATCHES_PER_ROW: f64 = 26.0;
/// No more rows than this, lest the page become a wall.
const ROWS_MAX: usize = 32;
/// No more blocks than this: each costs the page about 200 bytes.
const BLOCKS_MAX: usize = 1500;
/// Below this share of the width (in percent) the batch size does not fit into its block on a narrow screen.
const LABEL_WIDTH_MIN: f64 = 2.6;
/// In CSS pixels.
const ROW_HEIGHT: usize = 18;

/// The stretch of the timeline that is drawn.
struct Stretch {
    from_ms: f64,
    until_ms: f64,
    rows: usize,
    rows_in_all: usize,
}

/// The timeline of a run as a figure.
pub(super) fn draw(run: &RunReport, cast: &Cast) -> Markup {
    let mut blocks: Vec<Execution> = run.detail.timeline.iter().copied().filter(is_drawable).collect();
    blocks.sort_by(|a, b| a.start_ms.total_cmp(&b.start_ms).then(a.gpu.cmp(&b.gpu)));
    let Some(stretch) = Stretch::choose(&blocks, run.gpus.count, run.detail.from_ms) else {
        return figure("wide", "Timeline of the GPUs", "", &nothing("No batch was recorded."));
    };
    blocks.retain(|b| b.start_ms < stretch.until_ms && (b.gpu as usize) < stretch.rows);
    let title = format!(
        "Who ran what: {} over {}, {}",
        format::counted(stretch.rows, "GPU"),
        format::ms(stretch.until_ms - stretch.from_ms),
        if blocks.len() == 1 { "1 batch".to_owned() } else { format!("{} batches", blocks.len()) },
    );
    let body = html! {
        (legend(Swatch::Area, &cast.legend(run)))
        (chart(run, cast, &stretch, &blocks))
    };
    figure("wide", &title, &stretch.note(cast), &body)
}

fn chart(run: &RunReport, cast: &Cast, stretch: &Stretch, blocks: &[Execution]) -> Markup {
    let height = stretch.rows * ROW_HEIGHT;
    let axis = Axis::from_zero([stretch.until_ms - stretch.from_ms], "ms from the start of the stretch")
        .ending_at(stretch.until_ms - stretch.from_ms);
    html! {
        div.scroll tabindex="0" role="region" aria-label="Timeline of the GPUs" {
            div.gantt {
                div.gpus style={ "height:" (height) "px" } aria-hidden="true" {
                    @for gpu in 0..stretch.rows { span { "GPU " (gpu) } }
                }
                svg height=(height) role="img" aria-label="One row per GPU, one block per batch" {
                    @for gpu in 0..stretch.rows {
                        rect.idle y=(gpu * ROW_HEIGHT + 1) width="100%" height=(ROW_HEIGHT - 2) {}
                    }
                    @for block in blocks { (draw_block(run, cast, &axis, stretch.from_ms, block)) }
                }
                (x_axis(&axis))
            }
        }
    }
}

fn draw_block(run: &RunReport, cast: &Cast, axis: &Axis, from_ms: f64, block: &Execution) -> Markup {
    // What began before the stretch is cut off at its edge.
    let left = axis.percent_at((block.start_ms - from_ms).max(0.0));
    let width = axis.percent_at(block.end_ms - from_ms) - left;
    let y = block.gpu as usize * ROW_HEIGHT;
    let model = block.model as usize;
    html! {
        g class=(cast.block_class(model)) {
            title {
                (name(run, model)) ", batch of " (block.batch) " on GPU " (block.gpu) ": "
                (format!("{:.2} to {:.2} ms", block.start_ms, block.end_ms))
                (format!(" ({:.2} ms)", block.end_ms - block.start_ms))
            }
            rect x=(percent(left)) y=(y + 1) width=(percent(width)) height=(ROW_HEIGHT - 2) {}
            @if width >= LABEL_WIDTH_MIN {
                text x=(percent(left + width / 2.0)) y=(y + ROW_HEIGHT - 5) { (block.batch) }
            }
        }
    }
}

impl Stretch {
    /// From the first block on, or from `measured_from_ms` where some began before, as long as blocks stay wide and few
    /// enough. `blocks` are in order of their start.
    fn choose(blocks: &[Execution], gpus: usize, measured_from_ms: f64) -> Option<Self> {
        let from_ms = blocks.first()?.start_ms.max(measured_from_ms);
        let rows_seen = blocks.iter().map(|b| b.gpu as usize + 1).max().unwrap_or(0);
        let rows_in_all = gpus.max(rows_seen);
        let rows = rows_in_all.min(ROWS_MAX);

        let mut lengths: Vec<f64> = blocks.iter().map(|b| b.end_ms - b.start_ms).collect();
        lengths.sort_by(f64::total_cmp);
        let typical_ms = lengths[lengths.len() / 2];
        let last_ms = blocks.iter().map(|b| b.end_ms).fold(from_ms, f64::max);
        let mut until_ms = last_ms.min(from_ms + typical_ms * BATCHES_PER_ROW);
        if let Some(first_too_many) = blocks.iter().filter(|b| (b.gpu as usize) < rows).nth(BLOCKS_MAX) {
            until_ms = until_ms.min(first_too_many.start_ms);
        }
        // Blocks that all start at once, or end as they start, still need an axis.
        if until_ms - from_ms < typical_ms.max(1e-3) {
            until_ms = last_ms.max(from_ms + 1e-3);
        }
        Some(Self { from_ms, until_ms, rows, rows_in_all })
    }

    fn note(&self, cast: &Cast) -> String {
        let mut note = format!(
            "From {} of virtual time. A number in a block is the batch size, an empty stretch is idle time; \
             point at a block for its model and its times. ",
            format::ms(self.from_ms),
        );
        if self.rows < self.rows_in_all {
            note += &format!("The first {} of {} GPUs. ", self.rows, self.rows_in_all);
        }
        note + &cast.note()
    }
}

fn is_drawable(block: &Execution) -> bool {
    block.start_ms.is_finite() && block.end_ms.is_finite() && block.end_ms >= block.start_ms
}
