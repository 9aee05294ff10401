//! `downbeat plan --cms`

use std::fmt::Write;
use std::path::Path;

use downbeat_plan::cms::{Cms, Schedule, schedule};

use super::{Arguments, Session};
use crate::output::{self, Format};

/// Machines shown in the text output.
const MACHINES_SHOWN: usize = 40;

pub(super) fn run(path: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let session = Session::begin(&arguments.search)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let problem = Cms::load(path)?.problem(&name);
    let solver = arguments.solver.solver();
    let (found, seconds) = session.run(&problem, solver.name(), |run| schedule(&problem, solver, run));
    let mut found = found?;
    found.seconds = seconds;
    output::print(&match arguments.format {
        Format::Json => serde_json::to_string_pretty(&found)?,
        Format::Text => text(&name, &found),
    })
}

fn text(name: &str, found: &Schedule) -> String {
    let proof = if found.proved_optimal {
        format!("proved optimal by {}", found.bound_name)
    } else {
        format!("at least {} by {}, a gap of {:.1} %", found.lower_bound, found.bound_name, found.gap * 100.0)
    };
    let mut text = format!(
        "{name}: {} machines, {proof} ({}, {:.2} s)\n\n",
        found.machines, found.algorithm, found.seconds
    );
    for machine in found.schedule.iter().take(MACHINES_SHOWN) {
        let blocks: Vec<String> =
            machine.blocks.iter().map(|block| format!("{} {}", block.block, block.job)).collect();
        let _ = writeln!(text, "{:>5} x [{}]", machine.count, blocks.join(" | "));
    }
    if found.schedule.len() > MACHINES_SHOWN {
        let _ = writeln!(
            text,
            "and {} other kinds; --format json has all",
            found.schedule.len() - MACHINES_SHOWN
        );
    }
    text
}
