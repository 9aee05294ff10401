use super::*;

#[test]
fn a_list_after_a_name_gets_a_colon() {
    let cases = [
        ("input [ { dims: [ 1 ] } ]", "input :[ { dims: [ 1 ] } ]"),
        ("input[{}]", "input:[{}]"),
        ("input # why\n  [ ]", "input # why\n  :[ ]"),
        ("a: 1 b: \"x\" c: [ 2 ]", "a: 1 b: \"x\" c: [ 2 ]"),
    ];
    for (source, text) in cases {
        assert_eq!(Explicit::new(source).text, text);
    }
}

#[test]
fn strings_and_comments_stay_as_they_are() {
    for source in [
        "a: \"input [ \\\" input [\"",
        "a: 'input [ \" it'",
        "# input [",
        "a: \"\\\\\" # input [\nb: 2",
        "a: \"open [",
        "a: 5 [",
    ] {
        assert_eq!(Explicit::new(source).text, source);
    }
}

#[test]
fn places_in_the_new_text_lead_back_to_the_old() {
    let source = "a [ ] b [ ] c";
    let explicit = Explicit::new(source);
    for (index, c) in explicit.text.char_indices().filter(|&(_, c)| c != ':') {
        assert_eq!(source[explicit.original(index)..].chars().next(), Some(c));
    }
}
