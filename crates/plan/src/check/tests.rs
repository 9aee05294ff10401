//! Good plans pass, and each way to spoil one is noticed.

use downbeat_milp::Backend;

use super::*;
use crate::problem::Unsimulated;
use crate::solvers;
use crate::testing::run_by;

const PROFILES: &str = "\
model,slice,batch,latency_ms,peak_mib
a,1g,1,10,200\na,1g,8,40,900\na,2g,1,6,200\na,2g,8,22,900\na,3g,1,4,200\na,3g,8,16,900\na,4g,8,12,900\na,7g,1,2,200\na,7g,8,6,900
b,1g,1,5,17000\nb,3g,1,3,17000\nb,3g,4,9,20000\nb,7g,4,5,20000
";

fn problem(rule: &str) -> Problem {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("h200.csv"), PROFILES).unwrap();
    let text = format!(
        "gpu = \"H200\"\nprofiles = \"h200.csv\"\nrule = \"{rule}\"\n\
         [[service]]\nname = \"x\"\nmodel = \"a\"\nrate_rps = 3000\nslo_ms = 42\n\
         [[service]]\nname = \"y\"\nmodel = \"b\"\nrate_rps = 700\nslo_ms = 20\nmin_replicas = 2\n"
    );
    Problem::parse(&text, &folder.path().join("p.toml"), &Unsimulated).unwrap()
}

fn planned(problem: &Problem) -> Plan {
    let backend = Backend::microlp();
    crate::plan(problem, solvers::by_name("auto").unwrap(), &run_by(&backend), None).unwrap()
}

#[test]
fn plans_of_every_solver_under_every_rule_pass() {
    let backend = Backend::best(None).unwrap();
    for rule in ["paper", "half", "staggered"] {
        let problem = problem(rule);
        for solver in solvers::ALL {
            match crate::plan(&problem, solver, &run_by(&backend), None) {
                Ok(plan) => assert_eq!(check(&problem, &plan), Ok(()), "{} {rule}", solver.name()),
                Err(crate::Unsolved::NotApplicable { .. }) => {}
                Err(error) => panic!("{} {rule}: {error}", solver.name()),
            }
        }
    }
}

/// A problem of this text, with profiles of an A30 and of an H200 beside it.
fn mixed(text: &str) -> Problem {
    mixed_by(text, &Unsimulated)
}

fn mixed_by(text: &str, simulator: &dyn crate::Simulator) -> Problem {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("h200.csv"), PROFILES).unwrap();
    let a30 = "model,slice,batch,latency_ms\na,1g,1,12\na,1g,8,48\na,2g,8,30\na,4g,8,14\nb,4g,4,12\n";
    std::fs::write(folder.path().join("a30.csv"), a30).unwrap();
    Problem::parse(text, &folder.path().join("p.toml"), simulator).unwrap()
}

/// Every solver that applies has a plan, and the checker has nothing against it.
fn assert_all_solvers_pass(problem: &Problem) {
    let backend = Backend::best(None).unwrap();
    for solver in solvers::ALL {
        match crate::plan(problem, solver, &run_by(&backend), None) {
            Ok(plan) => assert_eq!(check(problem, &plan), Ok(()), "{}", solver.name()),
            Err(crate::Unsolved::NotApplicable { .. }) => {}
            Err(error) => panic!("{}: {error}", solver.name()),
        }
    }
}

#[test]
fn gpu_types_with_tables_of_different_lengths_are_planned_together() {
    for order in [["a30", "h200"], ["h200", "a30"]] {
        let pools =
            order.map(|gpu| format!("[[pool]]\ngpu = \"{gpu}\"\nprofiles = \"{gpu}.csv\"\ncount = 3\n"));
        let text = format!(
            "rule = \"paper\"\n{}\
             [[service]]\nname = \"x\"\nmodel = \"a\"\nrate_rps = 3000\nslo_ms = 42\n\
             [[service]]\nname = \"y\"\nmodel = \"b\"\nrate_rps = 700\nslo_ms = 20\n",
            pools.concat()
        );
        assert_all_solvers_pass(&mixed(&text));
    }
}

