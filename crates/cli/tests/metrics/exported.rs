//! What a metrics endpoint exports.

use std::collections::{BTreeMap, BTreeSet};

/// Labels by name: of series as a query names them, or of families as people do.
pub(crate) type Labels = BTreeMap<String, BTreeSet<String>>;

/// The text of a metrics endpoint.
pub(crate) struct Exported {
    /// By the names of samples: a histogram has three.
    pub(crate) series: Labels,
    /// By the names in the documentation; the `le` of a histogram is not one of its labels.
    pub(crate) families: Labels,
}

impl Exported {
    pub(crate) fn read(text: &str) -> Exported {
        let (mut series, mut families) = (Labels::new(), Labels::new());
        let mut family = "";
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                family = rest.split(' ').next().unwrap_or(rest);
                families.entry(family.to_owned()).or_default();
            } else if !line.starts_with('#') {
                let (sample, _) = line.rsplit_once(' ').expect("a sample and its value");
                let (name, labels) = sample.split_once('{').unwrap_or((sample, ""));
                let labels =
                    labels.split("\",").filter_map(|label| Some(label.split_once('=')?.0.to_owned()));
                let labels: BTreeSet<String> = labels.collect();
                let own = labels.iter().filter(|label| *label != "le").cloned();
                families.entry(family.to_owned()).or_default().extend(own);
                series.entry(name.to_owned()).or_default().extend(labels);
            }
        }
        Exported { series, families }
    }
}
