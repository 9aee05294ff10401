use super::*;

fn refusal(text: &str) -> String {
    text.parse::<ModelSpec>().unwrap_err().to_string()
}

#[test]
fn a_model_takes_what_it_does_not_say_from_the_rest() {
    let spec: ModelSpec = "bert:weight=3:slo_ms=2.5:priority=1".parse().unwrap();
    let rest = ModelSpec { slo: millis(50.0), timeout: millis(80.0), ..ModelSpec::default() };
    let model = spec.or(&rest);
    assert_eq!((model.name.as_str(), model.weight, model.rows), ("bert", 3.0, 1));
    assert_eq!(model.slo, Some(Duration::from_micros(2_500)));
    assert_eq!(model.timeout, Some(Duration::from_millis(80)));
    assert_eq!(model.priority, Some(1));
}

#[test]
fn what_makes_no_sense_is_refused_with_what_would() {
    assert!(refusal(":weight=1").contains("the name is missing"));
    assert!(refusal("m:weight").contains("not KEY=VALUE"));
    assert!(refusal("m:weight=0").contains("above 0"));
    assert!(refusal("m:weight=nan").contains("above 0"));
    assert!(refusal("m:slo_ms=-1").contains("milliseconds"));
    assert!(refusal("m:rows=0").contains("from 1"));
    assert!(refusal("m:color=red").contains("weight, slo_ms"));
}
