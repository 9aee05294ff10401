"""What a server says about itself and its models."""

import json
import urllib.request

import grpc
import pytest
from models import LOADED_AT_START


def test_a_started_server_is_live_and_ready(api):
    assert api.client.is_server_live()
    assert api.client.is_server_ready()


def test_loaded_models_are_ready_and_others_are_not(api):
    for model in LOADED_AT_START:
        assert api.client.is_model_ready(model), model
    assert api.client.is_model_ready("add_sub", "1")
    assert not api.client.is_model_ready("add_sub", "9")
    assert not api.client.is_model_ready("nowhere")


def test_the_server_names_the_extensions_that_clients_look_for(api):
    answer = api.json("get_server_metadata")
    assert answer["name"] and answer["version"]
    extensions = {
        "classification",
        "model_repository",
        "model_configuration",
        "binary_tensor_data",
        "parameters",
        "statistics",
    }
    assert extensions <= set(answer["extensions"])


def shape(tensor: dict) -> list[int]:
    return [int(dim) for dim in tensor["shape"]]


def test_shapes_lead_with_the_batch_dimension(api):
    answer = api.json("get_model_metadata", "add_sub")
    assert answer["name"] == "add_sub"
    assert answer["versions"] == ["1"]
    assert answer["platform"]
    described = [(t["name"], t["datatype"], shape(t)) for t in answer["inputs"] + answer["outputs"]]
    assert described == [(name, "INT32", [-1, 16]) for name in ("INPUT0", "INPUT1", "OUTPUT0", "OUTPUT1")]


def test_shapes_without_a_batch_dimension_are_the_declared_ones(api):
    answer = api.json("get_model_metadata", "transpose")
    assert shape(answer["inputs"][0]) == [3, 2]
    assert shape(answer["outputs"][0]) == [2, 3]


def test_the_versions_are_those_of_the_version_policy(api):
    assert api.json("get_model_metadata", "versioned")["versions"] == ["1", "3"]
    assert api.json("get_model_metadata", "versioned", "3")["name"] == "versioned"


def test_a_configuration_has_what_load_generators_read(api):
    answer = api.json("get_model_config", "labelled")
    config = answer if api.name == "http" else answer["config"]
    assert config["name"] == "labelled"
    assert config["max_batch_size"] == 8
    assert "dynamic_batching" in config
    assert [(t["name"], t["data_type"], [int(dim) for dim in t["dims"]]) for t in config["input"]] == [
        ("INPUT0", "TYPE_FP32", [4])
    ]
    assert [(t["name"], t["label_filename"]) for t in config["output"] if t.get("label_filename")] == [
        ("OUTPUT0", "OUTPUT0_labels.txt")
    ]
    assert config["parameters"]["slo_ms"] == {"string_value": "60000"}


def test_the_configuration_over_http_has_numbers_where_protobuf_json_has_strings(server):
    with urllib.request.urlopen(f"http://{server.http}/v2/models/labelled/config") as answer:
        config = json.load(answer)
    assert config["input"][0]["dims"] == [4]


def test_a_configuration_without_batching_says_zero(api):
    answer = api.json("get_model_config", "transpose")
    config = answer if api.name == "http" else answer["config"]
    assert config.get("max_batch_size", 0) == 0


@pytest.mark.parametrize("call", ["get_model_metadata", "get_model_config"])
def test_an_unknown_model_or_version_is_not_found(api, call):
    unknown = api.failure(getattr(api.client, call), "nowhere")
    assert unknown.kind == "unknown" and "nowhere" in unknown.message
    assert api.failure(getattr(api.client, call), "add_sub", "9").kind == "unknown"


def test_a_model_that_was_never_loaded_is_unknown(api):
    assert api.failure(api.client.get_model_metadata, "broken").kind == "unknown"


def test_the_standard_grpc_health_service_says_serving(server):
    with grpc.insecure_channel(server.grpc) as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        serving = b"\x08\x01"
        assert check(b"") == serving
        name = b"inference.GRPCInferenceService"
        assert check(b"\x0a" + bytes([len(name)]) + name) == serving
