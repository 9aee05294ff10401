"""Triton's asyncio clients."""

import asyncio

import numpy as np
import pytest
import tritonclient.grpc.aio
import tritonclient.http.aio
from protocols import STATUS
from tritonclient.utils import InferenceServerException

CLIENTS = {"http": tritonclient.http.aio, "grpc": tritonclient.grpc.aio}


@pytest.fixture(params=CLIENTS)
def with_client(request, server):
    """Runs a coroutine function with a client; it must be made inside the event loop."""
    module = CLIENTS[request.param]
    address = getattr(server, request.param)

    def run(work):
        async def inside():
            async with module.InferenceServerClient(address) as client:
                return await work(request.param, module, client)

        return asyncio.run(inside())

    return run


def tensor(module, value):
    array = np.full((1, 4), value, np.float32)
    return module.InferInput("INPUT0", [1, 4], "FP32").set_data_from_numpy(array)


def test_health_and_metadata_are_answered(with_client):
    async def work(_, __, client):
        assert await client.is_server_live()
        assert await client.is_server_ready()
        assert await client.is_model_ready("labelled")
        assert not await client.is_model_ready("nowhere")
        metadata = await client.get_model_metadata("labelled")
        return metadata["name"] if isinstance(metadata, dict) else metadata.name

    assert with_client(work) == "labelled"


def test_many_requests_at_once_get_their_own_answers(with_client):
    async def work(_, module, client):
        requests = (client.infer("identity_fp32", [tensor(module, value)]) for value in range(20))
        return [answer.as_numpy("OUTPUT0")[0, 0] for answer in await asyncio.gather(*requests)]

    assert with_client(work) == list(range(20))


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_bodies_may_be_compressed(with_client, algorithm):
    async def work(protocol, module, client):
        both = {"request_compression_algorithm": algorithm, "response_compression_algorithm": algorithm}
        options = both if protocol == "http" else {"compression_algorithm": algorithm}
        return (await client.infer("identity_fp32", [tensor(module, 5)], **options)).as_numpy("OUTPUT0")

    np.testing.assert_array_equal(with_client(work), np.full((1, 4), 5))


def test_errors_have_their_status(with_client):
    async def work(protocol, module, client):
        with pytest.raises(InferenceServerException) as error:
            await client.infer("nowhere", [tensor(module, 1)])
        assert error.value.status() == STATUS["unknown"][protocol]
        with pytest.raises(InferenceServerException) as error:
            await client.infer("add_sub", [tensor(module, 1)])
        assert error.value.status() == STATUS["invalid"][protocol]

    with_client(work)


def test_a_stream_answers_in_order(server):
    module = tritonclient.grpc.aio

    async def requests():
        for value in range(5):
            yield {"model_name": "identity_fp32", "inputs": [tensor(module, value)], "request_id": str(value)}

    async def work():
        async with module.InferenceServerClient(server.grpc) as client:
            return [
                (result.get_response().id, result.as_numpy("OUTPUT0")[0, 0], error)
                async for result, error in client.stream_infer(requests())
            ]

    assert asyncio.run(work()) == [(str(value), value, None) for value in range(5)]
