use std::fs;
use std::path::{Path, PathBuf};

use downbeat_sched::{ClassId, Delays, Rule, Span};
use proptest::prelude::*;

use super::{Arrival, GpuClass, Jitter, RateTrace, Scenario};
use crate::Quantiles;

fn parsed(text: &str) -> Scenario {
    Scenario::parse(text, Path::new("folder/test.toml")).unwrap()
}

/// The scenario files that come with Downbeat.
fn shipped() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    files
}

const MINIMAL: &str = r#"
    gpus = 2
    total_rps = 100
    [[model]]
    name = "a"
    slo_ms = 25
    profile = { alpha_ms = 1, beta_ms = 5, max_batch = 8 }
"#;

#[test]
fn what_a_file_leaves_out_has_a_default() {
    let scenario = parsed(MINIMAL);
    assert_eq!(scenario.name, "test");
    assert_eq!(scenario.classes, [GpuClass { name: "gpu".into(), count: 2 }]);
    assert_eq!(scenario.duration, Span::from_millis(12_000));
    assert_eq!(scenario.warmup, Span::from_millis(1_000));
    assert_eq!(scenario.seed, 1);
    assert_eq!(scenario.rule, Rule::ADAPTIVE);
    assert_eq!(scenario.delays, Delays::default());
    assert_eq!(scenario.response_reserve, Span::ZERO);
    assert_eq!(scenario.jitter, Jitter::None);
    assert!(matches!(scenario.models[0].arrival, Arrival::Poisson));
    assert_eq!(scenario.models[0].share, 1.0);
}

#[test]
fn every_key_of_the_contract_is_read() {
    let scenario = parsed(
        r#"
        duration_s = 20
        warmup_s = 2
        seed = 7
        arrival = { kind = "gamma", shape = 0.2 }
        control_delay_us = 100
        data_delay_us = 12.5
        response_reserve_us = 2000
        response_us = [[0.5, 300], [1, 900]]
        jitter = { kind = "lognormal", sigma = 0.1 }
        total_rps = 400
        [[gpu_class]]
        name = "h200/7g"
        count = 1
        [[gpu_class]]
        name = "h200/3g"
        count = 2
        [[model]]
        name = "a"
        slo_ms = 25
        weight = 3
        profiles = { "h200/3g" = { alpha_ms = 1, beta_ms = 5, max_batch = 8 } }
        arrival = { kind = "onoff", on_s = 0.5, off_s = 1.5, factor = 4 }
        [[model]]
        name = "b"
        slo_ms = 30.5
        profiles = { "h200/7g" = { alpha_ms = 2, beta_ms = 5, max_batch = 8 } }
        "#,
    );
    assert_eq!((scenario.duration, scenario.warmup), (Span::from_millis(20_000), Span::from_millis(2_000)));
    assert_eq!(scenario.seed, 7);
    let delays = Delays { control: Span::from_micros(100), data: Span::from_nanos(12_500) };
    assert_eq!(scenario.delays, delays);
    assert_eq!(scenario.jitter, Jitter::Lognormal { sigma: 0.1 });
    let response = vec![(0.5, Span::from_micros(300)), (1.0, Span::from_micros(900))];
    assert_eq!(scenario.response, Quantiles::new(response));
    assert!(matches!(scenario.models[0].arrival, Arrival::OnOff { factor: 4.0, .. }));
    assert!(matches!(scenario.models[1].arrival, Arrival::Gamma { shape: 0.2 }));

    let cluster = scenario.cluster();
    assert_eq!(cluster.gpus, [ClassId(0), ClassId(1), ClassId(1)]);
    assert_eq!(cluster.delays, delays);
    assert_eq!(cluster.models[0].rate_rps, 300.0);
    assert_eq!(cluster.models[1].slo, Span::from_micros(28_500));
    assert!(cluster.models[0].profiles[0].is_none() && cluster.models[1].profiles[1].is_none());
    assert_eq!(cluster.models[0].profiles[1].as_ref().unwrap().latency(2), Span::from_millis(7));
}

