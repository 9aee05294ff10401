//! `downbeat plan` as people and programs call it.

use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const PROFILES: &str = "model,slice,batch,latency_ms,peak_mib
a,1g,1,5,200\na,1g,8,20,900\na,2g,8,11,900\na,3g,1,2,200\na,3g,8,8,900\na,4g,8,6,900\na,7g,1,1,200\na,7g,8,4,900
b,3g,1,6,17000\nb,7g,1,3,17000\nb,7g,4,8,20000
";

const PROBLEM: &str = r#"
gpu = "H200-141GB"
profiles = "h200.csv"
rule = "paper"
[[service]]
name = "x"
model = "a"
rate_rps = 9000
slo_ms = 20
[[service]]
name = "y"
model = "b"
rate_rps = 700
slo_ms = 10
"#;

const CMS: &str = r#"{ "blocks": ["s", "l"], "configurations": [[4, 0], [1, 1]], "jobs": [{ "demand": 10, "values": [1, 3.5] }] }"#;

struct Shell(TempDir);

impl Shell {
    fn with(problem: &str) -> Shell {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in [("problem.toml", problem), ("h200.csv", PROFILES), ("cms.json", CMS)] {
            std::fs::write(folder.path().join(name), text).expect("a file");
        }
        Shell(folder)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_downbeat"));
        command
            .current_dir(self.0.path())
            .arg("plan")
            .args(arguments)
            .env("XDG_CACHE_HOME", self.0.path().join("cache"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("downbeat runs")
    }

    fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.succeed(arguments)).expect("JSON")
    }

