use std::fs;
use std::path::Path;

use crate::Backend;

#[test]
fn a_file_that_is_no_library_is_refused_in_words() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("libhighs.so");
    fs::write(&file, "not a library").unwrap();
    let said = Backend::highs(&file).unwrap_err().to_string();
    assert!(said.starts_with("HiGHS cannot be used: ") && said.contains("libhighs.so"), "{said}");
}

#[test]
fn a_named_library_must_be_there() {
    let said = Backend::best(Some(Path::new("/nowhere/libhighs.so"))).unwrap_err().to_string();
    assert_eq!(said, "HiGHS cannot be used: no library at /nowhere/libhighs.so, which the settings name");
}