#[test]
fn spare_devices_answer_sooner_or_stay_idle() {
    let of = |word: &str| parsed(&format!("spare_devices = \"{word}\"\n{MINIMAL}"));
    assert_eq!(of("answer").rule, Rule::ADAPTIVE);
    assert_eq!(of("idle").rule, Rule::ADAPTIVE.without_early_starts());
    let own: crate::PolicySpec = "adaptive".parse().unwrap();
    let [sooner, later] = ["answer", "idle"].map(|word| {
        let report = own.run(&of(word), 1, crate::Until::End).unwrap();
        report.models[0].p50_ms
    });
    assert!(sooner < 10.0 && later > 15.0, "{sooner} and {later} ms");
}

#[test]
fn popularity_divides_the_rate_by_rank() {
    let model = MINIMAL.split("[[model]]").nth(1).unwrap();
    let text = format!(
        "popularity = {{ kind = \"zipf\", s = 1 }}{MINIMAL}[[model]]{}",
        model.replace("\"a\"", "\"b\"")
    );
    let scenario = parsed(&text);
    assert!((scenario.models[0].share - 2.0 / 3.0).abs() < 1e-12);
    assert!((scenario.models[1].share - 1.0 / 3.0).abs() < 1e-12);
}

#[test]
fn rates_given_per_model_sum_to_the_total_and_scale_together() {
    let model = |name: &str, rate| {
        format!(
            "[[model]]\nname = \"{name}\"\nslo_ms = 9\nrate_rps = {rate}\n\
             profile = {{ alpha_ms = 1, beta_ms = 5, max_batch = 8 }}\n"
        )
    };
    let scenario = parsed(&format!("gpus = 1\n{}{}", model("a", 30), model("b", 10)));
    assert_eq!(scenario.total_rps, 40.0);
    assert_eq!(scenario.with_rate(80.0).cluster().models[0].rate_rps, 60.0);
}