    /// What is said of an error, which is always exit code 2.
    fn fail(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
        text(&output.stderr)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn json_has_the_keys_that_other_programs_read() {
    let plan = Shell::with(PROBLEM).json(&["problem.toml", "--format", "json"]);
    for key in [
        "gpus",
        "lower_bound",
        "bound_name",
        "proved_optimal",
        "gap",
        "seconds",
        "algorithm",
        "layout",
        "services",
    ] {
        assert!(!plan[key].is_null(), "{key} is missing");
    }
    assert_eq!(plan["proved_optimal"], true);
    assert_eq!(plan["gap"], 0.0);
    assert_eq!(plan["layout"].as_array().map(Vec::len), plan["gpus"].as_u64().map(|gpus| gpus as usize));
    for key in ["gpu", "node", "type", "instances"] {
        assert!(!plan["layout"][0][key].is_null(), "layout[].{key}");
    }
    for key in ["profile", "start", "service", "model", "batch", "throughput_rps"] {
        assert!(!plan["layout"][0]["instances"][0][key].is_null(), "layout[].instances[].{key}");
    }
    for key in ["name", "model", "demand_rps", "provided_rps"] {
        assert!(!plan["services"][0][key].is_null(), "services[].{key}");
    }
}

#[test]
fn people_see_the_proof_the_services_and_the_gpus() {
    let said = Shell::with(PROBLEM).succeed(&["problem.toml"]);
    assert!(said.contains("proved optimal by"), "{said}");
    assert!(said.contains("inferred from its family"), "doubts about the geometry are repeated: {said}");
    assert!(said.contains("[7g y") && said.contains("Holes: "), "{said}");
}

#[test]
fn a_plan_made_from_itself_touches_nothing() {
    let shell = Shell::with(PROBLEM);
    let plan = shell.succeed(&["problem.toml", "--format", "json"]);
    std::fs::write(shell.0.path().join("plan.json"), plan).expect("a file");
    let before: Value = shell.json(&["problem.toml", "--format", "json"]);
    let after: Value = shell.json(&["problem.toml", "--from", "plan.json", "--format", "json"]);
    assert_eq!(before["layout"], after["layout"]);
    assert!(shell.fail(&["problem.toml", "--from", "h200.csv"]).contains("this is not a plan"));
}

#[test]
fn other_tools_get_their_own_words() {
    let shell = Shell::with(PROBLEM);
    assert!(
        shell.succeed(&["problem.toml", "--emit", "mig-parted"]).starts_with("version: v1\nmig-configs:\n")
    );
    assert!(shell.succeed(&["problem.toml", "--emit", "k8s"]).contains("nvidia.com/mig-7g.141gb: \"1\""));
    assert!(shell.succeed(&["problem.toml", "--emit", "dra"]).contains("kind: ResourceClaimTemplate"));
    shell.succeed(&["problem.toml", "--html", "plan.html"]);
    assert!(std::fs::read_to_string(shell.0.path().join("plan.html")).expect("a page").contains("</html>"));
}

#[test]
fn comparisons_have_every_solver_and_none_beats_auto() {
    let compared = Shell::with(PROBLEM).json(&["compare", "problem.toml", "--format", "json"]);
    let solvers = compared["solvers"].as_array().expect("solvers");
    let gpus = |name: &str| {
        let found = solvers
            .iter()
            .find(|solver| solver["algorithm"] == name)
            .unwrap_or_else(|| panic!("{name} is missing"));
        found["gpus"].as_u64()
    };
    for name in [
        "greedy",
        "mcts",
        "ga",
        "exact",
        "whole",
        "seven",
        "mix421",
        "cms-log",
        "cms-lp-round",
        "cms-ptas",
        "cms-fixed",
    ] {
        if let Some(other) = gpus(name) {
            assert!(gpus("auto").expect("auto") <= other, "{name} has {other}");
        }
    }
}

#[test]
fn what_is_infeasible_is_explained() {
    let slow = Shell::with(&PROBLEM.replace("slo_ms = 10", "slo_ms = 2"));
    let said = slow.fail(&["problem.toml"]);
    assert!(said.contains("service \"y\"") && said.contains("the nearest feasible SLO is 3 ms"), "{said}");
    let small = Shell::with(&PROBLEM.replace("rule", "count = 2\nrule"));
    let said = small.fail(&["problem.toml"]);
    assert!(said.contains("H200-141GB has 2 GPUs, and") && said.contains("would do"), "{said}");
}

#[test]
fn bad_input_names_the_line() {
    let bad = |from: &str, to: &str| Shell::with(&PROBLEM.replace(from, to)).fail(&["problem.toml"]);
    assert!(
        bad("rate_rps = 9000", "rate_rps = -1")
            .contains("problem.toml:8: service \"x\": rate_rps must be a number above 0")
    );
    assert!(bad("model = \"a\"", "model = \"zz\"").contains("problem.toml:7: "));
    assert!(Shell::with(PROBLEM).fail(&["problem.toml", "--time-limit", "nan"]).contains("--time-limit"));
    assert!(Shell::with(PROBLEM).fail(&["problem.toml", "--solver", "best"]).contains("known are auto"));
    assert!(Shell::with(PROBLEM).fail(&["nothing.toml"]).contains("cannot be read"));
}

#[test]
fn machines_that_are_no_gpus_are_scheduled() {
    let shell = Shell::with(PROBLEM);
    let found = shell.json(&["--cms", "cms.json", "--format", "json"]);
    assert_eq!((found["machines"].as_u64(), found["proved_optimal"].as_bool()), (Some(3), Some(true)));
    assert!(shell.succeed(&["--cms", "cms.json", "--solver", "cms-log"]).contains("machines"));
    std::fs::write(shell.0.path().join("cms.json"), "{}").expect("a file");
    assert!(shell.fail(&["--cms", "cms.json"]).contains("cms.json: missing field"));
}

#[cfg(unix)]
#[test]
fn an_interrupted_search_answers_with_its_best_plan() {
    // A search that takes its time: tree search on many services.
    let mut problem = String::from("gpu = \"H200-141GB\"\nprofiles = \"h200.csv\"\nrule = \"paper\"\n");
    for index in 0..80 {
        problem += &format!("[[service]]\nmodel = \"a\"\nrate_rps = {}\nslo_ms = 20\n", 5000 + 137 * index);
    }
    let shell = Shell::with(&problem);
    let mut command =
        shell.command(&["problem.toml", "--solver", "ga", "--time-limit", "600", "--format", "json"]);
    let child = command.stdout(Stdio::piped()).spawn().expect("downbeat runs");
    let waits = std::time::Duration::from_secs(3);
    #[allow(clippy::disallowed_methods, reason = "the search must have begun")]
    std::thread::sleep(waits);
    let pid = rustix::process::Pid::from_raw(child.id() as i32).expect("a process");
    // One that has ended by itself has its plan, too.
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success());
    let plan: Value = serde_json::from_slice(&output.stdout).expect("a plan");
    assert!(plan["gpus"].as_u64().is_some_and(|gpus| gpus > 0));
}

#[test]
fn a_baseline_that_does_not_fit_is_a_line_of_the_comparison() {
    // Four instances: four whole GPUs, or two that are cut in half.
    let two = PROBLEM.replace("gpu = ", "count = 2\ngpu = ").replace("rate_rps = 9000", "rate_rps = 100");
    let shell = Shell::with(&two.replace("rate_rps = 700", "rate_rps = 100\nmin_replicas = 3"));
    let said = shell.fail(&["problem.toml", "--solver", "whole"]);
    assert!(said.contains("whole does not apply: GPUs cut that way are too few"), "{said}");
    let compared = shell.json(&["compare", "problem.toml", "--format", "json", "--solvers", "auto,whole"]);
    assert!(compared["solvers"][0]["gpus"].is_number(), "{compared}");
    assert!(compared["solvers"][1]["not_applicable"].is_string(), "{compared}");
}

#[test]
fn a_time_limit_ends_the_simulation_too_and_says_how_to_go_on() {
    let shell = Shell::with(&PROBLEM.replace("\"paper\"", "\"measured\""));
    let said = shell.fail(&["problem.toml", "--time-limit", "0.000001"]);
    assert!(
        said.contains("stopped while it simulated") && said.contains("run again with more time"),
        "{said}"
    );
}

#[test]
fn devices_keep_their_index_in_a_plan_made_from_another() {
    let shell = Shell::with(PROBLEM);
    let mut old = shell.json(&["problem.toml", "--format", "json"]);
    let devices: Vec<u64> = old["layout"]
        .as_array()
        .expect("a layout")
        .iter()
        .map(|gpu| gpu["device"].as_u64().expect("an index"))
        .collect();
    assert_eq!(devices, (0..devices.len() as u64).collect::<Vec<_>>());
    for gpu in old["layout"].as_array_mut().expect("a layout") {
        gpu["device"] = Value::from(gpu["device"].as_u64().expect("an index") + 3);
    }
    std::fs::write(shell.0.path().join("old.json"), old.to_string()).expect("a file");
    let parted = shell.succeed(&["problem.toml", "--from", "old.json", "--emit", "mig-parted"]);
    assert!(parted.contains("devices: [3") && !parted.contains("[0"), "{parted}");
}
