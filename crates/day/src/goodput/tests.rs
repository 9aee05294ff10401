use super::*;

const POINTS: [(u32, f64); 4] = [(1, 2.0), (4, 4.0), (16, 10.0), (64, 36.0)];

fn query(slo_ms: f64) -> GoodputQuery<'static> {
    GoodputQuery { model: "m", class: "x/1g", points: &POINTS, slo_ms }
}

#[test]
fn more_slices_serve_more_each_and_never_more_than_full_batches() {
    let steps = Goodput::forgetful().goodput(&query(24.0)).unwrap();
    let each = |n: usize| steps[n - 1].capacity_rps / n as f64;
    assert!(each(1) > 0.0 && each(1) < each(4), "{} {}", each(1), each(4));
    assert!(each(16) <= 64.0 / 36.0 * 1e3, "no batch in time is better than one of 64");
    assert_eq!(steps.len(), 16);
}

#[test]
fn what_was_simulated_is_remembered_and_changed_measurements_are_not_confused_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep").join("goodput.json");
    let first = Goodput::remembering(&path).unwrap();
    let steps = first.goodput(&query(24.0)).unwrap();
    first.save().unwrap();
    let again = Goodput::remembering(&path).unwrap();
    assert_eq!(again.known.lock().unwrap().len(), 1);
    assert_eq!(again.goodput(&query(24.0)).unwrap(), steps);
    assert_eq!(again.known.lock().unwrap().len(), 1);
    let other = GoodputQuery { points: &POINTS[..3], ..query(24.0) };
    assert_ne!(key(&other), key(&query(24.0)));
}

#[test]
fn a_file_of_another_version_is_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goodput.json");
    fs::write(&path, r#"{"version":"older","goodput_rps":{"x":[1]}}"#).unwrap();
    assert!(Goodput::remembering(&path).unwrap().known.lock().unwrap().is_empty());
    fs::write(&path, "not json").unwrap();
    assert!(Goodput::remembering(&path).unwrap().known.lock().unwrap().is_empty());
}

#[test]
fn simulating_ends_when_it_is_told_to_and_what_is_known_needs_none() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    let asked = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&asked);
    let stopping = Goodput::forgetful().until(move || counter.fetch_add(1, Ordering::Relaxed) >= 3);
    let said = stopping.goodput(&query(24.0)).unwrap_err();
    assert!(said.contains("was stopped while it simulated"), "{said}");
    assert!(stopping.known.lock().unwrap().is_empty(), "half an answer is not remembered");
    assert!(asked.load(Ordering::Relaxed) <= 3 + COUNTS.len() as u32, "each count runs at most once more");

    let patient = Goodput::forgetful();
    let steps = patient.goodput(&query(24.0)).unwrap();
    assert_eq!(patient.until(|| true).goodput(&query(24.0)).unwrap(), steps);
}
