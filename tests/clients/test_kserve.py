"""KServe's Python client. In a process of its own: it registers the same protobuf names as Triton's."""

import asyncio

import grpc
import httpx
import numpy as np
import pytest
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest, RESTConfig
from kserve.protocol.infer_type import RequestedOutput

FIRST = np.arange(16, dtype=np.int32).reshape(1, 16)
SECOND = np.full((1, 16), 3, dtype=np.int32)


class Rest:
    """The REST client, which is told the server's address with each call."""

    def __init__(self, server):
        self.url = f"http://{server.http}"
        self.client = InferenceRESTClient(RESTConfig(protocol="v2"))

    async def infer(self, request):
        return await self.client.infer(self.url, request, model_name=request.model_name)

    async def is_model_ready(self, model):
        return await self.client.is_model_ready(self.url, model)

    @staticmethod
    def status(error):
        return error.response.status_code


class Grpc:
    """The gRPC client."""

    def __init__(self, server):
        self.client = InferenceGRPCClient(server.grpc)
        self.infer = self.client.infer
        self.is_model_ready = self.client.is_model_ready

    @staticmethod
    def status(error):
        return error.code()


@pytest.fixture(params=[Rest, Grpc])
def with_client(request, server):
    """Runs a coroutine function with a client; it must be made inside the event loop."""

    def run(work):
        async def inside():
            api = request.param(server)
            try:
                return await work(api)
            finally:
                await api.client.close()

        return asyncio.run(inside())

    return run


def tensor(name, array, datatype, binary=True):
    tensor = InferInput(name, list(array.shape), datatype)
    tensor.set_data_from_numpy(array, binary_data=binary)
    return tensor


def add_sub(binary=True, outputs=None, **options):
    inputs = [tensor("INPUT0", FIRST, "INT32", binary), tensor("INPUT1", SECOND, "INT32", binary)]
    return InferRequest("add_sub", inputs, request_outputs=outputs, **options)


def values(response) -> dict[str, np.ndarray]:
    return {output.name: output.as_numpy() for output in response.outputs}


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "JSON"])
def test_an_inference_is_answered(with_client, binary):
    async def work(api):
        return await api.infer(add_sub(binary, request_id="7"))

    response = with_client(work)
    assert (response.id, response.model_name) == ("7", "add_sub")
    np.testing.assert_array_equal(values(response)["OUTPUT0"], FIRST + SECOND)
    np.testing.assert_array_equal(values(response)["OUTPUT1"], FIRST - SECOND)


def test_only_the_outputs_that_were_asked_for_come_back(with_client):
    async def work(api):
        return await api.infer(add_sub(outputs=[RequestedOutput("OUTPUT1")]))

    assert list(values(with_client(work))) == ["OUTPUT1"]


def test_outputs_come_binary_over_rest_where_asked_for(server):
    async def work():
        outputs = [RequestedOutput("OUTPUT0", parameters={"binary_data": True})]
        async with InferenceRESTClient(RESTConfig(protocol="v2")) as client:
            headers = {}
            request = add_sub(outputs=outputs)
            response = await client.infer(f"http://{server.http}", request, "add_sub", response_headers=headers)
            return response, headers

    response, headers = asyncio.run(work())
    assert "inference-header-content-length" in headers
    np.testing.assert_array_equal(values(response)["OUTPUT0"], FIRST + SECOND)


def test_strings_come_back(with_client):
    array = np.array([[b"down", "é".encode()]], dtype=object)

    async def work(api):
        return await api.infer(InferRequest("identity_bytes", [tensor("INPUT0", array, "BYTES")]))

    got = values(with_client(work))["OUTPUT0"].reshape(-1)
    assert [item.encode() if isinstance(item, str) else item for item in got] == [b"down", "é".encode()]


def test_many_requests_at_once_get_their_own_answers(with_client):
    async def work(api):
        arrays = [np.full((1, 4), value, np.float32) for value in range(20)]
        requests = [InferRequest("identity_fp32", [tensor("INPUT0", array, "FP32")]) for array in arrays]
        return await asyncio.gather(*map(api.infer, requests))

    assert [values(response)["OUTPUT0"].reshape(-1)[0] for response in with_client(work)] == list(range(20))


def test_models_are_ready_or_not(with_client):
    async def work(api):
        return await api.is_model_ready("add_sub"), await api.is_model_ready("nowhere")

    assert with_client(work) == (True, False)


def test_an_unknown_model_is_not_found(with_client):
    async def work(api):
        request = add_sub()
        request.model_name = "nowhere"
        with pytest.raises((httpx.HTTPStatusError, grpc.RpcError)) as error:
            await api.infer(request)
        return api.status(error.value)

    assert with_client(work) in (404, grpc.StatusCode.NOT_FOUND)


def test_a_missing_input_is_named(with_client):
    async def work(api):
        request = InferRequest("add_sub", [tensor("INPUT0", FIRST, "INT32")])
        with pytest.raises((httpx.HTTPStatusError, grpc.RpcError)) as error:
            await api.infer(request)
        assert "INPUT1" in str(error.value)
        return api.status(error.value)

    assert with_client(work) in (400, grpc.StatusCode.INVALID_ARGUMENT)


def test_the_server_is_live_and_ready_over_grpc(server):
    async def work():
        async with InferenceGRPCClient(server.grpc) as client:
            return await client.is_server_live(), await client.is_server_ready()

    assert asyncio.run(work()) == (True, True)


@pytest.mark.triton_differs(reason="Triton's health has an empty body; the standard has JSON, which this client reads")
def test_the_server_is_live_and_ready_over_rest(server):
    async def work():
        url = f"http://{server.http}"
        async with InferenceRESTClient(RESTConfig(protocol="v2")) as client:
            return await client.is_server_live(url), await client.is_server_ready(url)

    assert asyncio.run(work()) == (True, True)


@pytest.mark.triton_differs(reason="Triton says text/plain here, and the client reads the sentence only from JSON")
def test_the_sentence_of_an_unknown_model_is_read_over_rest(server):
    async def work():
        async with InferenceRESTClient(RESTConfig(protocol="v2")) as client:
            with pytest.raises(httpx.HTTPStatusError) as error:
                await client.infer(f"http://{server.http}", add_sub(), "nowhere")
            return str(error.value)

    sentence, _, _ = asyncio.run(work()).partition("for url")
    assert "nowhere" in sentence
