use super::*;
use crate::proto::{ModelDynamicBatching, ModelInput, model_config};
use serde_json::{Value, json};

fn value(json: &[u8]) -> Value {
    serde_json::from_slice(json).unwrap()
}

fn config() -> ModelConfig {
    ModelConfig {
        name: "resnet".into(),
        backend: "onnxruntime".into(),
        max_batch_size: 8,
        input: vec![ModelInput {
            name: "x".into(),
            data_type: 11,
            dims: vec![3, -1],
            ..ModelInput::default()
        }],
        scheduling_choice: Some(model_config::SchedulingChoice::DynamicBatching(ModelDynamicBatching {
            max_queue_delay_microseconds: 100,
            ..ModelDynamicBatching::default()
        })),
        ..ModelConfig::default()
    }
}

#[test]
fn a_configuration_is_written_under_the_names_of_the_text_format() {
    let json = value(&to_json(&config()).unwrap());
    assert_eq!(json["max_batch_size"], 8);
    assert_eq!(json["input"][0]["data_type"], "TYPE_FP32");
    assert_eq!(json["input"][0]["dims"], json!([3, -1]), "64-bit integers are numbers");
    assert_eq!(json["dynamic_batching"]["max_queue_delay_microseconds"], 100);
}

#[test]
fn defaults_are_written_but_absent_messages_are_not() {
    let json = value(&to_json(&config()).unwrap());
    assert_eq!(json["platform"], "");
    assert_eq!(json["output"], json!([]));
    assert_eq!(json["parameters"], json!({}));
    assert_eq!(json["input"][0]["format"], "FORMAT_NONE");
    let object = json.as_object().unwrap();
    assert!(!object.contains_key("optimization"), "{json}");
    assert!(!object.contains_key("sequence_batching"), "{json}");
}

#[test]
fn a_configuration_survives_the_way_through_json() {
    let json = String::from_utf8(to_json(&config()).unwrap()).unwrap();
    assert_eq!(from_json(&json).unwrap().config, config());
}

#[test]
fn a_configuration_may_leave_fields_out_and_write_integers_as_strings() {
    let config =
        from_json(r#"{"max_batch_size": 4, "input": [{"name": "x", "dims": ["16"]}]}"#).unwrap().config;
    assert_eq!((config.max_batch_size, &config.input[0].dims[..]), (4, &[16][..]));
}

#[test]
fn a_largest_batch_of_0_is_told_from_none() {
    let says = |json| from_json(json).unwrap().says_max_batch;
    assert!(says(r#"{"max_batch_size": 0}"#) && says(r#"{"maxBatchSize": 0}"#));
    assert!(!says("{}") && !says(r#"{"max_batch_size": null, "name": "max_batch_size"}"#));
    assert_eq!(from_json(r#"{"max_batch_size": 0}"#).unwrap().config, ModelConfig::default());
}

#[test]
fn a_wrong_configuration_says_where() {
    for wrong in [r#"{"max_batch": 4}"#, r#"{"max_batch_size": "x"}"#, "{", "{} {}", "[]"] {
        let failure = from_json(wrong).unwrap_err();
        assert_eq!(failure.reason, Reason::Invalid);
        assert!(failure.message.contains("line 1"), "{failure}");
    }
}

#[test]
fn statistics_have_every_duration() {
    let json = value(
        &statistics_to_json(vec![ModelStatistics {
            name: "m".into(),
            version: "1".into(),
            ..ModelStatistics::default()
        }])
        .unwrap(),
    );
    let model = &json["model_stats"][0];
    assert_eq!(model["inference_count"], 0);
    assert_eq!(model["batch_stats"], json!([]));
    for duration in [
        "success",
        "fail",
        "queue",
        "compute_input",
        "compute_infer",
        "compute_output",
        "cache_hit",
        "cache_miss",
    ] {
        assert_eq!(model["inference_stats"][duration], json!({"count": 0, "ns": 0}), "{duration}");
    }
}