#[test]
fn replicas_that_serve_nothing_alone_are_planned_in_numbers_that_do() {
    // On 3g a batch takes 4 ms of 5: in time with four instances that start in turn, not with one.
    for (slo_ms, replicas) in [(5.0, 3), (5.0, 6), (4.2, 2), (3.0, 3), (10.5, 5)] {
        let text = format!(
            "gpu = \"H200\"\nprofiles = \"h200.csv\"\nrule = \"staggered\"\n\
             [[service]]\nname = \"x\"\nmodel = \"a\"\nrate_rps = 300\nslo_ms = {slo_ms}\nmin_replicas = {replicas}\n"
        );
        assert_all_solvers_pass(&mixed(&text));
    }
}

#[test]
fn pools_of_one_type_may_have_different_slices() {
    let text = "rule = \"paper\"\nprofiles = \"h200.csv\"\n\
        [[pool]]\ngpu = \"H200\"\ncount = 1\nexclude_slices = [\"1g\"]\n\
        [[pool]]\ngpu = \"H200\"\ncost = 3\ncount = 9\n\
        [[service]]\nname = \"x\"\nmodel = \"a\"\nrate_rps = 3500\nslo_ms = 42\n";
    let problem = mixed(text);
    assert_all_solvers_pass(&problem);
    let good = planned(&problem);
    let with_1g = |plan: &Plan| {
        plan.layout.iter().filter(|gpu| gpu.instances.iter().any(|i| i.profile == "1g.18gb")).count()
    };
    assert!(with_1g(&good) > 1, "{:?}", good.layout);
    let mut few = problem.clone();
    few.pools[0].count = Some(20);
    few.pools[1].count = Some(1);
    let said = check(&few, &good).unwrap_err().to_string();
    assert!(said.contains(&format!("{} GPUs of H200-141GB are used, 1 are there", with_1g(&good))), "{said}");
    let dear = Plan { cost: good.cost * 4.0, ..good };
    assert!(check(&problem, &dear).unwrap_err().to_string().contains("is claimed"));
}

/// Says that n instances serve n times this much, in batches of this size.
struct Says(f64, u32);

impl crate::Simulator for Says {
    fn goodput(&self, query: &crate::GoodputQuery<'_>) -> Result<Vec<crate::Step>, String> {
        let factor = if query.class.starts_with("a30") { 1.0 } else { 5.0 };
        Ok(vec![crate::Step { capacity_rps: self.0 * factor, batch: self.1 }])
    }
}

#[test]
fn memory_and_latency_and_the_own_gpus_goodput_are_checked_under_measured() {
    let text = "rule = \"measured\"\n\
        [[pool]]\ngpu = \"A30\"\nprofiles = \"a30.csv\"\ncost = 0.001\n\
        [[pool]]\ngpu = \"H200\"\nprofiles = \"h200.csv\"\n\
        [[service]]\nname = \"x\"\nmodel = \"a\"\nrate_rps = 300\nslo_ms = 42\n";
    let problem = mixed_by(text, &Says(100.0, 1));
    let good = planned(&problem);
    assert_eq!(good.layout[0].gpu_type, "A30-24GB");
    // An A30 is said to serve what an H200 serves; the slices of both GPUs are given one name.
    let mut alike = problem.clone();
    for (index, name) in [(0, "1g"), (1, "1g")] {
        let gpu = std::sync::Arc::make_mut(&mut alike.pools[index].gpu);
        let at = gpu.profile("1g").unwrap();
        gpu.profiles[at].name = name.to_owned();
    }
    let mut same = planned(&alike);
    let first = same.layout.iter_mut().flat_map(|gpu| &mut gpu.instances).find(|i| i.profile == "1g");
    first.unwrap().throughput_rps = 400.0;
    let said = check(&alike, &same).unwrap_err().to_string();
    assert!(said.contains("400 requests per second are claimed, 100 were simulated"), "{said}");
    for (batch, expected) in [(8, "a batch of 8 takes 48 ms of 42"), (16, "a batch of 16 was not measured")] {
        let mut bad = good.clone();
        let slot =
            Instance { profile: "1g.6gb".to_owned(), start: 0, batch, ..bad.layout[0].instances[0].clone() };
        bad.layout[0].instances = vec![slot];
        let said = check(&problem, &bad).unwrap_err().to_string();
        assert!(said.contains(expected), "{said}");
    }
    let text = "rule = \"measured\"\ngpu = \"H200\"\nprofiles = \"h200.csv\"\n\
        [[service]]\nname = \"y\"\nmodel = \"b\"\nrate_rps = 100\nslo_ms = 20\n";
    let problem = mixed_by(text, &Says(100.0, 1));
    let mut bad = planned(&problem);
    let slot =
        Instance { profile: "1g.18gb".to_owned(), start: 0, batch: 1, ..bad.layout[0].instances[0].clone() };
    bad.layout[0].instances = vec![slot];
    let said = check(&problem, &bad).unwrap_err().to_string();
    assert!(said.contains("a batch of 1 needs 17000 MiB of 16384"), "{said}");
}

