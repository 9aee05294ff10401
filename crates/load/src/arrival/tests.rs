use super::*;

fn process(text: &str) -> Arrival {
    text.parse::<ArrivalSpec>().unwrap().process
}

fn refusal(text: &str) -> String {
    text.parse::<ArrivalSpec>().unwrap_err().to_string()
}

#[test]
fn every_process_has_a_name() {
    assert!(matches!(process("poisson"), Arrival::Poisson));
    assert!(matches!(process("uniform"), Arrival::Uniform));
    assert!(matches!(process("gamma:0.25"), Arrival::Gamma { shape: 0.25 }));
    assert!(matches!(process("onoff:2,8,5"), Arrival::OnOff { factor: 5.0, .. }));
}

#[test]
fn what_is_no_process_is_refused_with_those_that_are() {
    assert!(refusal("bursty").contains("gamma:SHAPE"));
    assert!(refusal("poisson:3").contains("no settings"));
    assert!(refusal("gamma").contains("gamma:SHAPE"));
    assert!(refusal("gamma:0").contains("gamma:SHAPE"));
    assert!(refusal("onoff:1,2").contains("ON_S,OFF_S,FACTOR"));
    assert!(refusal("trace:").contains("trace:FILE"));
    assert!(refusal("trace:/nowhere/x.csv").contains("/nowhere/x.csv: cannot be read"));
}
