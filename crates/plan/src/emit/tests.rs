use super::*;
use crate::plan::{Objective, number_devices};

fn plan() -> Plan {
    let instance = |profile: &str, start, service: &str| Instance {
        profile: profile.to_owned(),
        start,
        service: service.to_owned(),
        model: "resnet50".to_owned(),
        batch: 8,
        throughput_rps: 100.0,
    };
    let gpu = |gpu, node, instances| GpuLayout {
        gpu,
        node,
        device: None,
        gpu_type: "H200-141GB".to_owned(),
        instances,
    };
    let cut = |service: &str| vec![instance("4g.71gb", 0, service), instance("3g.71gb", 4, "Böse: \"x\"")];
    Plan {
        problem: "p".to_owned(),
        rule: "paper".to_owned(),
        gpus: 3,
        cost: 3.0,
        objective: Objective::Gpus,
        lower_bound: 3.0,
        bound_name: "prices".to_owned(),
        proved_optimal: true,
        gap: 0.0,
        seconds: 0.1,
        algorithm: "auto".to_owned(),
        layout: vec![
            gpu(0, 0, cut("a")),
            gpu(1, 0, cut("b")),
            gpu(2, 1, vec![instance("1g.18gb+me", 0, "a")]),
        ],
        services: Vec::new(),
        notes: Vec::new(),
    }
}

#[test]
fn mig_parted_gets_a_layout_per_node_and_gpus_cut_alike_together() {
    assert_eq!(
        mig_parted(&plan()),
        "version: v1\nmig-configs:\n  # nvidia.com/mig.config=downbeat-0 on node 0\n  downbeat-0:\n    - devices: [0, 1]\n      mig-enabled: true\n      \
         mig-devices:\n        \"3g.71gb\": 1\n        \"4g.71gb\": 1\n  # nvidia.com/mig.config=downbeat-1 on node 1\n  downbeat-1:\n    \
         - devices: [0]\n      mig-enabled: true\n      mig-devices:\n        \"1g.18gb+me\": 1\n"
    );
}

#[test]
fn every_instance_is_a_pod_with_a_name_of_its_own() {
    let text = kubernetes(&plan());
    assert_eq!(text.matches("kind: Pod").count(), 5);
    let names: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("  name: ")).collect();
    assert_eq!(names, ["a-g0-s0", "b-se---x-g0-s4", "b-g1-s0", "b-se---x-g1-s4", "a-g2-s0"]);
    assert!(
        text.contains("nvidia.com/mig-1g.18gb.me: \"1\"\n"),
        "a plus is not allowed in a resource's name"
    );
    assert!(text.contains(r#"downbeat/service: "Böse: \"x\"""#), "{text}");
}

#[test]
fn a_worker_is_told_which_server_to_join_and_as_which_device() {
    let args =
        r#"args: ["worker", "--connect", "downbeat:8003", "--device", "cuda:0@H200-141GB/4g.71gb#resnet50"]"#;
    for text in [kubernetes(&plan()), dra(&plan())] {
        assert!(text.contains(args), "{text}");
        assert!(text.contains("DOWNBEAT_WORKER_TOKEN"), "{text}");
    }
}

#[test]
fn claims_are_templates_with_as_many_replicas_as_instances() {
    let text = dra(&plan());
    assert_eq!(text.matches("kind: ResourceClaimTemplate").count(), 4);
    assert!(text.contains("replicas: 2"), "{text}");
    assert!(
        text.contains(r#"expression: "device.attributes['gpu.nvidia.com'].profile == '3g.71gb' && device.attributes['gpu.nvidia.com'].productName in ['NVIDIA H200', 'NVIDIA H200 NVL']""#),
        "{text}"
    );
}

#[test]
fn gpus_keep_their_index_within_the_node_when_others_are_left_out() {
    let mut plan = plan();
    number_devices(&mut plan.layout);
    plan.layout.remove(0);
    let text = mig_parted(&plan);
    assert!(text.contains("on node 0\n  downbeat-0:\n    - devices: [1]\n"), "{text}");
}

#[test]
fn names_that_yaml_would_read_as_numbers_or_truths_stay_text() {
    for name in ["123", "true", "null", "1e3"] {
        let mut plan = plan();
        plan.layout[0].instances[0].service = name.to_owned();
        let text = kubernetes(&plan);
        assert!(
            text.contains(&format!(
                "labels:\n    app.kubernetes.io/managed-by: downbeat\n    downbeat/service: \"{name}\""
            )),
            "{text}"
        );
    }
}

#[test]
fn slices_of_two_gpu_types_that_are_called_the_same_are_told_apart() {
    let mut plan = plan();
    for (gpu, gpu_type) in plan.layout.iter_mut().zip(["A100-80GB", "H100-SXM5-80GB", "mine's"]) {
        gpu.gpu_type = gpu_type.to_owned();
        gpu.instances.truncate(1);
        gpu.instances[0].profile = "1g.10gb".to_owned();
        gpu.instances[0].service = "a".to_owned();
    }
    let pods = kubernetes(&plan);
    assert!(pods.contains(r#"values: ["NVIDIA-A100-SXM4-80GB", "NVIDIA-A100-80GB-PCIe"]"#), "{pods}");
    assert!(pods.contains(r#"values: ["NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-PCIe"]"#), "{pods}");
    let claims = dra(&plan);
    assert!(claims.contains("productName in ['NVIDIA A100-SXM4-80GB', 'NVIDIA A100 80GB PCIe']"), "{claims}");
    assert!(claims.contains(r"productName in ['mine\\'s']"), "{claims}");
}

#[test]
fn services_whose_names_become_the_same_have_labels_of_their_own() {
    let mut plan = plan();
    let names = ["a b", "a-b", "A_B", "a b"];
    for (instance, name) in plan.layout.iter_mut().flat_map(|gpu| &mut gpu.instances).zip(names) {
        instance.service = name.to_owned();
    }
    let pods = kubernetes(&plan);
    let labels: Vec<&str> =
        pods.lines().filter_map(|line| line.strip_prefix("    downbeat/service: ")).step_by(2).collect();
    assert_eq!(labels[..4], [r#""a-b-2""#, r#""a-b-3""#, r#""a-b""#, r#""a-b-2""#]);
    assert!(dra(&plan).contains("  name: a-b-3-3g-71gb\n"), "{}", dra(&plan));
}
