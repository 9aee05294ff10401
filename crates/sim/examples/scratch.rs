use downbeat_sim::*;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let sc = Scenario::load(std::path::Path::new(&args[1])).unwrap_or_else(|e| panic!("{e}"));
    if args[3] == "speed" {
        let p: PolicySpec = args[2].parse().unwrap();
        let t = std::time::Instant::now();
        let mut s = sc.clone();
        s.duration = Span::from_secs_f64(400.0);
        let r = p.run(&s, 1, Until::End).unwrap();
        let w = t.elapsed().as_secs_f64();
        println!(
            "{} req {:.2}s = {:.2}M/s bad {} used {}",
            r.requests_simulated,
            w,
            r.requests_simulated as f64 / w / 1e6,
            r.bad_rate_worst,
            r.gpus.used
        );
        return;
    }
    let ps: Vec<PolicySpec> = args[2].split(',').map(|p| p.parse().unwrap()).collect();
    let r =
        GoodputSearch { scenario: &sc, policies: &ps, seeds: args[3].parse().unwrap() }.run(&|| {}).unwrap();
    println!("{} bound {:.0}", r.scenario, r.fluid_bound_rps);
    for (n, p) in &r.policies {
        println!("  {n:40} {:8.0} ±{:6.0} {:.3}", p.goodput_rps, p.spread_rps, p.ratio_to_bound);
    }
}
