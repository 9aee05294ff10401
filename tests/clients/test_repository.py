"""Loading and unloading models. Only these tests touch the models `on_demand`, `overridden` and `broken`."""

import json
import time

import numpy as np
import pytest
from protocols import Protocol

ROW = np.array([[1, 2, 3, 4]], np.float32)


def entries(api, model) -> list[dict]:
    answer = api.json("get_model_repository_index")
    return [entry for entry in (answer if api.name == "http" else answer["models"]) if entry["name"] == model]


def unload(api, model):
    """Unloading is answered before it is done: what the model was asked before is still answered."""
    api.client.unload_model(model)
    until = time.monotonic() + 30
    while entries(api, model)[0]["state"] != "UNAVAILABLE":
        assert time.monotonic() < until, f"{model} is still being unloaded"
        time.sleep(0.01)


def test_the_index_has_every_version_that_is_served(api):
    described = [(entry["version"], entry["state"]) for entry in entries(api, "versioned")]
    assert described == [("1", "READY"), ("3", "READY")]


def test_the_index_has_models_that_were_never_loaded(api):
    [entry] = entries(api, "broken")
    assert entry.get("state", "") in ("", "UNAVAILABLE")


def test_a_model_can_be_loaded_unloaded_and_loaded_again(api):
    for _ in range(2):
        api.client.load_model("on_demand")
        assert api.client.is_model_ready("on_demand")
        np.testing.assert_array_equal(api.infer("on_demand", ROW).as_numpy("OUTPUT0"), -ROW)
        [entry] = entries(api, "on_demand")
        assert (entry["version"], entry["state"]) == ("1", "READY")

        unload(api, "on_demand")
        assert api.failure(api.infer, "on_demand", ROW).kind == "unknown"
        [entry] = entries(api, "on_demand")
        assert (entry["version"], entry["state"], entry["reason"]) == ("1", "UNAVAILABLE", "unloaded")


def test_an_unloaded_model_leaves_the_server_ready(api):
    api.client.load_model("on_demand")
    unload(api, "on_demand")
    assert api.client.is_server_ready()


def test_loading_a_loaded_model_keeps_it_ready(api):
    api.client.load_model("on_demand")
    api.client.load_model("on_demand")
    np.testing.assert_array_equal(api.infer("on_demand", ROW).as_numpy("OUTPUT0"), -ROW)
    unload(api, "on_demand")


def test_a_load_can_bring_its_own_configuration(api, server):
    config = {
        "max_batch_size": 2,
        "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [4]}],
        "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [4]}],
    }
    config |= {"backend": "python"} if server.kind == "triton" else {"platform": "onnxruntime_onnx"}
    api.client.load_model("overridden", config=json.dumps(config))
    np.testing.assert_array_equal(api.infer("overridden", ROW).as_numpy("OUTPUT0"), -ROW)
    assert api.failure(api.infer, "overridden", np.zeros((3, 4), np.float32)).kind == "invalid"

    # Without one, the file counts again. (Triton keeps the configuration of a model that is loaded.)
    unload(api, "overridden")
    api.client.load_model("overridden")
    assert api.infer("overridden", np.zeros((8, 4), np.float32)).as_numpy("OUTPUT0").shape == (8, 4)


def test_a_configuration_that_cannot_be_read_leaves_the_loaded_model_as_it_is(api):
    api.client.load_model("overridden")
    assert "overridden" in api.failure(api.client.load_model, "overridden", config="{").message
    np.testing.assert_array_equal(api.infer("overridden", ROW).as_numpy("OUTPUT0"), -ROW)


@pytest.mark.triton_differs(reason="Triton calls a configuration that it cannot read an internal error")
def test_a_configuration_that_cannot_be_read_is_invalid(api):
    assert api.failure(api.client.load_model, "overridden", config="{").kind == "invalid"


def test_a_model_that_is_nowhere_cannot_be_loaded(api):
    assert "nowhere" in api.failure(api.client.load_model, "nowhere").message
    assert api.client.is_server_ready()


@pytest.mark.triton_differs(reason="Triton calls a model that it does not find an internal error")
def test_loading_a_model_that_is_nowhere_is_not_found(api):
    assert api.failure(api.client.load_model, "nowhere").kind == "unknown"


def test_unloading_what_is_not_loaded_is_no_error(api):
    api.client.unload_model("nowhere")


def test_other_models_answer_while_one_is_loaded_and_unloaded(api, server):
    other = Protocol("grpc", server.grpc)
    answers = []
    other.client.start_stream(lambda result, error: answers.append(error))
    for _ in range(3):
        for _ in range(10):
            other.client.async_stream_infer("labelled", [other.input("INPUT0", ROW)])
        api.client.load_model("on_demand")
        unload(api, "on_demand")
    other.client.stop_stream()
    other.client.close()
    assert answers == [None] * 30


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_model_that_cannot_be_loaded_says_why_and_harms_no_other(protocol, server_class, tmp_path):
    # On a server of its own, because Triton stays unready from then on.
    with server_class(tmp_path, load=["labelled"]) as server:
        api = Protocol(protocol, getattr(server, protocol))
        failure = api.failure(api.client.load_model, "broken")
        assert failure.kind == "invalid" and "broken" in failure.message
        [entry] = entries(api, "broken")
        assert entry["state"] == "UNAVAILABLE" and entry["reason"]
        assert not api.client.is_model_ready("broken")
        np.testing.assert_array_equal(api.infer("labelled", ROW).as_numpy("OUTPUT0"), ROW)
        api.client.close()
