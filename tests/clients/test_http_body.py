"""How tensors travel over HTTP: JSON or binary, each way on its own, compressed or not."""

import numpy as np
import pytest
import tritonclient.http as triton
from test_data_types import DATA_TYPES, assert_identical, sample

# Triton does not read 16-bit floats from JSON, and neither does its client write them.
JSON_TYPES = [datatype for datatype in DATA_TYPES if datatype not in ("FP16", "BF16")]
ALGORITHMS = [None, "gzip", "deflate"]


@pytest.fixture
def client(server):
    with triton.InferenceServerClient(server.http) as client:
        yield client


def tensor(array, datatype="FP32", name="INPUT0", binary=True):
    return triton.InferInput(name, list(array.shape), datatype).set_data_from_numpy(array, binary_data=binary)


def output(name="OUTPUT0", binary=True):
    return triton.InferRequestedOutput(name, binary_data=binary)


@pytest.mark.parametrize("binary_out", [True, False], ids=["to binary", "to JSON"])
@pytest.mark.parametrize("binary_in", [True, False], ids=["from binary", "from JSON"])
@pytest.mark.parametrize("datatype", JSON_TYPES)
def test_either_form_goes_in_and_comes_out(client, datatype, binary_in, binary_out):
    array = sample(datatype)
    result = client.infer(
        f"identity_{datatype.lower()}", [tensor(array, datatype, binary=binary_in)], outputs=[output(binary=binary_out)]
    )
    got = result.as_numpy("OUTPUT0")
    assert ("data" in result.get_output("OUTPUT0")) != binary_out
    if got.dtype == np.object_ and not binary_out:
        got = np.vectorize(str.encode, otypes=[object])(got)
    assert_identical(got, array)


def test_forms_may_be_mixed_in_one_request(client):
    first, second = np.arange(16, dtype=np.int32).reshape(1, 16), np.ones((1, 16), np.int32)
    result = client.infer(
        "add_sub",
        [tensor(first, "INT32", "INPUT0", binary=False), tensor(second, "INT32", "INPUT1", binary=True)],
        outputs=[output("OUTPUT0", binary=True), output("OUTPUT1", binary=False)],
    )
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), first + second)
    np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), first - second)


def test_outputs_may_be_asked_for_in_any_order(client):
    first, second = np.arange(16, dtype=np.int32).reshape(1, 16), np.ones((1, 16), np.int32)
    result = client.infer(
        "add_sub",
        [tensor(first, "INT32", "INPUT0"), tensor(second, "INT32", "INPUT1")],
        outputs=[output("OUTPUT1"), output("OUTPUT0")],
    )
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), first + second)
    np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), first - second)


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "JSON"])
@pytest.mark.parametrize("response", ALGORITHMS)
@pytest.mark.parametrize("request_", ALGORITHMS)
def test_bodies_may_be_compressed_either_way(client, request_, response, binary):
    array = np.zeros((4, 500), np.float32)
    result = client.infer(
        "identity_fp32",
        [tensor(array, binary=binary)],
        outputs=[output(binary=binary)],
        request_compression_algorithm=request_,
        response_compression_algorithm=response,
    )
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), array)


def test_bytes_that_a_client_made_itself_are_understood_and_its_reader_understands_the_answer(client):
    """The static calls that let an application carry the bytes over a connection of its own."""
    import urllib.request

    array = np.arange(4, dtype=np.float32).reshape(1, 4)
    body, length = triton.InferenceServerClient.generate_request_body([tensor(array)], outputs=[output()])
    request = urllib.request.Request(
        f"http://{client._parsed_url.netloc}/v2/models/identity_fp32/infer",
        body,
        {"Inference-Header-Content-Length": str(length), "Content-Type": "application/octet-stream"},
    )
    with urllib.request.urlopen(request) as answer:
        header = int(answer.headers["Inference-Header-Content-Length"])
        result = triton.InferenceServerClient.parse_response_body(answer.read(), header_length=header)
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), array)
