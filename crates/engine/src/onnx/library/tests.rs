use super::*;

#[test]
fn a_named_library_that_is_not_there_is_told_with_who_named_it() {
    assert_eq!(
        find(Some(Path::new("/nowhere/libonnxruntime.so"))).unwrap_err().to_string(),
        format!(
            "no ONNX Runtime library at /nowhere/libonnxruntime.so, which the settings name; name the file {} itself",
            LIBRARY.file_name()
        )
    );
}

#[test]
fn without_a_library_the_error_says_how_to_get_one() {
    let error = told(Ok(None)).unwrap_err().to_string();
    assert!(error.contains("make setup-runtime") && error.contains("ORT_DYLIB_PATH"), "{error}");
}
