use std::fs;

use super::*;

const LIBRARY: Library =
    Library { name: "sums", variable: "DOWNBEAT_NO_SUCH_VARIABLE", setup_directory: ".tools/sums" };

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
    let set_up = touch(directory.path(), &format!(".tools/sums/{}", LIBRARY.file_name()));
    let directories = [directory.path().join("target"), directory.path().to_owned()];
    let find = |setting, environment| LIBRARY.find_in(setting, environment, &directories);
    assert_eq!(find(Some(&setting), Some(&environment)), Ok(Some(setting.clone())));
    assert_eq!(find(None, Some(&environment)), Ok(Some(environment.clone())));
    assert_eq!(find(None, None), Ok(Some(set_up)));
}

#[test]
fn a_library_beside_the_executable_needs_no_set_up() {
    let directory = tempfile::tempdir().unwrap();
    let beside = touch(directory.path(), &LIBRARY.file_name());
    assert_eq!(LIBRARY.find_in(None, None, &[directory.path().to_owned()]), Ok(Some(beside)));
}

#[test]
fn a_named_library_that_is_not_there_is_an_error_even_where_set_up_has_one() {
    let directory = tempfile::tempdir().unwrap();
    touch(directory.path(), &format!(".tools/sums/{}", LIBRARY.file_name()));
    let directories = [directory.path().to_owned()];
    let nowhere = Path::new("/nowhere/libsums.so");
    let said =
        |setting, environment| LIBRARY.find_in(setting, environment, &directories).unwrap_err().to_string();
    assert_eq!(said(Some(nowhere), None), "no library at /nowhere/libsums.so, which the settings name");
    assert_eq!(
        said(None, Some(nowhere)),
        "no library at /nowhere/libsums.so, which DOWNBEAT_NO_SUCH_VARIABLE names"
    );
}

#[test]
fn there_need_not_be_a_library() {
    assert_eq!(LIBRARY.find(None), Ok(None));
}
