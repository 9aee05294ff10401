"""The numbers are ONNX Runtime's own, and every client gets its own, with many asking at once."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import demo
import numpy as np
import onnxruntime
import pytest
from models import MODELS
from protocols import Protocol

CLIENTS = 32
REQUESTS = 12
PERCEPTRON = MODELS["perceptron"]


def session(model: bytes) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])


def run(reference: onnxruntime.InferenceSession, rows: np.ndarray) -> np.ndarray:
    [name] = [tensor.name for tensor in reference.get_inputs()]
    return reference.run(None, {name: rows})[0]


def row_by_row(reference: onnxruntime.InferenceSession, rows: np.ndarray) -> np.ndarray:
    return np.concatenate([run(reference, rows[index : index + 1]) for index in range(len(rows))])


def assert_close(got: np.ndarray, expected: np.ndarray):
    """Within 1e-5 of the largest number: which batch a row was in changes the last bits of sums."""
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def batch_size(api: Protocol, result) -> int | None:
    """How many rows were in the batch, where the server tells."""
    value = api.response(result).get("parameters", {}).get("downbeat_batch_size")
    return int(next(iter(value.values())) if isinstance(value, dict) else value) if value is not None else None


def at_once(server, work) -> None:
    """Runs `work(client number, api)` for 32 clients, half of each protocol, all under way together."""
    start = threading.Barrier(CLIENTS)

    def one(client: int):
        name = "http" if client % 2 else "grpc"
        api = Protocol(name, getattr(server, name))
        try:
            start.wait(60)
            work(client, api)
        finally:
            api.client.close()

    with ThreadPoolExecutor(CLIENTS) as pool:
        # Reading the results raises what a client raised.
        list(pool.map(one, range(CLIENTS)))


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 16, 32])
def test_a_batch_that_ran_alone_is_equal_to_the_bit(api, rows):
    array = np.random.default_rng(rows).standard_normal((rows, 64), dtype=np.float32)
    result = api.infer("perceptron", array)
    assert batch_size(api, result) in (rows, None)
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), run(session(PERCEPTRON.onnx()), array))


def test_32_clients_at_once_get_the_numbers_of_their_own_rows(server):
    reference = session(PERCEPTRON.onnx())

    def work(client, api):
        random = np.random.default_rng(client)
        for request in range(REQUESTS):
            rows = random.standard_normal((1 + (client + request) % 4, 64), dtype=np.float32)
            id = f"{client}-{request}"
            result = api.infer("perceptron", rows, request_id=id)
            assert api.response(result)["id"] == id
            got = result.as_numpy("OUTPUT0")
            assert_close(got, row_by_row(reference, rows))
            if batch_size(api, result) == len(rows):
                np.testing.assert_array_equal(got, run(reference, rows))

    at_once(server, work)


@pytest.mark.parametrize("datatype", ["INT64", "BYTES", "FP64", "UINT8"])
def test_32_clients_at_once_get_their_own_values_back(server, datatype):
    def work(client, api):
        for request in range(REQUESTS):
            array = own_values(datatype, client, request)
            result = api.infer(f"identity_{datatype.lower()}", array, request_id=f"{client}-{request}")
            assert api.response(result)["id"] == f"{client}-{request}"
            np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), array)

    at_once(server, work)


def own_values(datatype: str, client: int, request: int) -> np.ndarray:
    """What no other client sends. Lengths differ too: rows of different lengths cannot share a batch."""
    length = 1 + (client + request) % 3
    if datatype == "BYTES":
        return np.array([[f"{client}/{request}/{i}".encode() for i in range(length)]], dtype=object)
    kind = {"INT64": np.int64, "FP64": np.float64, "UINT8": np.uint8}[datatype]
    return np.array([[client, request, *range(length)]], dtype=kind)


def test_the_failures_of_one_model_are_not_those_of_another(server):
    def work(client, api):
        for _ in range(REQUESTS):
            if client % 8 == 0:
                assert api.failure(api.infer, "lookup", np.array([[77]])).kind == "failed"
            else:
                result = api.infer("labelled", np.full((1, 4), client, np.float32))
                np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), np.full((1, 4), client))

    at_once(server, work)


@pytest.fixture(scope="session")
def demo_server(server_class, tmp_path_factory):
    if demo.model_file() is None:
        reason = "the demo's model is not here: `make demo` fetches it, or DOWNBEAT_DEMO_REPOSITORY names it"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with server_class(tmp_path_factory.mktemp("demo"), write=demo.write_repository, load=[demo.name()]) as running:
        yield running


def test_the_demo_model_gives_32_clients_at_once_what_onnx_runtime_gives(demo_server):
    reference = session(demo.model_file().read_bytes())
    [entry] = reference.get_inputs()
    name = reference.get_outputs()[0].name

    def work(client, api):
        random = np.random.default_rng(client)
        for request in range(3):
            rows = random.integers(0, 256, (1 + request, entry.shape[1]), dtype=np.int32)
            result = api.client.infer(demo.name(), [api.input(entry.name, rows)], request_id=f"{client}-{request}")
            got = result.as_numpy(name)
            assert_close(got, row_by_row(reference, rows))
            if batch_size(api, result) == len(rows):
                np.testing.assert_array_equal(got, run(reference, rows))

    at_once(demo_server, work)
