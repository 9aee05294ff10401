use std::path::Path;

use super::*;
use crate::parse_config;

fn config(text: &str) -> ModelConfig {
    parse_config(text, Path::new("config.pbtxt")).unwrap().config
}

fn settings(text: &str) -> Result<Settings, String> {
    Settings::of(&config(text), Backend::Onnx)
}

#[test]
fn objective_queue_limit_and_priorities_are_honoured_without_a_notice() {
    let settings = settings(
        r#"parameters { key: "slo_ms" value { string_value: "2.5" } }
           parameters { key: "max_wait_ms" value { string_value: "0" } }
           dynamic_batching { priority_levels: 3 default_priority_level: 2 default_queue_policy { max_queue_size: 100 } }"#,
    );
    let expected = Settings {
        slo: Some(Duration::from_micros(2_500)),
        max_wait: Some(Duration::ZERO),
        queue_limit: Some(100),
        priorities: Some(Priorities { levels: 3, default: 2 }),
        notices: Vec::new(),
    };
    assert_eq!(settings, Ok(expected));
}

#[test]
fn an_objective_that_is_no_time_is_refused() {
    for value in ["", "fast", "0", "-3", "NaN", "inf", "25ms"] {
        let text = format!("parameters {{ key: \"slo_ms\" value {{ string_value: \"{value}\" }} }}");
        let problem = settings(&text).unwrap_err();
        assert!(problem.starts_with(&format!("the parameter slo_ms is {value:?}; ")), "{problem}");
    }
}

#[test]
fn each_setting_that_is_replaced_gets_one_notice_that_names_it() {
    let replaced = [
        ("dynamic_batching { preferred_batch_size: [ 4 ] }", "dynamic_batching.preferred_batch_size"),
        (
            "dynamic_batching { max_queue_delay_microseconds: 9 }",
            "dynamic_batching.max_queue_delay_microseconds",
        ),
        ("dynamic_batching { preserve_ordering: true }", "dynamic_batching.preserve_ordering"),
        (
            "dynamic_batching { priority_queue_policy { key: 1 value {} } }",
            "dynamic_batching.priority_queue_policy",
        ),
        (
            "dynamic_batching { default_queue_policy { default_timeout_microseconds: 1 } }",
            "default_queue_policy.default_timeout_microseconds",
        ),
        ("instance_group [ { count: 2 }, { count: 1 } ]", "instance_group"),
        ("optimization { graph { level: 1 } }", "optimization"),
        (
            "optimization { execution_accelerators { gpu_execution_accelerator { name: \"tensorrt\" } } }",
            "optimization.execution_accelerators",
        ),
        ("model_warmup { name: \"w\" }", "model_warmup"),
        ("response_cache { enable: true }", "response_cache"),
        ("input { name: \"x\" allow_ragged_batch: true }", "allow_ragged_batch"),
    ];
    for (text, name) in replaced {
        let notices = settings(text).unwrap().notices;
        assert_eq!(notices.len(), 1, "{notices:?}");
        assert!(notices[0].starts_with(&format!("{name} is not used: ")), "{notices:?}");
    }
}

#[test]
fn settings_that_change_nothing_get_no_notice() {
    assert_eq!(settings("dynamic_batching {} response_cache { enable: false }"), Ok(Settings::default()));
}

#[test]
fn parameters_without_meaning_are_named_with_what_may_have_been_meant() {
    let parameter = |key: &str| format!("parameters {{ key: \"{key}\" value {{ string_value: \"1\" }} }}");
    let settings = settings(&(parameter("slo_m") + &parameter("intra_op_thread_count"))).unwrap();
    assert_eq!(
        settings.notices,
        [
            "the parameter \"intra_op_thread_count\" is not used",
            "the parameter \"slo_m\" is not used; did you mean \"slo_ms\"?"
        ]
    );
}

#[test]
fn a_default_priority_outside_the_levels_is_refused() {
    let problem = settings("dynamic_batching { priority_levels: 2 }").unwrap_err();
    assert!(problem.starts_with("dynamic_batching.default_priority_level is 0; "), "{problem}");
}

#[test]
fn what_would_make_another_model_of_it_is_refused_by_name() {
    let unsupported = [
        ("sequence_batching {}", "sequence_batching"),
        ("ensemble_scheduling {}", "ensemble_scheduling"),
        ("platform: \"ensemble\"", "ensemble_scheduling"),
        ("model_transaction_policy { decoupled: true }", "model_transaction_policy.decoupled"),
        ("batch_input { kind: BATCH_ELEMENT_COUNT }", "batch_input"),
        ("model_operations { op_library_filename: \"x.so\" }", "model_operations"),
        ("model_repository_agents { agents { name: \"checksum\" } }", "model_repository_agents"),
    ];
    for (text, name) in unsupported {
        let problem = refuse_unsupported(&config(text)).unwrap_err();
        assert!(problem.starts_with(name) && problem.contains("not supported"), "{problem}");
    }
    assert_eq!(refuse_unsupported(&config("dynamic_batching {}")), Ok(()));
}

#[test]
fn an_emulated_latency_that_is_no_number_is_refused() {
    let text = r#"parameters { key: "beta_ms" value { string_value: "fast" } }"#;
    let problem = Settings::of(&config(text), Backend::Emulated).unwrap_err();
    assert!(problem.starts_with("the parameter beta_ms is \"fast\"; "), "{problem}");
    assert!(Settings::of(&config(text), Backend::Onnx).is_ok(), "it means nothing there, and gets a notice");
}
