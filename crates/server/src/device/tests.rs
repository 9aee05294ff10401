use super::*;

fn parsed(name: &str) -> String {
    match name.parse::<DeviceSpec>() {
        Ok(spec) => spec.to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_number_counts_cpu_workers_and_emulated_devices_and_names_gpus() {
    assert_eq!(parsed("cpu"), "cpu");
    assert_eq!(parsed("cpu:3"), "cpu:3");
    assert_eq!(parsed("cuda:1@h200/3g"), "cuda:1@h200/3g");
    assert_eq!(parsed("cuda:1@h200/3g#vision"), "cuda:1@h200/3g#vision");
    assert_eq!(parsed("cpu#a.b-c_1"), "cpu#a.b-c_1");
    assert_eq!(parsed("tensorrt"), "tensorrt:0");
    assert_eq!(parsed("emulated:64@h200/7g"), "emulated:64@h200/7g");
}

#[test]
fn what_is_no_device_is_refused_with_what_to_write() {
    assert!(parsed("gpu").starts_with("\"gpu\" is not a device: use cpu, cpu:2"));
    assert_eq!(parsed("cpu:0"), "\"0\" in the device \"cpu:0\" is not a number from 1 to 256");
    assert_eq!(parsed("cpu:two"), "\"two\" in the device \"cpu:two\" is not a number from 1 to 256");
    assert!(parsed("cpu#").starts_with("\"\" is not a sub-cluster: use letters"));
    assert!(parsed("cpu@a/b/c").contains("is not a device class"));
}

#[test]
fn each_cpu_worker_is_a_process_and_emulated_devices_share_one() {
    let workers = |name: &str| name.parse::<DeviceSpec>().unwrap().workers();
    assert_eq!(workers("cpu:3").iter().map(|worker| worker.count).collect::<Vec<_>>(), [1, 1, 1]);
    assert_eq!(workers("emulated:8").iter().map(|worker| worker.count).collect::<Vec<_>>(), [8]);
}
