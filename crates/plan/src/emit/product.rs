//! What NVIDIA's software calls the GPU types of the catalogue.

use std::fmt::Write;

use super::quoted;

/// The products that are sold as a type of GPU, as the driver names them: by the list of supported chips in NVIDIA's
/// open kernel modules, matched to types by the chips of mig-parted's default configuration. `productName` of NVIDIA's
/// DRA driver is this name; the label `nvidia.com/gpu.product` has dashes for spaces, and under the `mixed` strategy
/// nothing more.
const PRODUCTS: [(&str, &[&str]); 13] = [
    ("A30-24GB", &["NVIDIA A30"]),
    ("A100-40GB", &["NVIDIA A100-SXM4-40GB", "NVIDIA A100-PCIE-40GB"]),
    ("A100-80GB", &["NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe"]),
    ("H100-SXM5-80GB", &["NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe"]),
    ("H100-NVL-94GB", &["NVIDIA H100 NVL"]),
    // Called by the memory of the processor beside it.
    ("H100-96GB(GH200)", &["NVIDIA GH200 480GB", "NVIDIA GH200 120GB"]),
    ("GH200-144GB", &["NVIDIA GH200 144G HBM3e"]),
    ("H200-141GB", &["NVIDIA H200", "NVIDIA H200 NVL"]),
    ("B200-180GB", &["NVIDIA B200"]),
    ("B300", &["NVIDIA B300 SXM6 AC"]),
    ("GB200-186GB", &["NVIDIA GB200"]),
    ("GB300", &["NVIDIA GB300"]),
    (
        "RTX-PRO-6000-96GB",
        &[
            "NVIDIA RTX PRO 6000 Blackwell Server Edition",
            "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
            "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
        ],
    ),
];

/// The products of a type; one that the user has defined is taken to be called as its product is.
fn products(gpu_type: &str) -> Vec<&str> {
    let known = PRODUCTS.iter().find(|(name, _)| *name == gpu_type);
    known.map_or_else(|| vec![gpu_type], |(_, products)| products.to_vec())
}

/// A pod's `affinity` for nodes that have GPUs of this type, indented.
pub(super) fn affinity(gpu_type: &str, indent: &str) -> String {
    let labels: Vec<String> =
        products(gpu_type).into_iter().map(|product| quoted(&product.replace(' ', "-"))).collect();
    let lines = [
        "affinity:",
        "  nodeAffinity:",
        "    requiredDuringSchedulingIgnoredDuringExecution:",
        "      nodeSelectorTerms:",
        "        - matchExpressions:",
        "            - key: nvidia.com/gpu.product",
        "              operator: In",
    ];
    let mut text = String::new();
    for line in lines {
        let _ = writeln!(text, "{indent}{line}");
    }
    let _ = writeln!(text, "{indent}              values: [{}]", labels.join(", "));
    text
}

/// A CEL expression that holds for devices of this type of GPU.
pub(super) fn selector(gpu_type: &str) -> String {
    let names: Vec<String> = products(gpu_type).into_iter().map(text_in_cel).collect();
    format!("device.attributes['gpu.nvidia.com'].productName in [{}]", names.join(", "))
}

fn text_in_cel(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use downbeat_mig::Catalogue;

    use super::*;

    #[test]
    fn every_gpu_of_the_catalogue_has_a_product() {
        for gpu in Catalogue::builtin().gpus() {
            assert!(PRODUCTS.iter().any(|(name, _)| *name == gpu.name), "{}", gpu.name);
        }
    }
}
