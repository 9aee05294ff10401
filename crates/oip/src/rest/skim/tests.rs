use super::{TOKEN_BYTES, skim};

#[test]
fn the_content_of_tensors_costs_nothing_and_all_else_does() {
    let request = |data: &str| {
        format!(r#"{{"inputs":[{{"name":"x","datatype":"FP32","shape":[1], "data" : {data} }}],"id":"7"}}"#)
    };
    let small = skim(&request("[1]"));
    assert_eq!(skim(&request(&format!("[{}1]", "[1,2],".repeat(10_000)))), small);
    assert_eq!(skim(&request(r#"["]", "\"]", "a,b:c"]"#)), small);
    let long = request("[1]").replace("[1],", &format!("[{}1],", "1,".repeat(10_000)));
    assert_eq!(skim(&long), small + 10_000 * TOKEN_BYTES);
    let wordy = request("[1]").replace(r#""7""#, &format!(r#""{}""#, "7".repeat(10_000)));
    assert_eq!(skim(&wordy), small + 9_999);
}

#[test]
fn json_that_ends_too_early_is_skimmed_to_its_end() {
    let whole = r#"{"inputs":[{"data":["\"",[1,2]],"shape":[1]}],"a\"b":"c"}"#;
    for end in 0..whole.len() {
        assert!(skim(&whole[..end]) >= TOKEN_BYTES);
    }
}