/// A folder with a trace and a profile, gone when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Folder {
        let folder = std::env::temp_dir().join(format!("downbeat-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
        }
        Folder(folder)
    }

    fn parse(&self, text: &str) -> Result<Scenario, String> {
        let origin = self.0.join("s.toml");
        Scenario::parse(text, &origin)
            .map_err(|error| error.to_string().replace(&format!("{}/", self.0.display()), ""))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_trace_that_gives_no_rate_beside_it_gives_its_own() {
    let folder = Folder::new("trace", &[("t.csv", "time_s,rate\n0,10\n30,40\n40,0\n")]);
    let text = MINIMAL.replace("total_rps = 100", "arrival = { kind = \"trace\", csv = \"t.csv\" }");
    assert_eq!(folder.parse(&text).unwrap().total_rps, 17.5);
    let given = text.replace("slo_ms", "rate_rps = 4\nslo_ms");
    assert_eq!(folder.parse(&given).unwrap().total_rps, 4.0);
}

#[test]
fn a_bad_file_is_named_together_with_the_key_that_names_it() {
    let folder = Folder::new(
        "bad-files",
        &[
            ("t.csv", "time_s,rate\n0,10\n5,20\n4,10\n"),
            ("p.csv", "model,slice,batch,latency_ms\nr50,7g,1,-2\n"),
        ],
    );
    let trace = MINIMAL.replace("total_rps = 100", "arrival = { kind = \"trace\", csv = \"t.csv\" }");
    assert_eq!(
        folder.parse(&trace).unwrap_err(),
        "s.toml:3: arrival.csv: t.csv:4: column time_s: times must rise (4 comes after 5)"
    );
    let profile = |csv: &str| {
        let entry = format!("profile = {{ csv = \"{csv}\", model = \"r50\", slice = \"7g\" }}");
        MINIMAL.replace("profile = { alpha_ms = 1, beta_ms = 5, max_batch = 8 }", &entry)
    };
    let said = folder.parse(&profile("p.csv")).unwrap_err();
    assert!(said.starts_with("s.toml:7: model \"a\": profile: p.csv:2"), "{said}");
    let said = folder.parse(&profile("none.csv")).unwrap_err();
    assert!(said.starts_with("s.toml:7: model \"a\": profile: none.csv"), "{said}");
    let said = Scenario::load(&folder.0.join("none.toml")).unwrap_err().to_string();
    assert!(said.contains("none.toml: cannot be read: "), "{said}");
}

#[test]
fn bad_traces_are_refused_with_file_line_and_column() {
    for (text, expected) in [
        ("", "t.csv:1: the header must be `time_s,rate` (is ``)"),
        ("time,rate\n", "t.csv:1: the header must be `time_s,rate` (is `time,rate`)"),
        ("time_s,rate\n", "t.csv:1: a trace needs at least two rows: its beginning and its end"),
        ("time_s,rate\n0,1\n", "t.csv:2: a trace needs at least two rows: its beginning and its end"),
        ("time_s,rate\n1,1\n2,1\n", "t.csv:2: column time_s: the first time must be 0 (is 1)"),
        ("time_s,rate\n0,1\n2,1\n2,1\n", "t.csv:4: column time_s: times must rise (2 comes after 2)"),
        ("time_s,rate\n0,1\n\n2,-1\n", "t.csv:4: column rate: must be a finite number, 0 or more (is -1)"),
        ("time_s,rate\n0,1\ninf,1\n", "t.csv:3: column time_s: must be a finite number, 0 or more (is inf)"),
        ("time_s,rate\n0,1\n9e9,1\n", "t.csv:3: column time_s: must be at most 10000000 (is 9000000000)"),
        ("time_s,rate\n0,x\n2,1\n", "t.csv:2: column rate: `x` is not a number"),
        ("time_s,rate\n0\n2,1\n", "t.csv:2: column rate: is missing"),
        ("time_s,rate\n0,1,2\n2,1\n", "t.csv:2: a row has two columns, time_s and rate (a third one is `2`)"),
        ("time_s,rate\n0,0\n2,5\n", "t.csv:3: column rate: the mean must be above 0 and below 1e12"),
    ] {
        let said = RateTrace::parse(text, Path::new("t.csv")).unwrap_err().to_string();
        assert_eq!(said, expected);
    }
}

#[test]
fn every_scenario_that_ships_loads_and_says_why_it_exists() {
    let files = shipped();
    assert!(files.len() >= 20, "only {} scenarios", files.len());
    for path in files {
        let scenario = Scenario::load(&path).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# "), "{} does not begin with a comment", path.display());
        if scenario.autoscale.is_some() {
            // How many devices there are is not the scenario's business.
            continue;
        }
        let bound = crate::fluid_bound_rps(&scenario);
        let load = scenario.total_rps / bound;
        let expected = if scenario.name.starts_with("overload") { 1.9..2.1 } else { 0.55..0.85 };
        assert!(expected.contains(&load), "{}: {load} of the bound {bound}", scenario.name);
    }
}

proptest! {
    /// Cuts, repeats and overwrites pieces of good scenarios: whatever comes of it is read or refused in one line.
    #[test]
    fn no_text_makes_the_reader_panic(
        which in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0usize..12, "[ -~\n]{0,6}|-1|nan|inf|1e400|0"), 1..6),
    ) {
        let path = which.get(&shipped()).clone();
        let mut text: Vec<char> = fs::read_to_string(&path).unwrap().chars().take(1500).collect();
        for (at, cut, insert) in edits {
            let at = at.index(text.len() + 1);
            let end = (at + cut).min(text.len());
            text.splice(at..end, insert.chars());
        }
        let text: String = text.into_iter().collect();
        if let Err(error) = Scenario::parse(&text, &path) {
            prop_assert_eq!(error.to_string().lines().count(), 1);
        }
    }
}
