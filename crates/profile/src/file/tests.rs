use proptest::prelude::*;

use super::*;

const HEADER: &str = "model,slice,batch,latency_ms\n";

fn parse(text: &str) -> Result<ProfileFile, ProfileFileError> {
    ProfileFile::parse(text.as_bytes(), "x.csv")
}

fn error(bytes: impl AsRef<[u8]>) -> String {
    ProfileFile::parse(bytes.as_ref(), "x.csv").unwrap_err().to_string()
}

/// The error of a good header, a good row on line 2 and `row` on line 3.
fn row_error(row: impl AsRef<[u8]>) -> String {
    error([HEADER.as_bytes(), b"m,1g,1,1.0\n", row.as_ref(), b"\n"].concat())
}

fn classes(file: &ProfileFile) -> Vec<&str> {
    file.classes().map(DeviceClass::as_str).collect()
}

mod the_measured_file {
    use super::*;
    use crate::Fit;

    fn h200() -> ProfileFile {
        ProfileFile::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../profiles/h200.csv")).unwrap()
    }

    #[test]
    fn has_54_models_on_5_classes_at_7_sizes() {
        let file = h200();
        assert_eq!(file.models().len(), 54);
        assert_eq!(classes(&file), ["h200/1g", "h200/2g", "h200/3g", "h200/4g", "h200/7g"]);
        for model in file.models() {
            for class in file.classes() {
                let points = file.points(model, class.as_str()).unwrap();
                let sizes: Vec<_> = points.iter().map(|point| point.0).collect();
                assert_eq!(sizes, [1, 2, 4, 8, 16, 32, 64], "{model} on {class}");
            }
        }
    }

    #[test]
    fn gives_a_profile_and_a_fit_of_everything_it_has() {
        let file = h200();
        for model in file.models() {
            for class in file.classes().map(DeviceClass::as_str) {
                let profile = file.profile(model, class, Some(128), Beyond::Extrapolate).unwrap();
                assert_eq!(profile.max_batch(), 128);
                let points = file.points(model, class).unwrap();
                for &(b, latency_ms) in points {
                    assert_eq!(profile.latency(b), crate::Span::from_millis_f64(latency_ms));
                }
                let fit = Fit::of(points).unwrap();
                assert!(LatencyProfile::linear(fit.alpha_ms, fit.beta_ms, 64).is_ok());
                assert!(fit.max_relative_error < 1.0, "{model} on {class}: {fit:?}");
            }
        }
    }

    #[test]
    fn keeps_what_else_was_measured() {
        let file = h200();
        let first = file.measurements("alexnet", "1g").unwrap()[0];
        assert_eq!((first.batch, first.latency_ms, first.p99_ms), (1, 0.3103, Some(0.315)));
        assert_eq!((first.sms, first.weights_mib, first.peak_mib), (Some(16), Some(116.5), Some(183.8)));
    }
}

#[test]
fn columns_come_in_any_order_among_comments_blank_lines_and_columns_of_no_concern() {
    let text = "\u{feff}# measured on a Tuesday\r\n\r\nnote, latency_ms ,batch,slice,model\r\n\
                # the large one first\n\"a, b\",2.5,2,1g,m\n   \n,1.5, 1 ,1g,m";
    let file = parse(text).unwrap();
    assert_eq!(file.points("m", "x/1g"), Some([(1, 1.5), (2, 2.5)].as_slice()));
    let first = file.measurements("m", "1g").unwrap()[0];
    assert_eq!((first.p99_ms, first.sms, first.weights_mib, first.peak_mib), (None, None, None, None));
}

#[test]
fn a_device_column_lets_one_file_carry_several_devices() {
    let file =
        parse("device,model,slice,batch,latency_ms\nh200,m,1g,1,1\na100,m,1g,1,2\nxeon,m,,1,9\n").unwrap();
    assert_eq!(classes(&file), ["a100/1g", "h200/1g", "xeon"]);
    assert_eq!(file.points("m", "h200/1g"), Some([(1, 1.0)].as_slice()));
    assert_eq!(file.points("m", "xeon"), Some([(1, 9.0)].as_slice()));
    assert_eq!(file.points("m", "1g"), None, "which of the two is not said");
    let ambiguous = file.profile("m", "1g", None, Beyond::Refuse).unwrap_err();
    assert_eq!(
        ambiguous.to_string(),
        r#"x.csv has the slice "1g" of several devices; name one: a100/1g, h200/1g"#
    );
}

