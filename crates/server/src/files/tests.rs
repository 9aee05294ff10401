use std::os::unix::fs::symlink;

use super::*;

fn names(folder: &Path, files: &[NotedFile]) -> Vec<String> {
    let name = |file: &NotedFile| file.path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
    let mut names: Vec<String> = files.iter().map(name).collect();
    names[1..].sort_unstable();
    names
}

#[test]
fn the_model_comes_first_then_all_that_lies_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("weights")).unwrap();
    for name in ["a", "model.onnx", "weights/0", "weights/1"] {
        fs::write(at(name), name).unwrap();
    }
    let files = note_all(&at("model.onnx")).unwrap();
    assert_eq!(names(folder.path(), &files), ["model.onnx", "a", "weights/0", "weights/1"]);
    assert_eq!(files[0].stamp.bytes, 10);
    assert!(note_all(&at("other.onnx")).unwrap_err().ends_with("other.onnx is gone"));
}

#[test]
fn links_are_followed_but_not_in_circles() {
    let folder = tempfile::tempdir().unwrap();
    let (version, blobs) = (folder.path().join("1"), folder.path().join("blobs"));
    fs::create_dir_all(&version).unwrap();
    fs::create_dir_all(&blobs).unwrap();
    fs::write(blobs.join("weights"), "w").unwrap();
    fs::write(version.join("model.onnx"), "m").unwrap();
    symlink(".", version.join("itself")).unwrap();
    symlink("..", version.join("up")).unwrap();
    symlink("nowhere", version.join("broken")).unwrap();
    symlink(&blobs, version.join("blobs")).unwrap();
    symlink(blobs.join("weights"), version.join("weights")).unwrap();
    let files = note_all(&version.join("model.onnx")).unwrap();
    let real = |file: &NotedFile| fs::canonicalize(&file.path).unwrap();
    let weights = files.iter().filter(|file| real(file).ends_with("blobs/weights")).count();
    assert_eq!(weights, 2, "by its own name, and once through the folder: {files:?}");
    assert_eq!(files.len(), 3, "{files:?}");
}

#[test]
fn a_folder_without_end_is_not_walked_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    for name in 0..=FILES_MAX {
        fs::write(folder.path().join(name.to_string()), "").unwrap();
    }
    fs::write(folder.path().join("model.onnx"), "m").unwrap();
    let refused = note_all(&folder.path().join("model.onnx")).unwrap_err();
    assert!(refused.contains("more than 4096 files"), "{refused}");
}

#[test]
fn a_file_that_is_written_anew_has_another_stamp() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model.onnx");
    fs::write(&model, "one").unwrap();
    let before = note_all(&model).unwrap();
    assert_eq!(note_all(&model).unwrap(), before);
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(1);
    fs::write(&model, "two").unwrap();
    fs::File::options().write(true).open(&model).unwrap().set_modified(later).unwrap();
    assert_ne!(note_all(&model).unwrap(), before);
}
