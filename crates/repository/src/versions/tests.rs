use downbeat_oip::proto::model_version_policy::{All, Latest, Specific};
use tempfile::TempDir;

use super::*;

fn serve(choice: PolicyChoice) -> Result<Vec<u64>, String> {
    chosen(Some(&ModelVersionPolicy { policy_choice: Some(choice) }), &[1, 3, 20])
}

#[test]
fn only_directories_with_a_number_for_a_name_are_versions() {
    let directory = TempDir::new().unwrap();
    for name in ["10", "9", "0", "01", "-1", "1a", "old"] {
        fs::create_dir(directory.path().join(name)).unwrap();
    }
    fs::write(directory.path().join("7"), "a file").unwrap();
    assert_eq!(present(directory.path()), Ok(vec![9, 10]));
}

#[test]
fn a_policy_chooses_the_latest_all_or_the_ones_it_names() {
    assert_eq!(chosen(None, &[1, 3, 20]), Ok(vec![20]));
    assert_eq!(serve(PolicyChoice::Latest(Latest { num_versions: 2 })), Ok(vec![3, 20]));
    assert_eq!(serve(PolicyChoice::Latest(Latest { num_versions: 9 })), Ok(vec![1, 3, 20]));
    assert_eq!(serve(PolicyChoice::All(All {})), Ok(vec![1, 3, 20]));
    assert_eq!(serve(PolicyChoice::Specific(Specific { versions: vec![20, 1, 1] })), Ok(vec![1, 20]));
}

#[test]
fn a_version_that_is_named_must_be_there() {
    assert_eq!(
        serve(PolicyChoice::Specific(Specific { versions: vec![1, 2] })).unwrap_err(),
        "version_policy.specific names version 2, which is not there; there are [1, 3, 20]"
    );
}
