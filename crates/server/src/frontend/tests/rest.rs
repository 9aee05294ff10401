//! The REST surface.

use std::sync::atomic::Ordering;

use downbeat_oip::{Encoding, Reason};
use serde_json::json;

use super::Running;
use super::client::{get, infer, post, send};

const ECHO: &str = r#"{"id":"7","inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2.5]}]}"#;

#[tokio::test]
async fn the_server_says_what_it_is() {
    let server = Running::http().await;
    for path in ["/v2", "/v2/"] {
        let answer = get(server.address, path).await;
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let metadata = answer.json();
        assert_eq!(metadata["name"], "downbeat");
        assert!(metadata["extensions"].as_array().unwrap().contains(&json!("binary_tensor_data")));
    }
}

#[tokio::test]
async fn health_is_in_the_status_and_in_the_body() {
    let server = Running::http().await;
    let ready = get(server.address, "/v2/health/ready").await;
    assert_eq!((ready.status, ready.json()), (200, json!({"ready": true})));
    server.service.unready.store(true, Ordering::SeqCst);
    let unready = get(server.address, "/v2/health/ready").await;
    assert_eq!((unready.status, unready.json()), (400, json!({"ready": false})));
    let live = get(server.address, "/v2/health/live").await;
    assert_eq!((live.status, live.json()), (200, json!({"live": true})));
}

#[tokio::test]
async fn how_many_devices_there_should_be_is_told_by_class_with_the_reason() {
    let server = Running::http().await;
    let answer = get(server.address, "/v2/downbeat/autoscale").await;
    let decision = answer.json()["classes"]["gpu"].clone();
    assert_eq!((answer.status, decision["wanted"].as_u64()), (200, Some(3)));
    assert_eq!(decision["reason"], "need");
    assert!(decision["explanation"].as_str().unwrap().starts_with("up to 3 GPUs (now 2): "), "{decision}");
}

#[tokio::test]
async fn models_are_described_with_and_without_a_version() {
    let server = Running::http().await;
    let metadata = get(server.address, "/v2/models/my%20model").await.json();
    assert_eq!(metadata["name"], "my model");
    assert_eq!(metadata["inputs"], json!([{"name": "x", "datatype": "FP32", "shape": [-1, 2]}]));
    let metadata = get(server.address, "/v2/models/echo/versions/3").await.json();
    assert_eq!(metadata["versions"], json!(["3"]));
    assert_eq!(get(server.address, "/v2/models/echo/config").await.json()["max_batch_size"], 8);
    let stats = get(server.address, "/v2/models/echo/versions/1/stats").await.json();
    assert_eq!(stats["model_stats"][0]["inference_stats"]["queue"], json!({"count": 0, "ns": 0}));
    let all = get(server.address, "/v2/models/stats").await.json();
    assert_eq!(all["model_stats"].as_array().unwrap().len(), 2);
    let ready = get(server.address, "/v2/models/echo/ready").await;
    assert_eq!((ready.status, ready.json()), (200, json!({"name": "echo", "ready": true})));
    assert_eq!(get(server.address, "/v2/models/echo/versions/2/ready").await.status, 400);
    for path in ["", "/config", "/stats", "/ready"] {
        let answer = get(server.address, &format!("/v2/models/missing{path}")).await;
        assert_eq!((answer.status, answer.error().as_str()), (404, "there is no model 'missing'"));
    }
}

#[tokio::test]
async fn an_inference_in_json_is_answered_in_json() {
    let server = Running::http().await;
    let answer = infer(server.address, ECHO).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("inference-header-content-length"), None);
    assert_eq!(
        answer.json(),
        json!({
            "id": "7", "model_name": "echo", "model_version": "1",
            "parameters": {"downbeat_queue_us": 5},
            "outputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1.0, 2.5]}]
        })
    );
    assert_eq!(server.service.seen.lock().unwrap()[0].0.version, "");
}

#[tokio::test]
async fn binary_tensors_come_back_as_they_went_in() {
    let server = Running::http().await;
    let header = r#"{"parameters":{"binary_data_output":true},
        "inputs":[{"name":"x","shape":[2],"datatype":"BF16","parameters":{"binary_data_size":4}}]}"#;
    let body = [header.as_bytes(), &[1, 2, 3, 4]].concat();
    let length = format!("Inference-Header-Content-Length: {}", header.len());
    let answer = post(server.address, "/v2/models/echo/versions/5/infer", &[&length], &body).await;
    assert_eq!(answer.header("content-type"), Some("application/octet-stream"));
    let json_length: usize = answer.header("inference-header-content-length").unwrap().parse().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&answer.body[..json_length]).unwrap();
    assert_eq!(json["outputs"][0]["parameters"]["binary_data_size"], 4);
    assert_eq!(&answer.body[json_length..], &[1, 2, 3, 4]);
    assert_eq!(server.service.seen.lock().unwrap()[0].0.version, "5");
}

#[tokio::test]
async fn a_body_without_json_is_the_one_input() {
    let server = Running::http().await;
    let answer =
        post(server.address, "/v2/models/echo/infer", &["Inference-Header-Content-Length: 0"], &[0; 8]).await;
    assert_eq!(answer.status, 200);
    assert_eq!(server.service.seen.lock().unwrap()[0].0.inputs[0].shape, [1, 2]);
    assert!(answer.header("inference-header-content-length").is_some());
}

