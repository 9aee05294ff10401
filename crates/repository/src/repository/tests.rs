use std::time::Duration;

use downbeat_oip::DataType;
use downbeat_oip::proto::model_config::SchedulingChoice;
use downbeat_testmodels::{Graph, identity, write_repository};
use tempfile::TempDir;

use super::*;
use crate::DEFAULT_MAX_BATCH;

/// A repository with one model, `m`.
struct Scene {
    directory: TempDir,
}

impl Scene {
    fn new() -> Scene {
        let scene = Scene { directory: TempDir::new().unwrap() };
        fs::create_dir(scene.path("m")).unwrap();
        scene
    }

    fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    fn config(self, text: &str) -> Scene {
        fs::write(self.path("m/config.pbtxt"), text).unwrap();
        self
    }

    fn file(self, path: &str, content: impl AsRef<[u8]>) -> Scene {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    fn version(self, number: u64, graph: Graph) -> Scene {
        self.file(&format!("m/{number}/model.onnx"), graph.encode())
    }

    fn read_with(&self, config: Option<WrittenConfig>) -> Result<ModelDefinition, String> {
        let root = format!("{}/", self.directory.path().display());
        let repository = Repository::open(self.directory.path()).unwrap();
        repository.read("m", config).map_err(|error| error.to_string().replace(&root, ""))
    }

    fn read(&self) -> Result<ModelDefinition, String> {
        self.read_with(None)
    }
}

fn rows(width: i64) -> Graph {
    identity(DataType::Fp32, &[-1, width])
}

fn shapes(definition: &ModelDefinition) -> Vec<(&str, &[i64])> {
    definition
        .inputs
        .iter()
        .chain(&definition.outputs)
        .map(|spec| (spec.name.as_str(), spec.shape.as_slice()))
        .collect()
}

#[test]
fn a_missing_configuration_is_completed_from_the_file() {
    let definition = Scene::new().version(1, rows(4)).read().unwrap();
    assert_eq!(definition.max_batch, DEFAULT_MAX_BATCH as u32);
    assert_eq!(shapes(&definition), [("INPUT0", &[-1, 4][..]), ("OUTPUT0", &[-1, 4])]);
    assert_eq!(definition.backend, Backend::Onnx);
    assert_eq!((definition.slo, definition.queue_limit), (None, None));
    assert_eq!(definition.notices.len(), 1, "{:?}", definition.notices);
    assert!(definition.notices[0].contains("64 rows; set max_batch_size to 0"), "{:?}", definition.notices);
    let config = &definition.config;
    assert_eq!((config.name.as_str(), config.platform.as_str()), ("m", "onnxruntime_onnx"));
    assert_eq!(
        (config.backend.as_str(), config.default_model_filename.as_str()),
        ("onnxruntime", "model.onnx")
    );
    assert_eq!(config.input[0].data_type().as_str_name(), "TYPE_FP32");
    assert_eq!(config.input[0].dims, [4]);
    assert!(matches!(config.scheduling_choice, Some(SchedulingChoice::DynamicBatching(_))));
}

#[test]
fn a_partial_configuration_keeps_what_it_says_and_gets_the_rest() {
    let definition = Scene::new()
        .version(1, rows(4))
        .config(
            r#"max_batch_size: 7 input { name: "INPUT0" dims: [ -1 ] } parameters { key: "slo_ms" value { string_value: "25" } }"#,
        )
        .read()
        .unwrap();
    assert_eq!((definition.max_batch, definition.slo), (7, Some(Duration::from_millis(25))));
    // The file fixes what the configuration leaves open.
    assert_eq!(shapes(&definition), [("INPUT0", &[-1, 4][..]), ("OUTPUT0", &[-1, 4])]);
    assert_eq!(definition.config.input[0].dims, [-1]);
}

#[test]
fn a_model_without_an_open_first_dimension_on_every_tensor_has_no_batch() {
    let fixed = Scene::new().version(1, identity(DataType::Fp32, &[4])).read().unwrap();
    assert_eq!((fixed.max_batch, shapes(&fixed)), (0, vec![("INPUT0", &[4][..]), ("OUTPUT0", &[4])]));
    let scalar = Scene::new().version(1, identity(DataType::Fp32, &[])).read().unwrap();
    assert_eq!((scalar.max_batch, shapes(&scalar)), (0, vec![("INPUT0", &[][..]), ("OUTPUT0", &[])]));
    let mixed = rows(4).input("factor", DataType::Fp32, &[1]);
    assert_eq!(Scene::new().version(1, mixed).read().unwrap().max_batch, 0);
}

#[test]
fn a_largest_batch_of_0_that_somebody_wrote_means_no_batch() {
    let scene = Scene::new().version(1, rows(4)).config("max_batch_size: 0");
    let written = |says_max_batch| WrittenConfig { config: ModelConfig::default(), says_max_batch };
    for definition in [scene.read().unwrap(), scene.read_with(Some(written(true))).unwrap()] {
        assert_eq!((definition.max_batch, &definition.inputs[0].shape[..]), (0, &[-1, 4][..]));
        assert_eq!(definition.config.input[0].dims, [-1, 4]);
        assert_eq!(definition.notices, Vec::<String>::new());
    }
    assert_eq!(scene.read_with(Some(written(false))).unwrap().max_batch, DEFAULT_MAX_BATCH as u32);
}

#[test]
fn a_configuration_that_counts_the_first_dimension_among_its_dims_means_no_batch() {
    let scene = Scene::new().version(1, rows(4)).config(r#"input { name: "INPUT0" dims: [ -1, 4 ] }"#);
    let definition = scene.read().unwrap();
    assert_eq!((definition.max_batch, &definition.inputs[0].shape[..]), (0, &[-1, 4][..]));
    assert_eq!(definition.config.output[0].dims, [-1, 4]);
}

#[test]
fn a_row_may_be_a_single_number() {
    let definition = Scene::new().version(1, identity(DataType::Int64, &[-1])).read().unwrap();
    assert_eq!(shapes(&definition), [("INPUT0", &[-1][..]), ("OUTPUT0", &[-1])]);
    assert_eq!(definition.max_batch, DEFAULT_MAX_BATCH as u32);
}

#[test]
fn clients_see_the_dims_and_the_model_the_reshape() {
    let graph = Graph::new().input("image", DataType::Fp32, &[1, 3, 2, 2]).output(
        "scores",
        DataType::Fp32,
        &[1, 12, 1, 1],
    );
    let scene = Scene::new().version(1, graph).config(
        r#"input [ { name: "image" dims: [ 3, 2, 2 ] reshape { shape: [ 1, 3, 2, 2 ] } } ]
           output [ { name: "scores" dims: [ 12 ] reshape { shape: [ 1, 12, 1, 1 ] } } ]"#,
    );
    let definition = scene.read().unwrap();
    assert_eq!(shapes(&definition), [("image", &[3, 2, 2][..]), ("scores", &[12])]);
    assert_eq!(definition.input_reshapes[0].apply(&[3, 2, 2]), Some(vec![1, 3, 2, 2]));
    assert_eq!(definition.output_reshapes[0].apply(&[1, 12, 1, 1]), Some(vec![12]));

    let rank_1 = Scene::new()
        .version(1, identity(DataType::Int64, &[-1]))
        .config(r#"max_batch_size: 4 input { name: "INPUT0" dims: [ 1 ] reshape { shape: [] } }"#);
    let definition = rank_1.read().unwrap();
    assert_eq!(shapes(&definition), [("INPUT0", &[-1, 1][..]), ("OUTPUT0", &[-1])]);
    assert_eq!(definition.input_reshapes[0].apply(&[3, 1]), Some(vec![3]));
}

#[test]
fn outputs_that_the_configuration_leaves_out_are_left_out() {
    let graph = rows(4).output("hidden", DataType::Fp32, &[-1, 4]).node("Identity", &["INPUT0"], &["hidden"]);
    let scene = Scene::new().version(1, graph).config(r#"output { name: "OUTPUT0" }"#);
    let outputs: Vec<String> = scene.read().unwrap().outputs.into_iter().map(|spec| spec.name).collect();
    assert_eq!(outputs, ["OUTPUT0"]);
}

#[test]
fn the_version_policy_decides_which_files_are_served() {
    let scene = Scene::new().version(1, rows(4)).version(3, rows(4)).version(12, rows(4));
    let newest = scene.read().unwrap();
    assert_eq!(newest.versions, [Version { number: 12, file: Some(scene.path("m/12/model.onnx")) }]);
    let scene = scene.config("version_policy { latest { num_versions: 2 } }");
    let numbers: Vec<u64> = scene.read().unwrap().versions.iter().map(|version| version.number).collect();
    assert_eq!(numbers, [3, 12]);
}

#[test]
fn the_file_may_have_another_name_or_be_in_a_directory_with_its_weights() {
    let named =
        Scene::new().file("m/1/net.onnx", rows(4).encode()).config("default_model_filename: \"net.onnx\"");
    assert_eq!(named.read().unwrap().versions[0].file, Some(named.path("m/1/net.onnx")));
    let nested = Scene::new().file("m/1/model.onnx/model.onnx", rows(4).encode());
    assert_eq!(nested.read().unwrap().versions[0].file, Some(nested.path("m/1/model.onnx/model.onnx")));
}

#[test]
fn a_configuration_given_to_read_takes_the_place_of_the_file() {
    let scene = Scene::new().version(1, rows(4)).config("max_batch_size: 3");
    let config = ModelConfig { max_batch_size: 5, ..ModelConfig::default() };
    assert_eq!(scene.read_with(Some(config.into())).unwrap().max_batch, 5);
}

#[test]
fn an_emulated_model_needs_its_configuration_only() {
    let scene = Scene::new().config(
        r#"backend: "emulated" max_batch_size: 8
           input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } output { name: "y" data_type: TYPE_STRING dims: [ 2 ] }
           parameters { key: "alpha_ms" value { string_value: "0.5" } }"#,
    );
    let definition = scene.read().unwrap();
    assert_eq!(definition.backend, Backend::Emulated);
    assert_eq!(definition.versions, [Version { number: 1, file: None }]);
    assert_eq!(shapes(&definition), [("x", &[-1, 4][..]), ("y", &[-1, 2])]);
    assert_eq!((definition.parameter("alpha_ms"), definition.notices.len()), (Some("0.5"), 0));
}

#[test]
fn labels_are_read_for_the_output_that_names_them() {
    let scene = Scene::new()
        .version(1, rows(4))
        .config(r#"output { name: "OUTPUT0" label_filename: "names.txt" }"#)
        .file("m/names.txt", "cat\ndog\r\n");
    assert_eq!(scene.read().unwrap().labels["OUTPUT0"], ["cat", "dog"]);
}

#[test]
fn what_the_configuration_says_otherwise_than_the_file_is_refused_with_what_to_change() {
    let cases = [
        (
            r#"max_batch_size: 4 input { name: "INPUT0" data_type: TYPE_INT64 dims: [ 4 ] }"#,
            "m/config.pbtxt: the input \"INPUT0\" is TYPE_FP32 in 1/model.onnx; change its data_type to that",
        ),
        (
            r#"max_batch_size: 4 output { name: "OUTPUT0" dims: [ 5 ] }"#,
            "m/config.pbtxt: the output \"OUTPUT0\" has the shape [-1, 4] in 1/model.onnx; change its dims to [4], without \
             the batch dimension",
        ),
        (
            r#"max_batch_size: 4 input { name: "INPUT0" dims: [ -1, 4 ] }"#,
            "m/config.pbtxt: the input \"INPUT0\" has the shape [-1, 4] in 1/model.onnx; change its dims to [4], without the \
             batch dimension",
        ),
        (
            r#"input { name: "INPUT" dims: [ 4 ] }"#,
            "m/config.pbtxt: 1/model.onnx has no input \"INPUT\"; its inputs are [\"INPUT0\"]",
        ),
        (
            r#"input [ { name: "INPUT0" }, { name: "INPUT0" } ]"#,
            "m/config.pbtxt: the input \"INPUT0\" is there twice; remove one",
        ),
        (
            r#"input { name: "INPUT0" dims: [ 5 ] reshape { shape: [ 4 ] } }"#,
            "m/config.pbtxt: the input \"INPUT0\" has dims [5] and a reshape to [4], which has another number of elements",
        ),
        (
            r#"max_batch_size: 4 input { name: "INPUT0" dims: [ 4 ] reshape { shape: [ 2, 2 ] } }"#,
            "m/config.pbtxt: the input \"INPUT0\" has the shape [-1, 4] in 1/model.onnx; change the shape of its reshape to \
             [4], without the batch dimension",
        ),
        ("max_batch_size: -1", "m/config.pbtxt: max_batch_size is -1; it must be between 0 and 65536"),
        (
            r#"name: "other""#,
            "m/config.pbtxt: the name \"other\" is not that of the directory, \"m\"; make them the same, or leave the name out",
        ),
        (
            r#"platform: "tensorrt_plan""#,
            "m/config.pbtxt: platform \"tensorrt_plan\" with backend \"\" is not supported; Downbeat runs platform \
             \"onnxruntime_onnx\" (backend \"onnxruntime\") and backend \"emulated\"",
        ),
        (
            r#"default_model_filename: "../1/model.onnx""#,
            "m/config.pbtxt: default_model_filename is \"../1/model.onnx\"; it must be the name of a file",
        ),
        (
            r#"default_model_filename: "net.onnx""#,
            "m/1/net.onnx: is not there; put the model there, or name its file in default_model_filename",
        ),
        (
            r#"backend: "emulated""#,
            "m/config.pbtxt: an emulated model has no file to take its inputs and outputs from; declare at least one of each",
        ),
        (
            r#"sequence_batching {}"#,
            "m/config.pbtxt: sequence_batching is not supported: Downbeat serves models without state between requests",
        ),
    ];
    for (config, problem) in cases {
        assert_eq!(Scene::new().version(1, rows(4)).config(config).read().unwrap_err(), problem);
    }
}

#[test]
fn a_batch_size_for_a_model_without_a_batch_is_refused() {
    let scene = Scene::new().version(1, identity(DataType::Fp32, &[1, 4])).config("max_batch_size: 4");
    assert_eq!(
        scene.read().unwrap_err(),
        "m/config.pbtxt: the input \"INPUT0\" has the shape [1, 4] in 1/model.onnx, whose first dimension is no batch; set \
         max_batch_size to 0, or export the model with an open first dimension"
    );
}

#[test]
fn a_version_that_differs_from_the_newest_is_named() {
    let scene = Scene::new().version(1, rows(3)).version(2, rows(4)).config("version_policy { all {} }");
    assert_eq!(
        scene.read().unwrap_err(),
        "m/config.pbtxt: the input \"INPUT0\" has the shape [-1, 3] in 1/model.onnx; change its dims to [3], without the batch \
         dimension"
    );
}

#[test]
fn directories_without_a_model_say_what_is_missing() {
    assert_eq!(
        Scene::new().read().unwrap_err(),
        "m: holds no model: it has neither config.pbtxt nor a version, such as 1/model.onnx"
    );
    assert_eq!(
        Scene::new().config(r#"backend: "onnxruntime""#).read().unwrap_err(),
        "m: has no version; put the model file into a directory with a number for a name, such as 1"
    );
    let plan = Scene::new().file("m/1/model.plan", "").read().unwrap_err();
    assert!(plan.starts_with("m/1/model.onnx: is not there, and the configuration does not say"), "{plan}");
    let broken = Scene::new().file("m/1/model.onnx", "no model").read().unwrap_err();
    assert!(broken.starts_with("m/1/model.onnx: is not an ONNX model ("), "{broken}");
}

#[test]
fn names_that_lead_out_of_the_repository_are_no_models() {
    let scene = Scene::new().version(1, rows(4));
    let repository = Repository::open(scene.directory.path()).unwrap();
    for name in ["", ".", "..", "../m", "m/1", "m/", "/etc", "./m", "m/../m", "none"] {
        let error = repository.read(name, None).unwrap_err();
        assert_eq!(error.problem, format!("has no model {name:?}"));
    }
}

#[test]
fn a_repository_must_be_a_directory_of_models() {
    let scene = Scene::new().version(1, rows(4)).config("").file("file", "");
    let problem = |path: &str| Repository::open(&scene.path(path)).unwrap_err().problem;
    assert!(problem("nowhere").starts_with("there is no such model repository"));
    assert!(problem("file").starts_with("is a file"));
    assert!(problem("m").starts_with("is a model"));
}

#[test]
fn one_broken_model_does_not_hide_the_others() {
    let scene = Scene::new().config("max_batch_size: what").file("good/1/model.onnx", rows(4).encode());
    let scene = scene.file(".hidden/1/model.onnx", "").file("README.md", "");
    let repository = Repository::open(scene.directory.path()).unwrap();
    assert_eq!(repository.models().unwrap(), ["good", "m"]);
    assert!(repository.read("m", None).is_err());
    assert!(repository.read("good", None).is_ok());
}

#[test]
fn every_test_model_is_read_with_a_notice_of_a_guessed_batch_at_most() {
    let directory = TempDir::new().unwrap();
    write_repository(directory.path()).unwrap();
    let repository = Repository::open(directory.path()).unwrap();
    let models = repository.models().unwrap();
    assert_eq!(models.len(), downbeat_testmodels::catalogue().len());
    for name in models {
        let definition = repository.read(&name, None).unwrap();
        let guess = |notice: &String| notice.starts_with("no max_batch_size is set");
        assert!(definition.notices.iter().all(guess), "{name}: {:?}", definition.notices);
    }
}
