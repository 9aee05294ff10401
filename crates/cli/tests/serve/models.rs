//! Model repositories for tests.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A model repository in a folder of its own.
pub(crate) struct Models {
    folder: TempDir,
}

/// An emulated model: one input of 4 numbers, one output of 2.
#[derive(Clone, Copy)]
pub(crate) struct Emulated {
    pub(crate) alpha_ms: f64,
    pub(crate) beta_ms: f64,
    pub(crate) slo_ms: f64,
    pub(crate) max_batch: u32,
    pub(crate) queue_limit: u32,
}

/// A model that takes 5 ms and has time.
pub(crate) const QUICK: Emulated =
    Emulated { alpha_ms: 0.1, beta_ms: 5.0, slo_ms: 20_000.0, max_batch: 32, queue_limit: 0 };

/// A model that takes 400 ms for one request at a time.
pub(crate) const SLOW: Emulated =
    Emulated { alpha_ms: 0.0, beta_ms: 400.0, slo_ms: 30_000.0, max_batch: 1, queue_limit: 0 };

/// A model that no worker can load: it would take no time.
pub(crate) const BROKEN: Emulated =
    Emulated { alpha_ms: 0.0, beta_ms: 0.0, slo_ms: 1_000.0, max_batch: 1, queue_limit: 0 };

impl Models {
    pub(crate) fn new() -> Models {
        Models { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn with(name: &str, model: Emulated) -> Models {
        Models::new().and(name, model)
    }

    pub(crate) fn and(self, name: &str, model: Emulated) -> Models {
        self.write(name, model);
        self
    }

    /// Writes an emulated model, or writes it anew.
    pub(crate) fn write(&self, name: &str, model: Emulated) {
        fs::create_dir_all(self.path().join(name).join("1")).unwrap();
        self.configure(name, &model.config());
    }

    /// Writes a model of the catalogue of test models, for ONNX Runtime.
    pub(crate) fn write_onnx(&self, name: &str) {
        let model = downbeat_testmodels::catalogue().into_iter().find(|model| model.name == name).unwrap();
        let version = self.path().join(name).join("1");
        fs::create_dir_all(&version).unwrap();
        fs::write(version.join("model.onnx"), model.file.unwrap()).unwrap();
        if let Some(config) = model.config {
            self.configure(name, &config);
        }
    }

    pub(crate) fn configure(&self, name: &str, config: &str) {
        fs::create_dir_all(self.path().join(name)).unwrap();
        fs::write(self.path().join(name).join("config.pbtxt"), config).unwrap();
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("models")
    }

    /// A folder beside the repository, for files of the test.
    pub(crate) fn beside(&self) -> &Path {
        self.folder.path()
    }
}

impl Emulated {
    fn config(&self) -> String {
        let mut text = format!(
            "backend: \"emulated\"\nmax_batch_size: {}\n\
             input [ {{ name: \"INPUT0\" data_type: TYPE_FP32 dims: [ 4 ] }} ]\n\
             output [ {{ name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ 2 ] }} ]\n",
            self.max_batch
        );
        for (key, value) in [("alpha_ms", self.alpha_ms), ("beta_ms", self.beta_ms), ("slo_ms", self.slo_ms)]
        {
            writeln!(text, "parameters {{ key: \"{key}\" value {{ string_value: \"{value}\" }} }}").unwrap();
        }
        if self.queue_limit > 0 {
            let limit = self.queue_limit;
            writeln!(text, "dynamic_batching {{ default_queue_policy {{ max_queue_size: {limit} }} }}")
                .unwrap();
        }
        text
    }
}
