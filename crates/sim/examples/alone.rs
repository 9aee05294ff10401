fn main() {
    for path in std::env::args().skip(1) {
        let s = downbeat_sim::Scenario::load(std::path::Path::new(&path)).unwrap();
        let r = downbeat_sim::Replay::new(&s, s.seed).unwrap().run_alone(&|| {});
        println!("{path} h {:.1} ofclair {:.3} bad {:.3}% missed {} unex {} changes {} after {}", r.gpu_hours, (552.0 - r.gpu_hours) / (552.0 - 331.1), 100.0 * r.bad_rate, r.missed, r.missed_unexcused, r.changes, r.changes_after_start);
        if std::env::var("LOG").is_ok() {
            for c in &r.log { println!("  {:.2}h {}->{} {} | {}", c.at_s / 3600.0, c.from, c.to, c.reason, c.explanation); }
        }
    }
}
