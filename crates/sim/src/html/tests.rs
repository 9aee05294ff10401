//! What must hold of every page. Set `DOWNBEAT_HTML_DIR` to keep the pages and look at them.

use super::fixture::{goodput, hollow_goodput, hollow_run, run};
use super::{goodput_page, run_page};
use crate::{Execution, GoodputReport, RunDetail, RunReport};

/// Elements that have no end tag.
const VOID: [&str; 2] = ["meta", "input"];

/// Every kind of page, by name.
fn pages() -> Vec<(&'static str, String)> {
    let bare = RunReport { detail: RunDetail::default(), ..run("bare", 0, 0, 0.0) };
    let rivals = [run("guarded", 8, 8, 0.0), run("delayed", 8, 8, 0.6), run("eager", 8, 8, 0.1)];
    let single =
        GoodputReport { policies: goodput(1, 1).policies.into_iter().take(1).collect(), ..goodput(1, 1) };
    vec![
        ("run-1-model", run_page("one model", &[run("guarded", 1, 8, 0.0)])),
        ("run-8-models", run_page("eight models", &rivals)),
        ("run-100-models", run_page("a hundred models", &[run("guarded", 100, 32, 0.05)])),
        ("run-300-gpus", run_page("many GPUs", &[run("guarded", 24, 300, 0.0)])),
        ("run-none", run_page("none", &[])),
        ("run-bare", run_page("bare", &[bare])),
        ("run-hollow", run_page("hollow", &[hollow_run(), hollow_run()])),
        ("goodput-8-models", goodput_page(&goodput(8, 8))),
        ("goodput-100-models", goodput_page(&goodput(100, 32))),
        ("goodput-single", goodput_page(&single)),
        ("goodput-hollow", goodput_page(&hollow_goodput())),
        ("goodput-none", goodput_page(&GoodputReport { policies: Default::default(), ..goodput(1, 1) })),
    ]
}

/// The tags of a page in order, less those in its script and its style.
fn tags(page: &str) -> Vec<&str> {
    let mut rest = page;
    let mut tags = Vec::new();
    while let Some(start) = rest.find('<') {
        let end = rest[start..].find('>').expect("every tag ends") + start;
        let tag = &rest[start + 1..end];
        tags.push(tag);
        rest = &rest[end + 1..];
        if tag == "script" || tag == "style" {
            rest = &rest[rest.find("</").expect("raw text ends")..];
        }
    }
    tags
}

#[test]
fn every_element_that_opens_closes() {
    for (name, page) in pages() {
        let mut open = Vec::new();
        for tag in tags(&page) {
            if let Some(closed) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(closed), "{name}");
            } else if !tag.starts_with('!') {
                let element = tag.split(' ').next().unwrap();
                assert!(!tag[1..].contains('<'), "{name}: {tag}");
                if !VOID.contains(&element) {
                    open.push(element);
                }
            }
        }
        assert!(open.is_empty(), "{name}: {open:?}");
    }
}

#[test]
fn a_page_needs_nothing_but_itself() {
    for (name, page) in pages() {
        for reference in ["http:", "https:", "//", " src=", " href=", "url(", "@import"] {
            assert!(!page.contains(reference), "{name} contains {reference}");
        }
    }
}

#[test]
fn no_number_that_is_not_one_reaches_a_picture() {
    for (name, page) in pages() {
        for tag in tags(&page) {
            let geometry = tag.split(" data-v=").next().unwrap();
            assert!(!geometry.contains("NaN") && !geometry.contains("inf"), "{name}: {tag}");
        }
    }
}

#[test]
fn names_from_a_scenario_are_text_not_markup() {
    let hostile = r#""><script>alert('x')</script>&"#;
    let mut one = run(hostile, 2, 2, 0.3);
    for model in &mut one.models {
        model.name = hostile.to_owned();
    }
    let mut report = goodput(2, 2);
    report.scenario = hostile.to_owned();
    let mut policy = report.policies.remove("eager").unwrap();
    policy.settings = hostile.to_owned();
    policy.at_goodput = Some(one.clone());
    report.policies.insert(hostile.to_owned(), policy);

    for page in [run_page(hostile, &[one.clone(), one]), goodput_page(&report)] {
        assert!(!page.contains("<script>alert"));
        assert!(!page.contains(r#""><script"#));
        assert!(page.contains("&lt;script&gt;alert"));
    }
}

#[test]
fn the_same_report_gives_the_same_bytes() {
    assert_eq!(pages(), pages());
}

#[test]
fn a_hundred_models_stay_a_page_of_moderate_size() {
    for (name, page) in pages() {
        assert!(page.len() < 3_000_000, "{name} has {} bytes", page.len());
        assert!(page.matches("class=\"multiple\"").count() <= 8 * 6, "{name}");
    }
}

#[test]
fn the_worst_models_are_shown_by_name_and_the_rest_together() {
    let mut many = run("guarded", 100, 32, 0.0);
    many.models[77].bad_rate = 0.5;
    let page = run_page("many", &[many]);
    let legend = &page[page.find("class=\"legend\"").unwrap()..][..2000];
    assert!(legend.contains("vision/resnet50-v77"));
    assert!(legend.contains("other 93\u{a0}models"));
}

#[test]
fn the_limit_and_the_bound_are_drawn() {
    let page = goodput_page(&goodput(8, 8));
    for label in ["1 % limit", "fluid bound", "in proportion to load", "1 % (p99)"] {
        assert!(page.contains(label), "{label}");
    }
}

#[test]
fn a_p99_of_the_few_that_ran_is_not_called_good() {
    let mut one = run("guarded", 1, 1, 0.0);
    (one.models[0].bad_rate, one.bad_rate_worst) = (0.07, 0.07);
    let page = run_page("one", &[one]);
    assert!(!page.contains("keeps its SLO"));
    assert!(page.contains("7\u{a0}% were bad"));
    assert!(page.contains("class=\"tile bad\"><dt>p99, tightest model"));
}

#[test]
fn a_batch_that_began_before_the_stretch_is_drawn_from_its_edge() {
    let mut one = run("guarded", 1, 1, 0.0);
    let batch = |start_ms: f64, end_ms: f64| Execution { gpu: 0, model: 0, batch: 3, start_ms, end_ms };
    one.detail.timeline = vec![batch(990.0, 1010.0), batch(1010.0, 1030.0)];
    let page = run_page("one", &[one]);
    assert!(page.contains("990.00 to 1010.00 ms"));
    assert!(page.contains("From 1,000\u{a0}ms of virtual time"));
    assert!(page.contains("over 30\u{a0}ms, 2 batches"));
}

#[test]
fn what_is_to_be_known_stands_on_the_page() {
    let mut one = run("guarded", 1, 1, 0.0);
    one.detail.notes = vec!["half of <it>".to_owned()];
    assert!(run_page("one", &[one]).contains("half of &lt;it&gt;"));
    let mut report = goodput(1, 1);
    report.notes = vec!["half of <it>".to_owned()];
    report.policies.get_mut("guarded").unwrap().capped = true;
    let page = goodput_page(&report);
    assert!(page.contains("half of &lt;it&gt;") && page.contains("≥\u{a0}651\u{a0}rps"));
}

#[test]
fn pages_can_be_kept_for_looking_at() {
    let Some(folder) = std::env::var_os("DOWNBEAT_HTML_DIR") else { return };
    let folder = std::path::PathBuf::from(folder);
    for (name, page) in pages() {
        std::fs::write(folder.join(name).with_extension("html"), page).unwrap();
    }
}
