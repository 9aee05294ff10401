//! Everything that was ever worth keeping, tried again.

use std::fs;

#[test]
fn every_input_of_the_corpus_comes_back() {
    for (name, target) in downbeat_fuzz::TARGETS {
        let folder = downbeat_fuzz::corpus(name);
        let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert!(!files.is_empty(), "{name} has no corpus");
        for file in files {
            let data = fs::read(&file).unwrap();
            if std::panic::catch_unwind(|| target(&data)).is_err() {
                panic!("{name} breaks on {}", file.display());
            }
        }
    }
}
