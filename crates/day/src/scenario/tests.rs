use std::fs;

use downbeat_plan::Unsimulated;
use downbeat_transition::{Driver, StepTimes};

use super::*;

/// A problem of two services, two traces, and a file of a day with this text.
fn parsed(text: &str) -> Result<DayScenario, String> {
    let folder = tempfile::tempdir().unwrap();
    let profiles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles/a100.csv");
    let problem = format!(
        "gpu = \"A100-40GB\"\nprofiles = {:?}\nrule = \"half\"\n\
         [[service]]\nname = \"a\"\nmodel = \"resnet50\"\nrate_rps = 100\nslo_ms = 100\n\
         [[service]]\nname = \"b\"\nmodel = \"gpt2\"\nrate_rps = 50\nslo_ms = 200\n",
        profiles.display()
    );
    fs::write(folder.path().join("problem.toml"), problem).unwrap();
    fs::write(folder.path().join("day.csv"), "time_s,rate\n0,1\n3600,3\n7200,1\n").unwrap();
    fs::write(folder.path().join("flat.csv"), "time_s,rate\n0,1\n7200,1\n").unwrap();
    let file = folder.path().join("office.toml");
    let here = format!("{}/", folder.path().display());
    DayScenario::parse(text, &file, &Unsimulated).map_err(|error| error.to_string().replace(&here, ""))
}

#[test]
fn rates_follow_the_traces_around_the_mean() {
    let day = parsed(
        "[day]\nproblem = \"problem.toml\"\ntrace = \"day.csv\"\n[[day.service]]\nname = \"b\"\ntrace = \"flat.csv\"\n",
    )
    .unwrap();
    assert_eq!((day.name.as_str(), day.duration, day.seed), ("office", Span::from_millis(86_400_000), 1));
    assert_eq!(day.rate_rps(0, Span::ZERO), 50.0);
    assert_eq!(day.rate_rps(0, Span::from_millis(3_600_000)), 150.0);
    assert_eq!(day.rate_rps(1, Span::from_millis(3_600_000)), 50.0);
    assert_eq!((day.peak_rps(0), day.peak_rps(1)), (150.0, 50.0));
}

#[test]
fn a_peak_that_comes_after_the_end_is_none() {
    let day = parsed("duration_s = 3600\n[day]\nproblem = \"problem.toml\"\ntrace = \"day.csv\"\n").unwrap();
    assert_eq!(day.peak_rps(0), 50.0);
}

#[test]
fn every_key_is_read() {
    let day = parsed(
        "duration_s = 7200\nseed = 5\n[day]\nproblem = \"problem.toml\"\ntrace = \"day.csv\"\nepoch_s = 900\nlead_s = 300\n\
         season_s = 7200\nhistory_days = 2\nheadroom = 1.2\ndriver = \"mig-parted\"\ntimes = \"2024\"\nspare = 0\n\
         provision_s = 0\ninterval_s = 10\n[[fault]]\ngpu = 2\nat_s = 60\n",
    )
    .unwrap();
    assert_eq!(day.settings.epoch, Span::from_millis(900_000));
    assert_eq!(day.settings.history, Span::from_millis(14_400_000));
    assert_eq!((day.settings.driver, day.settings.times), (Driver::MigParted, StepTimes::PAPER_2024));
    assert_eq!((day.settings.spare_max, day.settings.provision), (Some(0), Span::ZERO));
    assert_eq!(day.faults, [GpuFault { gpu: 2, at: Span::from_millis(60_000) }]);
}

#[test]
fn a_class_of_devices_belongs_to_one_service() {
    let day = parsed("[day]\nproblem = \"problem.toml\"\ntrace = \"day.csv\"\n").unwrap();
    let (scenario, kinds) = day.scenario().unwrap();
    for (class, _) in scenario.classes.iter().enumerate() {
        let runs = scenario.models.iter().filter(|model| model.profiles[class].is_some()).count();
        assert_eq!(runs, 1);
        let (service, slice) = kinds.kind(ClassId(class as u16)).unwrap();
        assert_eq!(kinds.class(service, slice), Some(ClassId(class as u16)));
    }
    let shares: f64 = scenario.models.iter().map(|model| model.share).sum();
    assert!((shares - 1.0).abs() < 1e-9);
}

#[test]
fn mistakes_name_the_line_and_the_key() {
    let day = |more: &str| format!("[day]\nproblem = \"problem.toml\"\n{more}");
    let cases = [
        (day(""), "office.toml:1: trace is missing: service \"a\" has none of its own"),
        (
            day("trace = \"day.csv\"\nepochs = 3\n"),
            "office.toml:4: unknown key `epochs`; did you mean `epoch_s`?",
        ),
        (
            day("trace = \"day.csv\"\nepoch_s = 0\n"),
            "office.toml:4: epoch_s must be from 1 to 10000000 (is 0)",
        ),
        (
            day("trace = \"day.csv\"\nheadroom = 0.5\n"),
            "office.toml:4: headroom must be from 1 to 10 (is 0.5)",
        ),
        (
            day("trace = \"day.csv\"\ndriver = \"mig\"\n"),
            "office.toml:4: driver \"mig\" is not known; did you mean `mig-parted`?",
        ),
        (
            day("trace = \"day.csv\"\ntimes = \"1999\"\n"),
            "office.toml:4: times \"1999\" is not known; known here: 2021, 2024",
        ),
        (
            day("trace = \"day.csv\"\n[[day.service]]\nname = \"c\"\ntrace = \"day.csv\"\n"),
            "office.toml:5: there is no service \"c\"; known here: a, b",
        ),
        (
            day("trace = \"day.csv\"\n[[fault]]\ngpu = -1\nat_s = 3\n"),
            "office.toml:5: fault.gpu must be a whole number from 0 to 1000000 (is -1)",
        ),
        ("[day]\ntrace = \"day.csv\"\n".to_owned(), "office.toml:1: problem is missing"),
    ];
    for (text, message) in cases {
        assert_eq!(parsed(&text).unwrap_err(), message);
    }
    let absent = parsed("[day]\nproblem = \"none.toml\"\ntrace = \"day.csv\"\n").unwrap_err();
    assert!(absent.starts_with("none.toml: cannot be read"), "{absent}");
    let absent = parsed("[day]\nproblem = \"problem.toml\"\ntrace = \"none.csv\"\n").unwrap_err();
    assert!(absent.starts_with("none.csv: cannot be read"), "{absent}");
}

#[test]
fn a_file_with_a_day_is_told_from_other_scenarios() {
    assert!(DayScenario::is_one("[day]\nproblem = \"x\"\n"));
    assert!(!DayScenario::is_one("gpus = 8\n"));
    assert!(!DayScenario::is_one("day = [[["));
}