#[test]
fn every_spoiled_plan_is_refused() {
    let problem = problem("paper");
    let good = planned(&problem);
    assert_eq!(check(&problem, &good), Ok(()));
    type Spoil = fn(&mut Plan);
    let spoils: [(&str, Spoil); 12] = [
        ("may not begin at", |plan| plan.layout[0].instances[0].start = 7),
        ("is in", |plan| {
            let copy = plan.layout[0].instances[0].clone();
            plan.layout[0].instances.push(copy);
        }),
        ("may not be used", |plan| plan.layout[0].instances[0].profile = "9g.1gb".to_owned()),
        ("is there twice", |plan| {
            let copy = plan.layout[0].clone();
            plan.layout.push(copy);
        }),
        ("does not have", |plan| plan.layout[0].gpu_type = "A100-40GB".to_owned()),
        ("requests per second", |plan| plan.layout[0].instances.clear()),
        ("was not measured", |plan| plan.layout[0].instances[0].batch = 3),
        ("is claimed", |plan| plan.cost += 1.0),
        ("are claimed", |plan| plan.gpus += 1),
        ("are claimed, it serves", |plan| plan.layout[0].instances[0].throughput_rps *= 2.0),
        ("not in the problem", |plan| plan.layout[0].instances[0].service = "z".to_owned()),
        ("it runs", |plan| plan.layout[0].instances[0].model = "c".to_owned()),
    ];
    for (expected, spoil) in spoils {
        let mut bad = good.clone();
        spoil(&mut bad);
        let said = check(&problem, &bad).unwrap_err().to_string();
        assert!(said.contains(expected), "expected {expected:?} in {said:?}");
    }
}

#[test]
fn memory_and_latency_are_looked_up_anew() {
    let (paper, half) = (problem("paper"), problem("half"));
    let mut plan = planned(&paper);
    let slot = Instance {
        profile: "1g.18gb".to_owned(),
        start: 0,
        service: "y".to_owned(),
        model: "b".to_owned(),
        batch: 1,
        throughput_rps: 1.0,
    };
    plan.layout[0].instances = vec![slot];
    let said = check(&paper, &plan).unwrap_err().to_string();
    assert!(said.contains("a batch of 1 needs 17000 MiB of 16384"), "{said}");
    plan.layout[0].instances[0] = Instance {
        profile: "1g.18gb".to_owned(),
        start: 0,
        service: "x".to_owned(),
        model: "a".to_owned(),
        batch: 8,
        throughput_rps: 1.0,
    };
    let said = check(&half, &plan).unwrap_err().to_string();
    assert!(said.contains("a batch of 8 takes 80 ms of 42"), "{said}");
}
