use super::*;

#[test]
fn what_is_drawn_is_escaped_and_style_and_script_are_not() {
    let body = html! { p { "a < b" } };
    let page = styled_page(".a > b { top: 0; }", "<day>", "A & B", &html! { "lead" }, &body, "foot");
    assert!(page.starts_with("<!DOCTYPE html>"));
    assert!(page.contains("<title>&lt;day&gt; · Downbeat</title>") && page.contains("A &amp; B"), "{page}");
    assert!(page.contains("a &lt; b") && page.contains(".a > b { top: 0; }"));
    assert!(!page.contains("http://") && !page.contains("https://"), "a page refers to nothing else");
}

#[test]
fn tiles_say_whether_a_limit_is_kept() {
    assert_eq!(Mood::of_limit(0.01, 0.01), Mood::Good);
    assert_eq!(Mood::of_limit(0.02, 0.01), Mood::Bad);
    assert_eq!(Mood::of_limit(f64::NAN, 0.01), Mood::Neutral);
    let drawn = tiles(&[
        Tile::neutral("GPUs", "3", ""),
        Tile { mood: Mood::Bad, ..Tile::neutral("Late", "2 %", "") },
    ]);
    let drawn = drawn.into_string();
    assert!(drawn.contains("class=\"tile\"") && drawn.contains("class=\"tile bad\""), "{drawn}");
}

#[test]
fn one_panel_needs_no_tabs() {
    let panel = |text: &str| (text.to_owned(), html! { p { (text) } });
    assert_eq!(tabs("t", &[panel("one")]).into_string(), "<p>one</p>");
    assert_eq!(tabs("t", &[panel("one"), panel("two")]).into_string().matches("type=\"radio\"").count(), 2);
}
