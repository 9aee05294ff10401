//! The planner's tables: `make bench-plan`. Arguments name the tables to print; without any, all.
//!
//! Demands are drawn anew from seeds, in units of what a whole GPU serves, as in the evaluation of MIG-serving (arXiv
//! 2109.11067).
#![allow(clippy::disallowed_types, reason = "a benchmark measures time")]
#![allow(clippy::print_stdout, reason = "a benchmark prints its tables")]
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot run ends")]

mod demand;
mod measure;
mod tables;

fn main() {
    // Cargo adds a flag of its own.
    let asked: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let tables: [(&str, fn()); 7] = [
        ("published", tables::published),
        ("searches", tables::searches),
        ("unseen", tables::unseen),
        ("a100", tables::a100),
        ("scale", tables::scale),
        ("rules", tables::rules),
        ("anytime", tables::anytime),
    ];
    for (name, table) in tables {
        if asked.is_empty() || asked.iter().any(|asked| asked == name) {
            table();
            println!();
        }
    }
}
