#![allow(clippy::all, clippy::disallowed_types, clippy::print_stdout)]
use downbeat_plan::*;
use std::time::Instant;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let p = Problem::load(std::path::Path::new(&a[1]), &Unsimulated).unwrap();
    let backend = if a.get(3).map(|s| s == "microlp").unwrap_or(false) {
        downbeat_milp::Backend::microlp()
    } else {
        downbeat_milp::Backend::best(None).unwrap()
    };
    let t = Instant::now();
    let lim: f64 = a.get(4).map_or(60.0, |s| s.parse().unwrap());
    let stop = || t.elapsed().as_secs_f64() > lim;
    let prog = |x: &Progress| {
        println!("{:.2}s {} cost {} bound {}", t.elapsed().as_secs_f64(), x.phase, x.cost, x.bound)
    };
    let run = Run { stop: &stop, on_progress: &prog, backend: &backend, seed: 1 };
    match solvers::by_name(&a[2]).unwrap().solve(&p, &run) {
        Ok(s) => println!(
            "{} {} gpus {} cost {} bound {} {} {:.3}s notes {:?}",
            a[1],
            a[2],
            s.allocation.gpu_count(),
            s.allocation.cost(&p),
            s.bound.cost,
            s.bound.name,
            t.elapsed().as_secs_f64(),
            s.notes
        ),
        Err(e) => println!("ERR {e}"),
    }
}
