use super::*;

fn with(name: &str, value: Parameter) -> InferRequest {
    InferRequest { parameters: [(name.to_owned(), value)].into(), ..InferRequest::default() }
}

#[test]
fn the_timeout_is_in_microseconds_and_zero_means_none() {
    assert_eq!(with("timeout", Parameter::Int(1500)).timeout(), Ok(Some(Duration::from_micros(1500))));
    assert_eq!(with("timeout", Parameter::Uint(0)).timeout(), Ok(None));
    assert_eq!(InferRequest::default().timeout(), Ok(None));
}

#[test]
fn priority_may_be_signed_or_unsigned() {
    assert_eq!(with("priority", Parameter::Int(2)).priority(), Ok(2));
    assert_eq!(with("priority", Parameter::Uint(u64::MAX)).priority(), Ok(u64::MAX));
}

#[test]
fn parameters_of_the_wrong_kind_are_refused() {
    for (name, value) in [
        ("timeout", Parameter::Int(-1)),
        ("timeout", Parameter::String("5".into())),
        ("priority", Parameter::Double(1.0)),
    ] {
        let failure = with(name, value).check().unwrap_err();
        assert_eq!(failure.message, format!("parameter '{name}' must be an integer, and not negative"));
    }
}

#[test]
fn parameters_of_triton_and_of_sequences_are_ignored() {
    assert_eq!(with("triton_enable_empty_final_response", Parameter::Bool(true)).check(), Ok(()));
    assert_eq!(with("sequence_id", Parameter::Int(7)).check(), Ok(()));
}

#[test]
fn an_output_asked_for_twice_is_refused() {
    let output = RequestedOutput { name: "y".into(), classes: 0 };
    let request = InferRequest { outputs: vec![output.clone(), output], ..InferRequest::default() };
    assert_eq!(request.check().unwrap_err().message, "output 'y' is there twice");
}

#[test]
fn a_version_is_a_number() {
    let version = |version: &str| InferRequest { version: version.into(), ..InferRequest::default() }.check();
    assert_eq!(version(""), Ok(()));
    assert_eq!(version("12"), Ok(()));
    assert_eq!(version("newest").unwrap_err().reason, Reason::Invalid);
    assert_eq!(version("-1").unwrap_err().reason, Reason::Invalid);
}
