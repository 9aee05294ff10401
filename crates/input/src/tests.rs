use serde::Deserialize;

use super::*;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "what is read is not looked at")]
struct File {
    gpu: Spanned<String>,
    count: Option<Spanned<i64>>,
    rate_rps: Option<Spanned<f64>>,
    exclude: Option<Vec<String>>,
    service: Option<Vec<Service>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "what is read is not looked at")]
struct Service {
    model: String,
}

fn said(text: &str) -> String {
    let source: Source<'_, Mistake> = Source::new(text, Path::new("f.toml"));
    match source.parse::<File>() {
        Ok(file) => format!("{file:?}"),
        Err(mistake) => mistake.to_string(),
    }
}

#[test]
fn bad_files_are_told_by_file_line_and_key() {
    let table = [
        ("", "f.toml:1: gpu is missing"),
        ("gpu = \"a\"\ngpus = 1", "f.toml:2: unknown key `gpus`; did you mean `gpu`?"),
        (
            "gpu = \"a\"\nzzz = 1",
            "f.toml:2: unknown key `zzz`; known here: gpu, count, rate_rps, exclude, service",
        ),
        ("gpu = \"a\"\ngpu = \"b\"", "f.toml:2: gpu is given twice"),
        ("gpu = 3", "f.toml:1: gpu must be text in quotes (is 3)"),
        ("gpu = \"a\"\n\ncount = \"8\"", "f.toml:3: count must be a whole number (is \"8\")"),
        ("gpu = \"a\"\ncount = 1.5", "f.toml:2: count must be a whole number (is 1.5)"),
        ("gpu = \"a\"\nrate_rps = [1]", "f.toml:2: rate_rps must be a number (is a list)"),
        (
            "gpu = \"a\"\n[service]\nmodel = \"m\"",
            "f.toml:2: [service] is a list of tables; write [[service]]",
        ),
        ("gpu = \"a\"\n[[service]]\n", "f.toml:2: model is missing"),
        (
            "gpu = \"a\"\n[[service]]\nmodel = \"m\"\n[[service]]\nmodle = \"m\"",
            "f.toml:5: unknown key `modle`; did you mean `model`?",
        ),
        ("gpu = \"a\"\nexclude = [1]", "f.toml:2: what is listed here must be text in quotes (is 1)"),
    ];
    for (text, expected) in table {
        assert_eq!(said(text), expected, "{text}");
    }
}

#[test]
fn text_that_is_no_toml_is_told_by_its_line() {
    for text in ["gpu = \"a\"\ncount == 3", "gpu = \"a\"\ncount = ", "gpu = \"a\"\n\u{0}"] {
        let said = said(text);
        assert!(said.starts_with("f.toml:2: ") && !said.contains('\n'), "{said}");
    }
}

#[test]
fn numbers_out_of_range_are_told_with_what_they_are() {
    let numbers = |text: &str| -> Result<(f64, u32), Mistake> {
        let source: Source<'_, Mistake> = Source::new(text, Path::new("f.toml"));
        let file: File = source.parse()?;
        let rate = file
            .rate_rps
            .map_or(Ok(1.0), |rate| source.positive("service \"a\": ", "rate_rps", &rate, 1e6))?;
        let count = file.count.map_or(Ok(1), |count| source.whole("", "count", &count, 1, 64))?;
        Ok((rate, count))
    };
    assert_eq!(numbers("gpu = \"a\"\nrate_rps = 2.5\ncount = 64").unwrap(), (2.5, 64));
    let table = [
        ("rate_rps = 0.0", "f.toml:2: service \"a\": rate_rps must be a number above 0 (is 0)"),
        ("rate_rps = -1.0", "f.toml:2: service \"a\": rate_rps must be a number above 0 (is -1)"),
        ("rate_rps = nan", "f.toml:2: service \"a\": rate_rps must be a number above 0 (is NaN)"),
        ("rate_rps = inf", "f.toml:2: service \"a\": rate_rps must be at most 1000000 (is inf)"),
        ("count = 0", "f.toml:2: count must be a whole number from 1 to 64 (is 0)"),
        (
            "count = -9223372036854775808",
            "f.toml:2: count must be a whole number from 1 to 64 (is -9223372036854775808)",
        ),
        ("count = 65", "f.toml:2: count must be a whole number from 1 to 64 (is 65)"),
    ];
    for (line, expected) in table {
        assert_eq!(numbers(&format!("gpu = \"a\"\n{line}")).unwrap_err().to_string(), expected);
    }
}

#[test]
fn zero_is_a_number_where_nothing_is_an_answer() {
    let source: Source<'_, Mistake> = Source::new("gpu = \"a\"\nrate_rps = 0", Path::new("f.toml"));
    let rate = source.parse::<File>().unwrap().rate_rps.unwrap();
    assert_eq!(source.not_negative("", "rate_rps", &rate, 1.0), Ok(0.0));
    assert!(source.positive("", "rate_rps", &rate, 1.0).is_err());
}

#[test]
fn long_lists_of_names_are_counted() {
    let names: Vec<String> = (0..100).map(|number| format!("model-{number}")).collect();
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(suggestion("zzz", &known), "; 100 are known");
    assert_eq!(suggestion("model-77x", &known), "; did you mean `model-77`?");
    assert_eq!(suggestion("zzz", &[]), "");
}

#[test]
fn a_place_beyond_the_text_is_its_last_line() {
    let source: Source<'_, Mistake> = Source::new("a\nb", Path::new("f"));
    assert_eq!(source.invalid(Some(99..100), "ends").to_string(), "f:2: ends");
    assert_eq!(source.invalid(None, "two\nlines").to_string(), "f: two lines");
}
