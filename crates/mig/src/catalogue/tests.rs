use super::*;

#[test]
fn the_built_in_table_is_read_whole() {
    let gpus = rows::gpus(BUILTIN, "mig_geometry.csv", None).unwrap();
    assert_eq!(gpus.len(), 13);
    let rows = BUILTIN.lines().filter(|line| !line.starts_with('#')).count() - 1;
    assert_eq!(gpus.iter().map(|gpu| gpu.profiles.len()).sum::<usize>(), rows);
    let h200 = gpus.iter().find(|gpu| gpu.name == "H200-141GB").unwrap();
    assert_eq!((h200.units, h200.compute), (8, 7));
    assert!(h200.is_inferred());
    let three = &h200.profiles[h200.profile("3g").unwrap()];
    assert_eq!((three.memory_mib, three.sms, three.most), (69.5 * 1024.0, Some(60), 2));
    let rtx = gpus.iter().find(|gpu| gpu.name.starts_with("RTX")).unwrap();
    assert_eq!((rtx.units, rtx.compute), (12, 4));
    let b300 = gpus.iter().find(|gpu| gpu.name == "B300").unwrap();
    assert_eq!(b300.compute, 7, "known from how many 1g slices there are");
}

#[test]
fn gpus_are_found_by_any_spelling_of_the_beginning_of_one_name() {
    let catalogue = Catalogue::builtin();
    for name in ["H200-141GB", "h200", "H200_141gb", "h200 141"] {
        assert_eq!(catalogue.find(name).map(|gpu| gpu.name.as_str()), Ok("H200-141GB"), "{name}");
    }
    assert_eq!(
        catalogue.find("a100").unwrap_err().to_string(),
        r#"GPU "a100" may be A100-40GB or A100-80GB; write one of them in full"#
    );
    assert_eq!(
        catalogue.find("gh200").unwrap_err().to_string(),
        r#"GPU "gh200" may be H100-96GB(GH200) or GH200-144GB; write one of them in full"#
    );
}

#[test]
fn unknown_gpus_get_a_suggestion() {
    let catalogue = Catalogue::builtin();
    let said = catalogue.find("H201").unwrap_err().to_string();
    assert!(said.contains("did you mean H200-141GB"), "{said}");
    let said = catalogue.find("TPU").unwrap_err().to_string();
    assert!(said.contains("known are A30-24GB"), "{said}");
    assert!(catalogue.find("").is_err());
}

const HEADER: &str = "gpu,profile,compute_g,mem_units,mem_units_total,mem_gib_or_mib,placements\n";

#[test]
fn users_add_gpus_and_replace_them() {
    let mut catalogue = Catalogue::builtin();
    let text = format!("{HEADER}X1,half,1,2,4,10GiB,\"{{0,2}}:2\"\nX1,all,2,4,4,20GiB,{{0}}:4\n");
    catalogue.add(&text, "mine.csv").unwrap();
    let gpu = catalogue.find("X1").unwrap();
    assert_eq!((gpu.units, gpu.compute, gpu.profiles[0].most), (4, 2, 2));
    assert_eq!(gpu.profiles[0].evidence, Evidence::UserDefined);
    assert_eq!(gpu.profile("half"), Some(0));
    catalogue.add(&text.replace("20GiB", "30GiB"), "mine.csv").unwrap();
    assert_eq!(catalogue.find("X1").unwrap().profiles[1].memory_mib, 30.0 * 1024.0);
}

#[test]
fn a_gpu_without_a_whole_slice_has_the_compute_that_its_slices_use_together() {
    let compute = |rows: &str| {
        let mut catalogue = Catalogue::default();
        catalogue.add(&format!("{HEADER}{rows}"), "mine.csv").unwrap();
        let gpu = catalogue.find("X1").unwrap().clone();
        let two = [crate::Placed { start: 0, profile: 0 }, crate::Placed { start: 4, profile: 1 }];
        assert!(gpu.allows(&two), "{rows}");
        gpu.compute
    };
    assert_eq!(compute("X1,4g,4,4,8,20GiB,{0}:4\nX1,3g,3,4,8,20GiB,{4}:4\n"), 7);
    assert_eq!(
        compute("X1,4g,4,4,8,20GiB,{0}:4\nX1,2g,2,2,8,10GiB,\"{0,2,4}:2\"\nX1,1g,1,1,8,5GiB,{6}:1\n"),
        7
    );
}

#[test]
fn bad_tables_are_refused_with_the_line() {
    let said = |row: &str| {
        Catalogue::default().add(&format!("{HEADER}{row}\n"), "mine.csv").unwrap_err().to_string()
    };
    assert_eq!(said("X1,half,1,2,4,10GiB,0-2"), "mine.csv:2: placements must be like {0,2,4}:2 (is \"0-2\")");
    assert_eq!(
        said("X1,half,1,2,4,10GiB,{3}:2"),
        "mine.csv:2: a slice of 2 units must lie within the 4 units of the GPU"
    );
    assert_eq!(said("X1,half,1,3,4,10GiB,{0}:2"), "mine.csv:2: mem_units is 3, but placements say 2");
    assert_eq!(said("X1,half,x,2,4,10GiB,{0}:2"), "mine.csv:2: compute_g must be a whole number (is \"x\")");
    assert_eq!(
        said("X1,half,1,2,4,lots,{0}:2"),
        "mine.csv:2: mem_gib_or_mib must be like 9.75GiB or 4864MiB (is \"lots\")"
    );
    assert_eq!(
        said("X1,half,1,2,400,1GiB,{0}:2"),
        "mine.csv:2: mem_units_total must be a whole number (is \"400\")"
    );
    assert_eq!(said(",half,1,2,4,1GiB,{0}:2"), "mine.csv:2: gpu is missing");
    let none = format!("{},max_instances\nX1,half,1,2,4,10GiB,{{0}}:2,0\n", HEADER.trim_end());
    assert_eq!(
        Catalogue::default().add(&none, "mine.csv").unwrap_err().to_string(),
        "mine.csv:2: max_instances must be at least 1 (is 0)"
    );
    assert_eq!(
        Catalogue::default().add("", "mine.csv").unwrap_err().to_string(),
        "mine.csv: there is no GPU in it"
    );
}
