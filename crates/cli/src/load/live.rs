//! The line that shows how a run goes while it goes.

use downbeat_load::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Drawing takes time on a machine that is being measured.
const DRAWS_PER_S: u8 = 5;

/// A line on standard error; nothing where that is not a terminal.
pub(super) struct Live {
    bar: ProgressBar,
}

impl Live {
    pub(super) fn start() -> Live {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(DRAWS_PER_S));
        if let Ok(style) = ProgressStyle::with_template("{bar:20} {msg}") {
            bar.set_style(style);
        }
        Live { bar }
    }

    pub(super) fn show(&mut self, progress: &Progress) {
        self.draw("", progress);
    }

    pub(super) fn probe(&mut self, rate_rps: f64, progress: &Progress) {
        self.draw(&format!("trying {rate_rps:.0} rps: "), progress);
    }

    pub(super) fn end(&mut self) {
        self.bar.finish_and_clear();
    }

    fn draw(&mut self, what: &str, progress: &Progress) {
        self.bar.set_length(progress.length.as_millis() as u64);
        self.bar.set_position(progress.elapsed.as_millis() as u64);
        let answered = progress.in_slo + progress.bad;
        let share = 100.0 * progress.in_slo as f64 / answered.max(1) as f64;
        let how = if progress.is_warmup {
            format!("warming up, {} waiting", progress.waiting)
        } else {
            format!(
                "{:.0} of {:.0} s, {} due, {share:.2} % of {answered} in SLO, p99 {:.1} ms, {} waiting",
                progress.elapsed.as_secs_f64(),
                progress.length.as_secs_f64(),
                progress.offered,
                progress.p99_ms,
                progress.waiting
            )
        };
        self.bar.set_message(format!("{what}{how}"));
    }
}
