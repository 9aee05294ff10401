use std::path::Path;

use super::*;

const PROFILES: &str = "\
model,slice,batch,latency_ms,weights_mib,peak_mib
a,1g,1,10,100,200
a,1g,8,40,100,900
a,3g,1,4,100,200
a,3g,8,16,100,900
a,7g,1,2,100,200
a,7g,8,6,100,900
b,7g,1,5,100,30000
";

/// A good problem; each row below spoils one thing in it.
const GOOD: &str = "\
gpu = \"H200-141GB\"
profiles = \"h200.csv\"
rule = \"paper\"
[[service]]
model = \"a\"
rate_rps = 100
slo_ms = 20
[[service]]
name = \"second\"
model = \"b\"
rate_rps = 10
slo_ms = 20
";

fn parse(text: &str) -> Result<Problem, String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("h200.csv"), PROFILES).unwrap();
    std::fs::write(folder.path().join("other.csv"), PROFILES).unwrap();
    let path = folder.path().join("bad.toml");
    let folder_text = format!("{}/", folder.path().display());
    Problem::parse(text, &path, &Unsimulated).map_err(|error| error.to_string().replace(&folder_text, ""))
}

fn assert_complaints(rows: &[(&str, &str, &str)]) {
    let mut failures = String::new();
    for (good, bad, expected) in rows {
        assert!(GOOD.contains(good), "{good} is not in the good problem");
        let said = parse(&GOOD.replacen(good, bad, 1)).map_or_else(|said| said, |_| "no error".to_owned());
        if said != *expected {
            failures += &format!("{good:?} -> {bad:?}\n  says     {said}\n  expected {expected}\n");
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn a_good_problem_is_read() {
    let problem = parse(GOOD).unwrap();
    assert_eq!(problem.services[0].name, "a");
    assert_eq!(problem.slices.len(), 3, "2g and 4g were not measured");
    let rate = |service: usize, slice: usize| {
        problem.curves[service][slice].as_ref().map(|curve| curve.capacity(1).round())
    };
    assert_eq!(rate(0, 0), Some(100.0), "on 1g only a batch of one is in time");
    assert_eq!(rate(0, 1), Some(500.0));
    assert_eq!(rate(1, 0), None, "b was not measured there");
    assert_eq!(rate(1, 2), Some(200.0));
    assert_eq!(problem.configurations.len(), 4, "7 | 33 | 31111 | 1111111");
    assert!(problem.notes[0].contains("inferred"), "{:?}", problem.notes);
}

#[test]
fn memory_keeps_batches_off_small_slices() {
    let with = |memory: &str| {
        parse(&GOOD.replace("rate_rps = 100", &format!("rate_rps = 100\nmemory_mib = {memory}")))
            .unwrap()
            .curves[0]
            .clone()
    };
    assert!(with("16000")[0].is_some());
    assert!(with("17000")[0].is_none(), "1g.18gb has 16 GiB");
    assert!(with("17000")[1].is_some());
}

#[test]
fn every_mistake_names_the_file_and_the_line() {
    assert_complaints(&[
        ("gpu = \"H200-141GB\"", "gpus = \"H200\"", "bad.toml:1: unknown key `gpus`; did you mean `gpu`?"),
        ("H200-141GB", "H300", "bad.toml:1: GPU \"H300\" is not known; did you mean B300 or GB300?"),
        (
            "H200-141GB",
            "A100-40GB",
            "bad.toml:1: h200.csv was measured on h200, not on A100-40GB; to plan with it all the same, say device = \"h200\"",
        ),
        ("h200.csv", "none.csv", "bad.toml:2: profiles: there is no file none.csv"),
        (
            "rule = \"paper\"",
            "rule = \"paper\"\ngpu_models = \"none.csv\"",
            "bad.toml:4: gpu_models: there is no file none.csv",
        ),
        (
            "gpu = \"H200-141GB\"\nprofiles = \"h200.csv\"\n",
            "count = 2\nprofiles = \"h200.csv\"\npool = [{ gpu = \"H200-141GB\" }]\n",
            "bad.toml:1: count beside [[pool]] would be ignored; give each [[pool]] its own count",
        ),
        (
            "model = \"b\"\nrate_rps = 10",
            "model = \"b\"\nrate_rps = 1e9",
            "bad.toml: the demands need at least 5000001 GPUs, more than the 1000000 that can be planned; is a rate_rps too large?",
        ),
        (
            "h200.csv",
            "other.csv",
            "bad.toml:1: other.csv was measured on other, not on H200-141GB; to plan with it all the same, say device = \"other\"",
        ),
        ("\"paper\"", "\"papers\"", "bad.toml:3: rule \"papers\" is not known; did you mean `paper`?"),
        (
            "model = \"a\"",
            "model = \"\"",
            "bad.toml:5: service \"\": h200.csv has no model \"\"; it has 2 models",
        ),
        (
            "rate_rps = 100",
            "rate_rps = 0",
            "bad.toml:6: service \"a\": rate_rps must be a number above 0 (is 0)",
        ),
        (
            "rate_rps = 100",
            "rate_rps = -1",
            "bad.toml:6: service \"a\": rate_rps must be a number above 0 (is -1)",
        ),
        (
            "rate_rps = 100",
            "rate_rps = nan",
            "bad.toml:6: service \"a\": rate_rps must be a number above 0 (is NaN)",
        ),
        (
            "rate_rps = 100",
            "rate_rps = inf",
            "bad.toml:6: service \"a\": rate_rps must be at most 1000000000 (is inf)",
        ),
        ("slo_ms = 20", "slo_ms = 0", "bad.toml:7: service \"a\": slo_ms must be a number above 0 (is 0)"),
        ("slo_ms = 20\n[[", "[[", "bad.toml:4: slo_ms is missing"),
        (
            "name = \"second\"",
            "min_replicas = 0",
            "bad.toml:9: service \"b\": min_replicas must be a whole number from 1 to 10000 (is 0)",
        ),
        ("name = \"second\"", "name = \" \"", "bad.toml:9: name must be text that can be printed"),
        (
            "rule = \"paper\"",
            "exclude_slices = [\"9g\"]",
            "bad.toml:3: H200-141GB has no slice \"9g\"; known here: 1g.18gb, 1g.18gb+me, 1g.35gb, 2g.35gb, 3g.71gb, 4g.71gb, 7g.141gb",
        ),
        (
            "rule = \"paper\"",
            "exclude_slices = [\"1g\", \"3g\", \"7g\"]",
            "bad.toml:3: pool H200-141GB: include_slices and exclude_slices leave no slice that was measured in h200.csv",
        ),
        (
            "rule = \"paper\"",
            "rule = \"measured\"",
            "bad.toml:4: service \"a\": rule measured needs the simulator, which is not at hand here",
        ),
    ]);
    assert_eq!(
        parse("gpu = \"H200\"\nprofiles = \"h200.csv\"").unwrap_err(),
        "bad.toml: there is no service; add [[service]] with model, rate_rps and slo_ms"
    );
    let missing = Problem::load(Path::new("/nowhere/x.toml"), &Unsimulated).unwrap_err().to_string();
    assert!(missing.starts_with("/nowhere/x.toml: cannot be read: "), "{missing}");
}

#[test]
fn services_of_one_model_are_numbered() {
    let text = format!("{GOOD}{0}{0}", "[[service]]\nmodel = \"a\"\nrate_rps = 1\nslo_ms = 20\n");
    let names: Vec<String> = parse(&text).unwrap().services.into_iter().map(|service| service.name).collect();
    assert_eq!(names, ["a", "second", "a-2", "a-3"]);
}

#[test]
fn costs_have_the_step_they_have() {
    let step = |a: &str, b: &str| of_costs(&[a, b]).cost_step();
    assert_eq!(step("2.5", "2.5"), Some(2.5));
    assert_eq!(step("3", "2"), Some(1.0));
    assert_eq!(step("0.75", "0.5"), Some(0.25));
    assert_eq!(step("1", "3.14159265"), Some(5e-8));
    assert_eq!(step("1.2345", "2.469"), Some(1.2345));
    assert_eq!(step("1", "0.3333333333333333"), None);
    assert_eq!(step("1", "1.0000000001"), None, "nearly a multiple is none");
    assert_eq!(step("0.1", "1234.567"), Some(0.001));
}

fn of_costs(costs: &[&str]) -> Problem {
    let pool = |cost: &&str| format!("[[pool]]\ngpu = \"H200\"\ncost = {cost}\n");
    let pools: String = costs.iter().map(pool).collect();
    parse(&(GOOD.replace("gpu = \"H200-141GB\"\n", "") + &pools)).unwrap()
}

#[test]
fn a_bound_is_raised_to_what_some_gpus_cost() {
    assert_eq!(of_costs(&["2.5"]).next_cost(11.0), 12.5);
    assert_eq!(of_costs(&["3", "5"]).next_cost(7.0), 8.0);
    assert_eq!(of_costs(&["3", "5"]).next_cost(6.5), 8.0, "7 is a whole number, but no GPUs cost it");
    let mut few = of_costs(&["3", "5"]);
    few.pools[0].count = Some(1);
    assert_eq!(few.next_cost(8.5), 10.0, "there are no three of the cheaper");
    let third = of_costs(&["1", "0.3333333333333333"]);
    assert!((third.next_cost(4.2) - (4.0 + 1.0 / 3.0)).abs() < 1e-12);
}

proptest::proptest! {
    #[test]
    fn numbers_of_gpus_between_two_costs_are_all_found(
        costs in proptest::collection::vec(0.2f64..3.0, 1..4),
        limits in proptest::collection::vec(proptest::option::of(0u32..4), 3),
        least in 0.0f64..6.0,
        width in 0.0f64..1.0,
    ) {
        let mut problem = of_costs(&costs.iter().map(|_| "1").collect::<Vec<_>>());
        for ((pool, cost), limit) in problem.pools.iter_mut().zip(&costs).zip(limits) {
            pool.cost = *cost;
            pool.count = limit;
        }
        let groups = problem.cost_groups();
        let mut expected = Vec::new();
        let mut next = f64::INFINITY;
        for number in 0..40u32.pow(groups.len() as u32) {
            let counts: Vec<u32> = (0..groups.len() as u32).map(|place| number / 40u32.pow(place) % 40).collect();
            let there = |(group, count): (&costs::CostGroup, &u32)| {
                problem.pools[group.pools[0]].count.is_none_or(|there| *count <= there)
            };
            let cost: f64 = groups.iter().zip(&counts).map(|(group, &count)| group.cost * f64::from(count)).sum();
            if groups.iter().zip(&counts).all(there) {
                if (least..least + width).contains(&cost) {
                    expected.push(counts);
                }
                if cost >= least {
                    next = next.min(cost);
                }
            }
        }
        let mut found = problem.counts_between(least, least + width, 10_000).unwrap();
        found.sort_unstable();
        expected.sort_unstable();
        proptest::prop_assert_eq!(found, expected);
        if next.is_finite() {
            proptest::prop_assert!((problem.next_cost(least) - next).abs() < 1e-6);
        }
    }
}