#[test]
fn without_a_device_column_the_file_must_be_named_after_the_device() {
    let text = "# comment\nmodel,slice,batch,latency_ms\nm,1g,1,1\n";
    let refused = ProfileFile::parse(text.as_bytes(), "my profiles.csv").unwrap_err();
    assert!(refused.to_string().starts_with("my profiles.csv:2: there is no device column"), "{refused}");
    assert!(ProfileFile::parse(text.as_bytes(), "").is_err());
}

#[test]
fn without_a_max_batch_the_profile_ends_at_the_largest_measured_size() {
    let file = parse(&format!("{HEADER}m,1g,1,1\nm,1g,8,8\n")).unwrap();
    assert_eq!(file.profile("m", "1g", None, Beyond::Refuse).unwrap().max_batch(), 8);
    let refused = file.profile("m", "1g", Some(9), Beyond::Refuse).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "x.csv: m on x/1g: a batch of 9 is asked for, but the largest measured one is 8"
    );
}

#[test]
fn an_unknown_name_is_answered_with_those_it_may_have_meant() {
    let file = parse(&format!("{HEADER}resnet50,3g,1,1\nresnet152,3g,1,1\nbert_base,7g,1,1\n")).unwrap();
    let answer = |model, class| file.profile(model, class, None, Beyond::Refuse).unwrap_err().to_string();
    assert_eq!(
        answer("ResNet5", "3g"),
        r#"x.csv has no model "ResNet5"; did you mean resnet50 or resnet152?"#
    );
    assert_eq!(answer("yolo", "3g"), r#"x.csv has no model "yolo"; it has bert_base, resnet152, resnet50"#);
    assert_eq!(answer("bert_base", "3g"), "x.csv has bert_base on x/7g, not on x/3g");
    assert_eq!(answer("resnet50", "3"), r#"x.csv has no device class or slice "3"; did you mean x/3g?"#);
    assert_eq!(answer("resnet50", ""), r#"x.csv has no device class or slice ""; it has x/3g, x/7g"#);
}

#[test]
fn a_long_list_of_names_is_cut() {
    let rows: String = (10..30).map(|i| format!("m{i},1g,1,1\n")).collect();
    let file = parse(&format!("{HEADER}{rows}")).unwrap();
    let answer = file.profile("zzz", "1g", None, Beyond::Refuse).unwrap_err().to_string();
    assert!(answer.ends_with("m18, m19 and 10 more"), "{answer}");
}

#[test]
fn a_bad_cell_is_named_by_file_line_and_column() {
    let not_positive = "is not a finite number above 0";
    for bad in ["-3", "0", "-0.0", "NaN", "inf", "1e999", "", "3 ms"] {
        assert_eq!(
            row_error(format!("m,1g,2,{bad}")),
            format!("x.csv:3: column latency_ms (4): {bad:?} {not_positive}")
        );
    }
    for bad in ["0", "-1", "1.5", "two", "", "65537", "99999999999999999999"] {
        assert_eq!(
            row_error(format!("m,1g,{bad},1")),
            format!("x.csv:3: column batch (3): {bad:?} is not a whole number from 1 to 65536")
        );
    }
    assert_eq!(row_error(" ,1g,1,1"), r#"x.csv:3: column model (1): "" is not a model's name"#);
    assert!(
        row_error("m,1 g,1,1").starts_with(r#"x.csv:3: column slice (2): "x/1 g" is not a device class"#)
    );
    assert_eq!(
        error("model,slice,batch,latency_ms,peak_mib,sms\nm,1g,1,1,,\nm,1g,2,1,-1,\n"),
        r#"x.csv:3: column peak_mib (5): "-1" is not a finite number, 0 or more"#
    );
    assert_eq!(
        error("model,slice,batch,latency_ms,peak_mib,sms\nm,1g,1,1,,0\n"),
        r#"x.csv:2: column sms (6): "0" is not a whole number, 1 or more"#
    );
    let no_device = error("device,model,slice,batch,latency_ms\n,m,1g,1,1\n");
    assert!(no_device.starts_with(r#"x.csv:2: column device (1): "" is not a device class"#), "{no_device}");
}

#[test]
fn the_place_of_an_error_can_be_asked_for() {
    let error = parse(&format!("{HEADER}m,1g,1,-3\n")).unwrap_err();
    assert_eq!((error.file(), error.line()), ("x.csv", Some(2)));
    assert_eq!(error.column(), Some(&Column { name: Some("latency_ms".to_owned()), number: Some(4) }));
    assert!(matches!(error.problem(), Problem::BadCell { wanted: Wanted::Positive, .. }));
}

#[test]
fn lines_are_counted_through_comments_and_blank_lines_of_either_line_ending() {
    for end in ["\n", "\r\n"] {
        let lines =
            ["# one", "", "model,slice,batch,latency_ms", "# four", "", "  ", "m,1g,1,1", "", "m,1g,2,x"];
        assert!(error(lines.join(end)).starts_with("x.csv:9: column latency_ms (4)"));
    }
}

#[test]
fn a_row_with_too_few_or_too_many_cells_is_named_at_the_first_one() {
    assert_eq!(row_error("m,1g,2"), "x.csv:3: column latency_ms (4): the row has 3 cells, the header has 4");
    assert_eq!(row_error("m,1g,2,1,1"), "x.csv:3: column 5: the row has 5 cells, the header has 4");
}

#[test]
fn a_second_measurement_of_the_same_names_both_lines() {
    assert_eq!(
        row_error("m,2g,1,2\nm,1g,1,1.0"),
        "x.csv:4: column batch (3): a batch of 1 for m on x/1g was already given on line 2"
    );
}

#[test]
fn a_cell_that_is_not_utf8_is_named() {
    assert_eq!(row_error(b"m\xff,1g,2,1"), "x.csv:3: column model (1): the cell is not valid UTF-8");
    assert_eq!(error(b"model,sl\xffce,batch\n"), "x.csv:1: column 2: the cell is not valid UTF-8");
}

#[test]
fn a_quote_left_open_is_named_where_it_opens() {
    let swallowed = row_error("m,\"1g,2,1\nm,1g,4,1");
    assert!(swallowed.starts_with("x.csv:3: column slice (2): the cell goes on past the end"), "{swallowed}");
}

#[test]
fn a_header_that_lacks_or_repeats_a_column_is_refused() {
    assert_eq!(
        error("# c\nmodel,slice,batch,latency\nm,1g,1,1\n"),
        r#"x.csv:2: column latency_ms: is missing; the header has "model,slice,batch,latency""#
    );
    assert_eq!(
        error("model,slice,batch,latency_ms,batch\nm,1g,1,1,1\n"),
        "x.csv:1: column batch (5): has the same name as column 3"
    );
}

#[test]
fn a_file_without_measurements_is_refused() {
    for empty in ["", "\n\n", "# nothing\n", "\u{feff}", "  "] {
        assert_eq!(error(empty), "x.csv:1: a header is missing, such as model,slice,batch,latency_ms");
    }
    assert_eq!(error(HEADER), "x.csv:1: no measurements follow the header");
    assert_eq!(error(format!("{HEADER}# none\n\n")), "x.csv:1: no measurements follow the header");
}

#[test]
fn a_missing_file_and_a_directory_are_named() {
    let here = env!("CARGO_MANIFEST_DIR");
    for path in [format!("{here}/none.csv"), here.to_owned()] {
        let refused = ProfileFile::read(&path).unwrap_err();
        assert!(refused.to_string().starts_with(&format!("{path}: cannot be read: ")), "{refused}");
        assert_eq!(refused.line(), None);
    }
}

#[test]
fn an_endless_cell_is_not_quoted_whole() {
    assert!(row_error(format!("m,1g,2,{}", "é".repeat(10_000))).len() < 400);
    assert!(error("é".repeat(10_000)).len() < 400);
}

mod written {
    use super::*;

    fn row(model: &str, class: &str, measurement: Measurement) -> ProfileRow {
        ProfileRow { model: model.to_owned(), class: class.parse().unwrap(), measurement }
    }

    fn bytes(file: &ProfileFile) -> Vec<u8> {
        let mut bytes = Vec::new();
        file.write(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn the_measured_file_reads_back_whole() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../profiles/h200.csv");
        let file = ProfileFile::read(path).unwrap();
        let again = ProfileFile::parse(&bytes(&file), "another-name.csv").unwrap();
        assert_eq!(file.rows().count(), 54 * 5 * 7);
        assert!(file.rows().eq(again.rows()));
    }

    #[test]
    fn has_all_columns_and_leaves_empty_what_is_not_known() {
        let full = Measurement {
            p99_ms: Some(0.3),
            sms: Some(16),
            weights_mib: Some(116.5),
            peak_mib: Some(0.0),
            ..Measurement::new(8, 0.25)
        };
        let rows = [row("m", "h200/1g", full), row("m", "cpu", Measurement::new(1, 12.0))];
        let text = String::from_utf8(bytes(&ProfileFile::from_rows(rows, "x.csv").unwrap())).unwrap();
        assert_eq!(
            text,
            "model,device,slice,sms,batch,latency_ms,p99_ms,weights_mib,peak_mib\n\
             m,cpu,,,1,12,,,\n\
             m,h200,1g,16,8,0.25,0.3,116.5,0\n"
        );
    }

    #[test]
    fn names_that_need_quotes_get_them() {
        let names = ["#1", "a,b", "say \"hi\"", "ü"];
        let rows = names.map(|name| row(name, "cpu", Measurement::new(1, 1.0)));
        let file = ProfileFile::from_rows(rows, "x.csv").unwrap();
        let again = ProfileFile::parse(&bytes(&file), "x.csv").unwrap();
        assert!(again.models().eq(names));
    }

    #[test]
    fn rows_that_could_not_be_read_back_are_refused_with_their_line() {
        let refused =
            |rows: &[ProfileRow]| ProfileFile::from_rows(rows.to_vec(), "x.csv").unwrap_err().to_string();
        let good = row("m", "cpu", Measurement::new(1, 1.0));
        assert_eq!(
            refused(&[good.clone(), row("m", "cpu", Measurement::new(2, f64::NAN))]),
            r#"x.csv:3: column latency_ms (6): "NaN" is not a finite number above 0"#
        );
        assert_eq!(
            refused(&[good.clone(), good]),
            "x.csv:3: column batch (5): a batch of 1 for m on cpu was already given on line 2"
        );
        assert_eq!(refused(&[]), "x.csv:1: no measurements follow the header");
    }
}

/// Every promise about a file that was accepted.
fn check(file: &ProfileFile) -> Result<(), TestCaseError> {
    prop_assert!(file.models().len() > 0 && file.classes().len() > 0);
    for model in file.models() {
        let mut measured = 0;
        for class in file.classes() {
            let Some(points) = file.points(model, class.as_str()) else { continue };
            measured += 1;
            prop_assert!(!points.is_empty() && points.is_sorted_by(|a, b| a.0 < b.0));
            let profile = file.profile(model, class.as_str(), None, Beyond::Refuse);
            prop_assert_eq!(profile.map(|profile| profile.max_batch()), Ok(points[points.len() - 1].0));
        }
        prop_assert!(measured > 0);
    }
    Ok(())
}

/// A row with odd names and numbers.
fn any_row() -> impl Strategy<Value = ProfileRow> {
    let number = || prop_oneof![8 => 0.0..1e6f64, 1 => any::<f64>()];
    let class = proptest::sample::select(vec!["h200", "h200/1g", "h200/7g", "a.b-c_d+e/x"]);
    let numbers = (0..70_000u32, number(), proptest::option::of((number(), 1..200u32, number(), number())));
    ("[a-c#\", \n\u{e9}]{1,3}", class, numbers).prop_map(|(model, class, (batch, latency_ms, more))| {
        let mut measurement = Measurement::new(batch, latency_ms);
        if let Some((p99_ms, sms, weights_mib, peak_mib)) = more {
            measurement.p99_ms = Some(p99_ms);
            measurement.sms = Some(sms);
            measurement.weights_mib = Some(weights_mib);
            measurement.peak_mib = Some(peak_mib);
        }
        ProfileRow { model, class: class.parse().unwrap(), measurement }
    })
}

/// Bytes that are mostly a profile file: whole cells and separators, some of them odd.
fn nearly_csv() -> impl Strategy<Value = Vec<u8>> {
    let pieces: [&[u8]; 18] = [
        b"model,slice,batch,latency_ms\n",
        b"m,1g,1,1.5\n",
        b"m,2g,4,2\n",
        b"n,,8,3e2\n",
        b"\n",
        b"\r\n",
        b"\r",
        b"#",
        b"\"",
        b"\"\"",
        b",",
        b" ",
        b"-",
        b"1",
        b"nan",
        b"\xff",
        b"\xef\xbb\xbf",
        b"device,",
    ];
    proptest::collection::vec(proptest::sample::select(pieces.to_vec()), 0..12)
        .prop_map(|pieces| pieces.concat())
}

/// A good file with a few bytes changed.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let damage = proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..4);
    damage.prop_map(|damage| {
        let mut bytes = format!("{HEADER}m,1g,1,1.5\n# c\nm,1g,2,2.5\nn,2g,16,7\n").into_bytes();
        for (index, byte) in damage {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_bytes_are_a_checked_file_or_one_error_with_its_place(
        bytes in prop_oneof![proptest::collection::vec(any::<u8>(), 0..200), nearly_csv(), damaged()],
    ) {
        match ProfileFile::parse(&bytes, "h200.csv") {
            Ok(file) => check(&file)?,
            Err(error) => {
                let lines = bytes.iter().filter(|&&byte| byte == b'\n').count() as u64 + 1;
                prop_assert!(error.line().is_some_and(|line| (1..=lines).contains(&line)), "{}", error);
                let message = error.to_string();
                prop_assert!(message.starts_with("h200.csv:") && !message.contains('\n'), "{:?}", message);
            }
        }
    }

    #[test]
    fn what_is_written_is_what_is_read_in_whatever_order(
        rows in proptest::collection::btree_map((0..3u8, 1..4u8, 1..100u32), 0.001..1e4, 1..20)
            .prop_map(|rows| rows.into_iter().collect::<Vec<_>>())
            .prop_shuffle(),
    ) {
        let lines: String =
            rows.iter().map(|((m, s, b), latency_ms)| format!("m{m},{s}g,{b},{latency_ms}\n")).collect();
        let file = parse(&format!("{HEADER}{lines}")).unwrap();
        check(&file)?;
        for ((m, s, b), latency_ms) in &rows {
            let points = file.points(&format!("m{m}"), &format!("{s}g")).unwrap();
            prop_assert!(points.contains(&(*b, *latency_ms)));
        }
    }

    #[test]
    fn any_rows_are_refused_or_read_back_as_they_were(
        rows in proptest::collection::vec(any_row(), 1..8),
    ) {
        if let Ok(file) = ProfileFile::from_rows(rows.clone(), "x.csv") {
            check(&file)?;
            let mut bytes = Vec::new();
            file.write(&mut bytes).unwrap();
            let again = ProfileFile::parse(&bytes, "y.csv").unwrap();
            prop_assert!(file.rows().eq(again.rows()));
            prop_assert_eq!(file.rows().count(), rows.len());
            for ProfileRow { model, class, measurement } in rows {
                let read = ProfileRow { model: model.trim().to_owned(), class, measurement };
                prop_assert!(file.rows().any(|row| row == read), "{:?}", read);
            }
        }
    }
}
