"""ModelStreamInfer: many requests over one call."""

import queue

import grpc
import numpy as np
import pytest
import tritonclient.grpc as triton
from tritonclient.grpc import service_pb2 as messages
from tritonclient.grpc.service_pb2_grpc import GRPCInferenceServiceStub


class Stream:
    """An open stream of Triton's client, and what came back over it."""

    def __init__(self, client):
        self.client = client
        self.answers = queue.Queue()
        client.start_stream(lambda result, error: self.answers.put((result, error)))

    def send(self, id, model="identity_fp32", array=None, **options):
        array = np.zeros((1, 4), np.float32) if array is None else array
        tensor = triton.InferInput("INPUT0", list(array.shape), triton.np_to_triton_dtype(array.dtype))
        self.client.async_stream_infer(model, [tensor.set_data_from_numpy(array)], request_id=id, **options)

    def receive(self):
        return self.answers.get(timeout=60)


@pytest.fixture
def stream(server):
    with triton.InferenceServerClient(server.grpc) as client:
        yield Stream(client)
        client.stop_stream()


def test_every_request_gets_its_answer(stream):
    for value in range(10):
        stream.send(str(value), array=np.full((1, 4), value, np.float32))
    for _ in range(10):
        result, error = stream.receive()
        assert error is None
        assert result.as_numpy("OUTPUT0")[0, 0] == int(result.get_response().id)


def test_answers_come_in_the_order_of_the_requests(stream):
    sent = ["slow", "first", "second"]
    stream.send("slow", "slow", np.array([[1]], np.float32))
    stream.send("first")
    stream.send("second")
    assert [stream.receive()[0].get_response().id for _ in sent] == sent


def test_an_error_is_one_answer_and_the_stream_goes_on(stream):
    stream.send("before")
    stream.send("unknown", "nowhere")
    stream.send("failing", "lookup", np.array([[77]]))
    stream.send("wrong", "labelled", np.zeros((1, 3), np.float32))
    stream.send("after")
    answers = [stream.receive() for _ in range(5)]
    assert [result.get_response().id if error is None else "error" for result, error in answers] == [
        "before",
        "error",
        "error",
        "error",
        "after",
    ]
    assert "nowhere" in answers[1][1].message()


def test_the_one_answer_to_a_request_is_marked_as_its_last(stream):
    stream.send("only", enable_empty_final_response=True)
    response = stream.receive()[0].get_response()
    assert response.parameters["triton_final_response"].bool_param


def test_an_error_in_the_stream_says_whose_it_is(server):
    """Triton's Python client drops the id of a failed request; other clients need it."""
    requests = [
        messages.ModelInferRequest(model_name="identity_fp32", id=id, inputs=[fp32_row()], raw_input_contents=[raw])
        for id, raw in [("short", bytes(7)), ("right", bytes(8))]
    ]
    with grpc.insecure_channel(server.grpc) as channel:
        answers = list(GRPCInferenceServiceStub(channel).ModelStreamInfer(iter(requests)))
    assert [bool(answer.error_message) for answer in answers] == [True, False]
    assert [answer.infer_response.id for answer in answers] == ["short", "right"]


def fp32_row():
    return messages.ModelInferRequest.InferInputTensor(name="INPUT0", datatype="FP32", shape=[1, 2])


def test_two_streams_do_not_mix(server):
    with triton.InferenceServerClient(server.grpc) as one, triton.InferenceServerClient(server.grpc) as other:
        streams = [Stream(one), Stream(other)]
        for value in range(5):
            for index, stream in enumerate(streams):
                stream.send(f"{index}-{value}")
        for index, stream in enumerate(streams):
            ids = [stream.receive()[0].get_response().id for _ in range(5)]
            assert ids == [f"{index}-{value}" for value in range(5)]
            stream.client.stop_stream()
