//! Models that move between sub-clusters.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_model_moves_to_another_subcluster_and_what_it_was_asked_before_is_answered_where_it_was() {
    let stage = Stage::with(&["m"]);
    let mut here = Puppet::of_subcluster(stage.workers_at, "here").await;
    let mut there = Puppet::of_subcluster(stage.workers_at, "there").await;
    stage.await_devices(2).await;
    stage.core.standing.clone().borrow_and_update();
    // In no sub-cluster, it would be loaded on both.
    let moved = |to: &'static str| {
        let core = Arc::clone(&stage.core);
        tokio::spawn(async move { core.move_model("m", to).await })
    };
    let unknown = ended(moved("here")).await.unwrap_err();
    assert_eq!(unknown.reason, Reason::Unknown, "{unknown}");
    let load = stage.load("m");
    for worker in [&mut here, &mut there] {
        let order = worker.load_order().await;
        worker.has_loaded(order.instance);
    }
    for worker in [&mut here, &mut there] {
        worker.measure().await;
    }
    ended(load).await.unwrap();

    let moving = moved("here");
    let order = here.load_order().await;
    here.has_loaded(order.instance);
    here.measure().await;
    ended(moving).await.unwrap();
    assert_eq!(stage.core.subclusters()["here"].models, ["m"]);
    let before = stage.infer("m");
    let run = here.batch().await;
    assert_eq!(run.instance, order.instance);

    let moving = moved("there");
    let order = there.load_order().await;
    there.has_loaded(order.instance);
    there.measure().await;
    ended(moving).await.unwrap();
    let after = stage.infer("m");
    there.run().await;
    ended(after).await.unwrap();
    assert!(!before.is_finished(), "its device has not answered");
    here.has_run(&run);
    ended(before).await.unwrap();
    // Only now that the last request has left.
    loop {
        if let FromServer::Unload(unload) = here.next().await
            && unload.instance == run.instance
        {
            break;
        }
    }
    let state = |models: &[&str]| SubclusterState {
        devices: 1,
        models: models.iter().map(|&model| model.to_owned()).collect(),
    };
    let expected = [("here".to_owned(), state(&[])), ("there".to_owned(), state(&["m"]))];
    assert_eq!(stage.core.subclusters(), BTreeMap::from(expected));
    ended(moved("there")).await.unwrap();
    let nowhere = ended(moved("nowhere")).await.unwrap_err();
    assert_eq!(nowhere.reason, Reason::Unavailable, "{nowhere}");
    let invalid = ended(moved("no where")).await.unwrap_err();
    assert_eq!(invalid.reason, Reason::Invalid, "{invalid}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_whose_subcluster_has_no_worker_yet_is_loaded_when_one_has_come() {
    let stage = Stage::assigned(&["m"], &[("m", "late")]);
    let _other = Puppet::of_subcluster(stage.workers_at, "early").await;
    stage.await_devices(1).await;
    let failure = ended(stage.load("m")).await.unwrap_err();
    assert_eq!(failure.reason, Reason::Unavailable, "{failure}");
    let mut late = Puppet::of_subcluster(stage.workers_at, "late").await;
    let order = late.load_order().await;
    late.has_loaded(order.instance);
    late.measure().await;
    stage.await_ready("m").await;
    let answer = stage.infer("m");
    late.run().await;
    ended(answer).await.unwrap();
}
