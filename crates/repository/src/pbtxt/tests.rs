use downbeat_oip::proto::{DataType, ModelConfig, model_config, model_version_policy};

use super::*;

fn parse(text: &str) -> Result<ModelConfig, String> {
    parse_config(text, Path::new("m/config.pbtxt"))
        .map(|written| written.config)
        .map_err(|error| error.to_string())
}

#[test]
fn a_largest_batch_of_0_is_told_from_none() {
    let says = |text| parse_config(text, Path::new("config.pbtxt")).unwrap().says_max_batch;
    assert!(says("max_batch_size: 0") && says("name: 'm' max_batch_size:0"));
    assert!(!says("") && !says("# max_batch_size: 0\nname: 'max_batch_size: 0'"));
}

#[test]
fn a_configuration_as_people_write_them_is_read() {
    let config = parse(
        r#"
        # A comment.
        name: "resnet"
        platform: 'onnxruntime_onnx'
        max_batch_size : 16
        input [
          {
            name: "image"
            data_type: TYPE_FP32
            format: FORMAT_NCHW
            dims: [ 3, 224, 224 ]   # and another
          },
          { name: "scale", data_type: TYPE_FP16; dims: 1 }
        ]
        output: [ { name: "class" data_type: TYPE_STRING dims: [ -1 ] label_filename: "labels.txt" } ]
        version_policy: { specific: { versions: [ 1, 3 ] } }
        instance_group { count: 2 kind: KIND_GPU gpus: [ 0, 1 ] }
        dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 100 }
        parameters: { key: "slo_ms" value: { string_value: "25" } }
        parameters { key: "other" value { string_value: "a" "b" } }
        "#,
    )
    .unwrap();
    assert_eq!((config.name.as_str(), config.max_batch_size), ("resnet", 16));
    assert_eq!(config.input[0].dims, [3, 224, 224]);
    assert_eq!((config.input[1].data_type(), &config.input[1].dims[..]), (DataType::TypeFp16, &[1][..]));
    assert_eq!(config.output[0].label_filename, "labels.txt");
    let Some(model_version_policy::PolicyChoice::Specific(specific)) =
        config.version_policy.and_then(|policy| policy.policy_choice)
    else {
        panic!("no version policy")
    };
    assert_eq!(specific.versions, [1, 3]);
    let Some(model_config::SchedulingChoice::DynamicBatching(batching)) = config.scheduling_choice else {
        panic!("no dynamic batching")
    };
    assert_eq!(batching.preferred_batch_size, [4, 8]);
    assert_eq!(config.parameters["other"].string_value, "ab");
}

#[test]
fn an_empty_configuration_is_read() {
    assert_eq!(parse(""), Ok(ModelConfig::default()));
    assert_eq!(parse("# nothing\n"), Ok(ModelConfig::default()));
}

#[test]
fn errors_name_the_file_the_line_and_the_column() {
    assert_eq!(
        parse("name: \"m\"\n  max_batchsize: 4\n").unwrap_err(),
        "m/config.pbtxt: line 2, column 3: field 'max_batchsize' not found for message 'inference.ModelConfig'"
    );
    assert_eq!(
        parse("input {\n  data_type: TYPE_FP31\n}").unwrap_err(),
        "m/config.pbtxt: line 2, column 14: value 'TYPE_FP31' was not found for enum 'inference.DataType'"
    );
    assert_eq!(
        parse("name: \"\u{e9}\" ]").unwrap_err(),
        "m/config.pbtxt: line 1, column 11: expected a field name, but found ']'"
    );
    let cut = parse("name: \"m\"\ninput {").unwrap_err();
    assert!(cut.starts_with("m/config.pbtxt: line 2, column 8: "), "{cut}");
}
