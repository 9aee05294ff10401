use std::fs;

use super::*;

#[test]
fn a_named_library_comes_first_and_must_be_there() {
    let directory = tempfile::tempdir().unwrap();
    let set_up = directory.path().join(SETUP_DIRECTORY);
    fs::create_dir_all(&set_up).unwrap();
    let name = if cfg!(target_os = "macos") { "libhighs.dylib" } else { "libhighs.so" };
    fs::write(set_up.join(name), "").unwrap();
    let named = directory.path().join("mine.so");
    fs::write(&named, "").unwrap();

    let mut search = Search { directories: vec![directory.path().to_owned()], ..Search::default() };
    assert_eq!(search.find(), Ok(Some(set_up.join(name))));
    search.environment = Some(named.clone());
    assert_eq!(search.find(), Ok(Some(named)));
    search.setting = Some("/nowhere/libhighs.so".into());
    assert_eq!(
        search.find().unwrap_err().to_string(),
        "HiGHS cannot be used: no library at /nowhere/libhighs.so, which the settings name"
    );
    assert_eq!(Search::default().find(), Ok(None), "there need not be one");
}

#[test]
fn a_file_that_is_no_library_is_refused_in_words() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("libhighs.so");
    fs::write(&file, "not a library").unwrap();
    let said = crate::Backend::highs(&file).unwrap_err().to_string();
    assert!(said.starts_with("HiGHS cannot be used: ") && said.contains("libhighs.so"), "{said}");
}
