//! What people write, and what they download.

use std::cell::OnceCell;
use std::fs;
use std::path::Path;

use downbeat_mig::Catalogue;
use downbeat_plan::cms::Cms;
use downbeat_plan::{Problem, Unsimulated};
use downbeat_profile::{Beyond, ProfileFile};
use downbeat_repository::{Repository, parse_config};
use downbeat_sim::Scenario;
use downbeat_transition::{Layout, Options};
use tempfile::TempDir;

/// A `config.pbtxt`. What is taken must also go through JSON and back, as in the repository API.
pub(super) fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(written) = parse_config(text, Path::new("config.pbtxt")) {
        let json = downbeat_oip::config::to_json(&written.config).unwrap();
        let again = downbeat_oip::config::from_json(std::str::from_utf8(&json).unwrap()).unwrap();
        assert_eq!(again.config, written.config);
        in_repository(|folder| fs::write(folder.join("config.pbtxt"), text).unwrap());
    }
}

/// A model file.
pub(super) fn onnx(data: &[u8]) {
    in_repository(|folder| {
        // What an input before this one left behind.
        let _ = fs::remove_file(folder.join("config.pbtxt"));
        fs::write(folder.join("1/model.onnx"), data).unwrap();
    });
}

/// Reads the model `m` of a repository in which `change` has changed something.
fn in_repository(change: impl FnOnce(&Path)) {
    thread_local! {
        static FOLDER: OnceCell<TempDir> = const { OnceCell::new() };
    }
    FOLDER.with(|folder| {
        let folder = folder.get_or_init(|| {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir_all(folder.path().join("m/1")).unwrap();
            folder
        });
        change(&folder.path().join("m"));
        // Most make no sense, and are refused.
        let _ = Repository::open(folder.path()).unwrap().read("m", None);
    });
}

/// A scenario of the simulator.
pub(super) fn scenario(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(scenario) = Scenario::parse(text, Path::new("scenario.toml")) {
        let _ = (scenario.cluster(), scenario.impossible(), scenario.longest_cycle());
    }
}

/// A file of latency profiles. What is taken is written as it was read.
pub(super) fn profile(data: &[u8]) {
    let Ok(file) = ProfileFile::parse(data, "profiles.csv") else { return };
    for model in file.models() {
        for class in file.classes() {
            for beyond in [Beyond::Extrapolate, Beyond::Refuse] {
                if let Ok(profile) = file.profile(model, class.as_str(), Some(64), beyond) {
                    let latencies = (1..=profile.max_batch()).map(|batch| profile.latency(batch));
                    assert!(latencies.is_sorted(), "a larger batch takes less time");
                }
            }
        }
    }
    let mut written = Vec::new();
    file.write(&mut written).unwrap();
    let again = ProfileFile::parse(&written, "profiles.csv").unwrap();
    assert!(file.models().eq(again.models()));
}

/// A problem of the planner: in TOML, or machines that are no GPUs in JSON.
pub(super) fn plan(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    // Where the profiles that it names are.
    let origin = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/plan/problem.toml");
    if let Ok(problem) = Problem::parse(text, &origin, &Unsimulated) {
        assert!(problem.services.iter().all(|service| service.rate_rps > 0.0 && service.slo_ms > 0.0));
    }
    // Most make no sense, and are refused.
    let _ = Cms::parse(text);
}

/// A layout of a cluster. To go from one to itself takes no step.
pub(super) fn layout(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(layout) = Layout::parse(text) else { return };
    let few = layout.gpus.len() <= 4 && layout.gpus.iter().all(|gpu| gpu.instances.len() <= 8);
    if few
        && let Ok(transition) =
            downbeat_transition::plan(&layout, &layout, &Catalogue::builtin(), &Options::default())
    {
        assert!(transition.steps.is_empty(), "steps to where it is already");
    }
}
