use super::*;

#[test]
fn an_unknown_key_is_refused_with_the_one_that_was_meant() {
    assert_eq!(parse("http-prot = 1").unwrap_err(), "unknown key \"http-prot\"; did you mean \"http_port\"?");
    assert!(
        parse("zebra = 1").unwrap_err().starts_with("unknown key \"zebra\"; the keys are model_repository, ")
    );
}

#[test]
fn a_value_of_the_wrong_kind_is_refused_with_its_line() {
    let problem = parse("queue_limit = 5\nhttp_port = \"x\"").unwrap_err();
    assert!(problem.contains("line 2"), "{problem}");
    assert!(parse("device = [\"gpu\"]").unwrap_err().contains("\"gpu\" is not a device"));
}

#[test]
fn paths_are_relative_to_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("downbeat.toml");
    fs::write(&path, "model_repository = \"models\"\nprofile = [\"a.csv\", \"/b.csv\"]\nonnxruntime = \"\"")
        .unwrap();
    let layer = read(&path).unwrap();
    assert_eq!(layer.model_repository.unwrap(), folder.path().join("models"));
    assert_eq!(layer.onnxruntime.unwrap(), PathBuf::new(), "what is empty stays so");
    assert_eq!(layer.profile.unwrap(), [folder.path().join("a.csv"), PathBuf::from("/b.csv")]);
}