#[tokio::test]
async fn bodies_may_be_compressed_both_ways() {
    let server = Running::http().await;
    let data = vec!["1.5"; 1000].join(",");
    let body = format!(r#"{{"inputs":[{{"name":"x","shape":[1000],"datatype":"FP32","data":[{data}]}}]}}"#);
    let plain = infer(server.address, &body).await.json();
    for encoding in [Encoding::Gzip, Encoding::Deflate] {
        let packed = encoding.encode([body.as_bytes()]).unwrap();
        let headers = [
            format!("content-encoding: {}", encoding.name()),
            format!("accept-encoding: {}", encoding.name()),
        ];
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        let answer = post(server.address, "/v2/models/echo/infer", &headers, &packed).await;
        assert_eq!(answer.header("content-encoding"), Some(encoding.name()));
        let unpacked = encoding.decode(&answer.body, 1 << 20).unwrap();
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&unpacked).unwrap(), plain);
    }
}

#[tokio::test]
async fn errors_are_not_compressed() {
    let server = Running::http().await;
    let answer =
        post(server.address, "/v2/models/full/infer", &["accept-encoding: gzip"], ECHO.as_bytes()).await;
    assert_eq!(answer.header("content-encoding"), None);
    assert_eq!(answer.error(), "the queue of model 'full' is full");
}

#[tokio::test]
async fn failures_have_the_status_of_their_reason() {
    let server = Running::http().await;
    for (model, status, message) in [
        ("full", 429, "the queue of model 'full' is full"),
        ("late", 504, "the deadline cannot be met"),
        ("missing", 404, "there is no model 'missing'"),
    ] {
        let answer = post(server.address, &format!("/v2/models/{model}/infer"), &[], ECHO.as_bytes()).await;
        assert_eq!((answer.status, answer.error().as_str()), (status, message));
    }
    assert_eq!(server.service.rejections(), [], "the service has counted these itself");
}

#[tokio::test]
async fn an_answer_that_json_cannot_say_is_refused_with_advice() {
    let server = Running::http().await;
    let answer = post(server.address, "/v2/models/nan/infer", &[], ECHO.as_bytes()).await;
    assert_eq!(answer.status, 400);
    assert!(answer.error().contains("ask for it as binary"), "{}", answer.error());
}

#[tokio::test]
async fn the_repository_can_be_listed() {
    let server = Running::http().await;
    let all = post(server.address, "/v2/repository/index", &[], b"").await.json();
    assert_eq!(
        all,
        json!([{"name": "a", "version": "1", "state": "READY"}, {"name": "b"},
               {"name": "c", "version": "1", "state": "UNAVAILABLE", "reason": "unloaded"}])
    );
    let ready = post(server.address, "/v2/repository/index", &[], br#"{"ready":true}"#).await.json();
    assert_eq!(ready.as_array().unwrap().len(), 1);
    assert_eq!(post(server.address, "/v2/repository/index", &[], b"{").await.status, 400);
}

#[tokio::test]
async fn models_can_be_loaded_and_unloaded() {
    let server = Running::http().await;
    let change = |path: &'static str, body: &'static str| post(server.address, path, &[], body.as_bytes());
    assert_eq!(change("/v2/repository/models/a/load", "").await.status, 200);
    let config = r#"{"parameters":{"config":"{\"max_batch_size\":4}"}}"#;
    assert_eq!(change("/v2/repository/models/a/load", config).await.status, 200);
    assert_eq!(
        change("/v2/repository/models/a/unload", r#"{"parameters":{"unload_dependents":false}}"#)
            .await
            .status,
        200
    );
    assert_eq!(
        *server.service.changes.lock().unwrap(),
        ["load a ", r#"load a {"max_batch_size":4}"#, "unload a"]
    );
    let file = r#"{"parameters":{"config":"{}","file:1/model.onnx":"aGk="}}"#;
    assert_eq!(change("/v2/repository/models/a/load", file).await.status, 501);
    assert_eq!(change("/v2/repository/models/a/load", r#"{"parameters":{"config":{}}}"#).await.status, 400);
    assert_eq!(change("/v2/repository/models/missing/load", "").await.status, 404);
}

#[tokio::test]
async fn what_is_not_there_is_said_in_json() {
    let server = Running::http().await;
    for (request, status) in [
        ("GET /v3", 404),
        ("GET /", 404),
        ("GET /v2/models/echo/infer", 405),
        ("DELETE /v2", 405),
        ("GET /v2/systemsharedmemory/status", 501),
        ("POST /v2/cudasharedmemory/region/r/register", 501),
        ("GET /v2/trace/setting", 501),
        ("GET /v2/models/echo/trace/setting", 501),
        ("GET /v2/logging", 501),
        ("POST /v2/models/echo/generate", 501),
        ("GET /v2/models/%ff", 400),
    ] {
        let request = format!("{request} HTTP/1.1\r\nhost: test\r\ncontent-length: 0\r\n\r\n");
        let answer = send(server.address, request.as_bytes()).await;
        assert_eq!(answer.status, status, "{request}");
        assert!(!answer.error().is_empty());
    }
}

#[tokio::test]
async fn a_request_that_cannot_be_read_is_counted() {
    let server = Running::http().await;
    assert_eq!(infer(server.address, "{").await.status, 400);
    assert_eq!(server.service.rejections(), [("echo".to_owned(), Reason::Invalid)]);
}

#[tokio::test]
async fn nonsense_for_a_model_that_is_not_there_is_told_that_it_is_not_there() {
    let server = Running::http().await;
    let answer = post(server.address, "/v2/models/missing/infer", &[], b"nonsense").await;
    assert_eq!((answer.status, answer.error().as_str()), (404, "there is no model 'missing'"));
}
