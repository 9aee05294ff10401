//! What must be refused with a sentence that helps.

use proptest::prelude::*;

use super::*;

#[test]
fn shapes_that_make_no_sense() {
    assert!(refusal(one_input("FP32", "[-1]", "[1]")).contains("negative dimension"));
    assert!(refusal(one_input("FP32", "[4611686018427387904,4]", "[1]")).contains("no memory can hold"));
    assert!(refusal(one_input("FP32", "[99999999999999999999]", "[1]")).contains("line 1"));
    assert!(refusal(one_input("FP32", "[1.5]", "[1]")).contains("1.5"));
    assert!(refusal(one_input("FP32", "[2,2]", "[1,2,3]")).contains("needs 4 elements, but 'data' has 3"));
    assert!(refusal(one_input("FP32", "[1000000000000]", "[1]")).contains("but 'data' has 1"));
}

#[test]
fn values_that_are_not_of_the_type() {
    for (datatype, value) in [
        ("UINT8", "256"),
        ("UINT8", "-1"),
        ("INT8", "128"),
        ("INT64", "9223372036854775808"),
        ("INT32", "1.0"),
        ("INT32", "\"1\""),
        ("INT32", "null"),
        ("INT32", "{}"),
        ("INT32", "{\"a\":[1,2]}"),
        ("FP32", "1e39"),
        ("FP64", "1e400"),
        ("FP32", "true"),
        ("FP32", "\"inf\""),
        ("BOOL", "1"),
        ("BYTES", "1"),
        ("BYTES", r#""\ud800""#),
    ] {
        let message = refusal(one_input(datatype, "[1]", &format!("[{value}]")));
        assert!(
            message.starts_with(&format!("input 'x': element 0 is not a value of type {datatype}")),
            "{message}"
        );
    }
}

#[test]
fn nan_and_infinity_get_advice() {
    for value in ["NaN", "Infinity", "-Infinity", "[NaN"] {
        let message = refusal(one_input("FP32", "[1]", &format!("[{value}]")));
        assert!(message.contains("JSON has no NaN"), "{message}");
    }
}

#[test]
fn deep_nesting_in_any_place() {
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(refusal(one_input("FP32", "[1]", &deep)).contains("nested deeper"));
    assert!(refusal(json(&format!(r#"{{"inputs":{deep}}}"#))).contains("wrong"));
    assert!(refusal(json(&format!(r#"{{"inputs":[],"parameters":{{"p":{deep}}}}}"#))).contains("wrong"));
    assert!(refusal(json(&"[".repeat(100_000))).contains("JSON object"));
    assert!(refusal(json(&r#"{"inputs":"#.repeat(100_000))).contains("wrong"));
}

#[test]
fn lengths_that_disagree() {
    let header =
        r#"{"inputs":[{"name":"x","shape":[2],"datatype":"UINT8","parameters":{"binary_data_size":2}}]}"#;
    assert!(refusal(with_binary(header, &[1])).contains("2 bytes of binary data, but only 1 follow"));
    assert!(refusal(with_binary(header, &[1, 2, 3])).contains("1 bytes follow the last tensor"));
    assert!(
        refusal(with_binary(&header.replace("[2]", "[3]"), &[1, 2])).contains("needs 3 bytes, but has 2")
    );
    assert!(refusal(with_binary(&header.replace(":2}", ":-2}"), &[1, 2])).contains("not negative"));
    assert!(refusal(with_binary(&header.replace(":2}", ":18446744073709551615}"), &[])).contains("follow"));
    let body = Bytes::copy_from_slice(header.as_bytes());
    assert!(refusal(decode("m", "", Some(header.len() + 1), &body)).contains("the body has only"));
}

#[test]
fn contents_that_are_missing_or_there_twice() {
    let bare = r#"{"inputs":[{"name":"x","shape":[1],"datatype":"UINT8"}]}"#;
    assert!(refusal(json(bare)).contains("has no content"));
    let both = r#"{"inputs":[{"name":"x","shape":[1],"datatype":"UINT8","data":[1],"parameters":{"binary_data_size":1}}]}"#;
    assert!(refusal(json(both)).contains("both 'data' and 'binary_data_size'"));
    let twice = r#"{"inputs":[{"name":"x","shape":[0],"datatype":"UINT8","data":[]},{"name":"x","shape":[0],"datatype":"UINT8","data":[]}]}"#;
    assert!(refusal(json(twice)).contains("input 'x' is there twice"));
}

#[test]
fn json_that_is_not_a_request() {
    assert!(refusal(json("")).contains("wrong"));
    assert!(refusal(json("{}")).contains("missing field `inputs`"));
    assert!(refusal(json(r#"{"inputs":[]} trailing"#)).contains("trailing"));
    assert!(
        refusal(json(r#"{"inputs":[{"name":"x","shape":[1],"datatype":"FLOAT","data":[1]}]}"#))
            .contains("'FLOAT'")
    );
    assert!(
        refusal(json(r#"{"inputs":[],"parameters":{"p":[1]}}"#))
            .contains("a truth value, a number or a string")
    );
    assert!(refusal(one_input("FP32", "[1]", "1")).contains("must be an array"));
    let invalid_utf8 = Bytes::from_static(b"{\"inputs\":[],\"id\":\"\xff\"}");
    assert!(refusal(decode("m", "", None, &invalid_utf8)).contains("not UTF-8 from byte 19"));
}

proptest! {
    #[test]
    fn arbitrary_bodies_never_panic(
        body in prop::collection::vec(any::<u8>(), 0..300),
        header_length in prop::option::of(0usize..400),
    ) {
        let _ = decode("m", "", header_length, &body.into());
    }

    #[test]
    fn arbitrary_inputs_never_panic(
        datatype in prop::sample::select(DataType::ALL.to_vec()),
        shape in r"\[(-?[0-9]{1,20}(,[0-9]{1,3}){0,3})?\]",
        data in r#"[\[\],0-9eE.\-+ntf"\\u{}: ]{0,40}"#,
    ) {
        let _ = one_input(datatype.name(), &shape, &data);
        let _ = one_input(datatype.name(), &shape, &format!("[{data}]"));
    }
}

#[test]
fn an_array_is_no_request_even_where_its_elements_would_do() {
    assert!(refusal(json(r#" ["id",{},[]]"#)).contains("JSON object"));
}

#[test]
fn no_json_is_read_without_room_for_what_it_says() {
    let ones = vec!["1"; 10_000].join(",");
    let texts = vec!["\"\""; 10_000].join(",");
    let names: String = (0..10_000).map(|name| format!("\"{name}\":1,")).collect();
    let input = r#""name":"x","datatype":"FP64","shape":[10000]"#;
    for (body, least) in [
        (format!(r#"{{"inputs":[{{{input},"data":[{ones}]}}]}}"#), 80_000),
        (
            format!(r#"{{"inputs":[{{"name":"x","datatype":"BYTES","shape":[10000],"data":[{texts}]}}]}}"#),
            40_000,
        ),
        (format!(r#"{{"inputs":[{{"name":"x","datatype":"FP64","shape":[{ones}],"data":[1]}}]}}"#), 80_000),
        (format!(r#"{{"inputs":[],"parameters":{{{names}"z":1}}}}"#), 10_000 * 100),
    ] {
        let body = Bytes::from(body);
        let mut asked = 0;
        decode_within("m", "", None, &body, &mut |more| {
            asked += more;
            Ok(())
        })
        .unwrap();
        assert!(asked >= least, "{asked} for {}", String::from_utf8_lossy(&body[..80]));
        let mut room = asked - 1;
        let refused = decode_within("m", "", None, &body, &mut |more| {
            room = room.checked_sub(more).ok_or_else(|| Failure::new(Reason::Overloaded, "no room"))?;
            Ok(())
        });
        assert_eq!(refused.unwrap_err().reason, Reason::Overloaded);
    }
}
