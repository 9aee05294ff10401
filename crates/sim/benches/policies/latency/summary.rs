//! All cells together: ratios beside their limits, losses, and what changed since the committed rule.

use super::cell::Cell;
use super::limits::{FEW_GPUS, Limit};
use super::outcome::mean;
use super::{LOADS, REQUESTS};
use crate::suite::OURS;

/// No p99 may grow by more than this factor over that of the committed rule.
const P99_GROWTH_MAX: f64 = 1.05;

/// Cells named in a list.
const NAMED_MAX: usize = 12;

/// Runs that are not as long as those of the committed file are not `comparable` with it.
pub(super) fn print(cells: &[Cell<'_>], comparable: bool) {
    print_ratios(cells);
    print_losses(cells, comparable);
    if comparable {
        print_growth(cells);
    } else {
        println!("Not compared with the committed rule, which ran {REQUESTS} requests.\n");
    }
}

fn print_ratios(cells: &[Cell<'_>]) {
    println!("\n## {OURS} over the best rival that loses no more\n");
    println!(
        "Arithmetic means over the scenarios, and the largest; each beside its limit. A scenario where all rivals lose more is not\n\
         counted.\n"
    );
    println!("| load % | GPUs | scenarios | mean p50 | largest p50 | over | mean p99 | largest p99 | over |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for few_gpus in [false, true] {
        for (index, load) in LOADS.into_iter().enumerate() {
            let group: Vec<&Cell<'_>> = cells
                .iter()
                .filter(|cell| cell.load == load && (cell.gpus() <= FEW_GPUS) == few_gpus)
                .filter(|cell| cell.best_rival().is_some())
                .collect();
            if group.is_empty() {
                continue;
            }
            println!(
                "| {load} | {} {FEW_GPUS} | {} | {} | {} |",
                if few_gpus { "at most" } else { "more than" },
                group.len(),
                ratio_columns(&group, Cell::p50_ratio, &Limit::p50(index, few_gpus)),
                ratio_columns(&group, Cell::p99_ratio, &Limit::p99(index)),
            );
        }
    }
    println!();
}

/// The mean, the largest with its scenario, and how many are over the limit of each.
fn ratio_columns<'a>(group: &[&Cell<'a>], ratio: fn(&Cell<'a>) -> Option<f64>, limit: &Limit) -> String {
    let ratios = || group.iter().filter_map(|cell| Some((ratio(cell)?, cell)));
    let largest = ratios().max_by(|a, b| a.0.total_cmp(&b.0));
    let largest = largest.map_or_else(String::new, |(ratio, cell)| {
        format!("{} ({})", limit.of_each(ratio), cell.scenario.name)
    });
    let over = ratios().filter(|(ratio, _)| limit.is_passed_by(*ratio)).count();
    format!("{} | {largest} | {over}", limit.of_mean(mean(ratios().map(|(ratio, _)| ratio))))
}

fn print_losses(cells: &[Cell<'_>], comparable: bool) {
    println!("## Lost requests\n");
    print_count("loses requests where eager and delayed lose none", cells, |cell| {
        cell.ours.lost > 0.0 && cell.eager_lost() == 0.0 && cell.delayed_lost() == 0.0
    });
    let least = |cell: &Cell<'_>| cell.eager_lost().min(cell.delayed_lost());
    print_count("loses more than the better of eager and delayed", cells, |cell| {
        cell.ours.lost > least(cell)
    });
    if comparable {
        print_count("loses more than the best of eager, delayed and the committed rule", cells, |cell| {
            cell.ours.lost > least(cell) || cell.before.loses_less_than(cell.ours.lost)
        });
    }
    println!();
}

fn print_growth(cells: &[Cell<'_>]) {
    println!("## Over the committed rule\n");
    let over = |ours: f64, before: f64| if before > 0.0 { ours / before } else { 1.0 };
    let p50 = |cell: &Cell<'_>| over(cell.ours.mean_p50_ms(), cell.before.p50_ms);
    let p99 = |cell: &Cell<'_>| over(cell.ours.mean_p99_ms(), cell.before.p99_ms);
    println!("| load % | mean p50 | largest p50 | mean p99 | largest p99 |");
    println!("|---|---|---|---|---|");
    for load in LOADS {
        let at_load = || cells.iter().filter(move |cell| cell.load == load);
        let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        println!(
            "| {load} | {:.3} | {:.3} | {:.3} | {:.3} |",
            mean(at_load().map(p50)),
            largest(&mut at_load().map(p50)),
            mean(at_load().map(p99)),
            largest(&mut at_load().map(p99)),
        );
    }
    println!();
    let grown = format!("has a p99 above {P99_GROWTH_MAX} times that of the committed rule");
    print_count(&grown, cells, |cell| p99(cell) > P99_GROWTH_MAX);
    println!();
}

/// Counts the cells of which something is so, and names the first of them.
fn print_count(claim: &str, cells: &[Cell<'_>], is_so: impl Fn(&Cell<'_>) -> bool) {
    let found: Vec<String> = cells
        .iter()
        .filter(|cell| is_so(cell))
        .map(|cell| format!("{} at {} %", cell.scenario.name, cell.load))
        .collect();
    let more = if found.len() > NAMED_MAX { ", ..." } else { "" };
    let named = found.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    let named = if found.is_empty() { String::new() } else { format!(": {named}{more}") };
    println!("- {OURS} {claim} in {} of {}{named}", found.len(), cells.len());
}
