"""What Downbeat does and Triton does not."""

import numpy as np
import pytest

ROW = np.array([[1, 2, 3, 4]], np.float32)


@pytest.mark.downbeat_only(reason="Triton heeds a timeout only where the model's queue policy lets it")
def test_a_timeout_that_cannot_be_met_is_answered_as_expired(api):
    failure = api.failure(api.infer, "slow", ROW[:, :1], timeout=1)
    assert failure.kind == "expired" and failure.message
    np.testing.assert_array_equal(api.infer("slow", ROW[:, :1]).as_numpy("OUTPUT0"), [[1]])


@pytest.mark.downbeat_only(reason="the parameters are Downbeat's")
def test_an_answer_says_what_happened_to_the_request(api):
    result = api.infer("labelled", np.zeros((3, 4), np.float32))
    parameters = api.response(result)["parameters"]
    if api.name == "grpc":
        # {"int64_param": "3"}: each value says its type.
        parameters = {name: next(iter(value.values())) for name, value in parameters.items()}
    assert int(parameters["downbeat_batch_size"]) == 3
    assert int(parameters["downbeat_queue_us"]) >= 0
    assert int(parameters["downbeat_compute_us"]) > 0
    assert str(parameters["downbeat_device"])


@pytest.mark.downbeat_only(reason="Triton has shared memory, tracing and settings for its log")
@pytest.mark.parametrize(
    "call",
    ["get_system_shared_memory_status", "get_cuda_shared_memory_status", "get_trace_settings", "get_log_settings"],
)
def test_what_downbeat_leaves_out_says_so(api, call):
    failure = api.failure(getattr(api.client, call))
    assert failure.kind == "unimplemented" and failure.message


@pytest.mark.downbeat_only(reason="Triton's python backend takes any bytes; ONNX Runtime's strings end at a NUL")
def test_a_string_that_the_engine_cannot_take_is_refused_by_itself(api):
    texts = np.array([[b"a\0b"]], np.object_)
    failure = api.failure(api.infer, "identity_bytes", texts)
    assert failure.kind == "invalid" and "NUL" in failure.message
