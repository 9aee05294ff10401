use std::fs;

use super::*;

fn touch(directory: &Path, path: &str) -> PathBuf {
    let path = directory.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "").unwrap();
    path
}

#[test]
fn the_setting_comes_before_the_environment_and_the_environment_before_set_up() {
    let directory = tempfile::tempdir().unwrap();
    let setting = touch(directory.path(), "setting.so");
    let environment = touch(directory.path(), "environment.so");
    let set_up = touch(directory.path(), &format!(".tools/onnxruntime/{}", library_name()));
    let mut search = Search {
        setting: Some(setting.clone()),
        environment: Some(environment.clone()),
        directories: vec![directory.path().join("target"), directory.path().to_owned()],
    };
    assert_eq!(search.find(), Ok(setting));
    search.setting = None;
    assert_eq!(search.find(), Ok(environment));
    search.environment = None;
    assert_eq!(search.find(), Ok(set_up));
}

#[test]
fn a_library_beside_the_executable_needs_no_set_up() {
    let directory = tempfile::tempdir().unwrap();
    let beside = touch(directory.path(), library_name());
    let search = Search { directories: vec![directory.path().to_owned()], ..Search::default() };
    assert_eq!(search.find(), Ok(beside));
}

#[test]
fn a_named_library_that_is_not_there_is_an_error_even_where_set_up_has_one() {
    let directory = tempfile::tempdir().unwrap();
    touch(directory.path(), &format!(".tools/onnxruntime/{}", library_name()));
    let search = Search {
        environment: Some("/nowhere/libonnxruntime.so".into()),
        directories: vec![directory.path().to_owned()],
        ..Search::default()
    };
    assert_eq!(
        search.find().unwrap_err().to_string(),
        "no ONNX Runtime library at /nowhere/libonnxruntime.so, which ORT_DYLIB_PATH names; \
         name the file libonnxruntime.so itself"
    );
}

#[test]
fn without_a_library_the_error_says_how_to_get_one() {
    let error = Search::default().find().unwrap_err().to_string();
    assert!(error.contains("make setup-runtime") && error.contains("ORT_DYLIB_PATH"), "{error}");
}
