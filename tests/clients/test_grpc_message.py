"""Requests that Triton's client does not write, but other gRPC clients do."""

import grpc
import numpy as np
import pytest
from tritonclient.grpc import service_pb2 as messages
from tritonclient.grpc.service_pb2_grpc import GRPCInferenceServiceStub


@pytest.fixture
def stub(server):
    with grpc.insecure_channel(server.grpc) as channel:
        yield GRPCInferenceServiceStub(channel)


def request(datatype="FP32", shape=(1, 2), raw=(), **contents):
    """A request to the identity model of a data type, with typed contents or raw ones."""
    tensor = messages.ModelInferRequest.InferInputTensor(name="INPUT0", datatype=datatype, shape=shape)
    for field, values in contents.items():
        getattr(tensor.contents, field).extend(values)
    return messages.ModelInferRequest(
        model_name=f"identity_{datatype.lower()}", inputs=[tensor], raw_input_contents=raw
    )


def code(stub, wrong) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as error:
        stub.ModelInfer(wrong)
    assert error.value.details()
    return error.value.code()


@pytest.mark.parametrize(
    ("datatype", "field", "values", "kind"),
    [
        ("BOOL", "bool_contents", [True, False], np.bool_),
        ("INT8", "int_contents", [-128, 127], np.int8),
        ("INT16", "int_contents", [-(2**15), 2**15 - 1], np.int16),
        ("INT32", "int_contents", [-(2**31), 2**31 - 1], np.int32),
        ("INT64", "int64_contents", [-(2**63), 2**63 - 1], np.int64),
        ("UINT8", "uint_contents", [0, 255], np.uint8),
        ("UINT16", "uint_contents", [0, 2**16 - 1], np.uint16),
        ("UINT32", "uint_contents", [0, 2**32 - 1], np.uint32),
        ("UINT64", "uint64_contents", [0, 2**64 - 1], np.uint64),
        ("FP32", "fp32_contents", [-1.5, 3e38], np.float32),
        ("FP64", "fp64_contents", [-1.5, 1e300], np.float64),
    ],
)
def test_typed_contents_go_in_and_raw_contents_come_out(stub, datatype, field, values, kind):
    answer = stub.ModelInfer(request(datatype, **{field: values}))
    assert answer.raw_output_contents == [np.array(values, kind).tobytes()]
    assert not answer.outputs[0].HasField("contents")


def test_typed_strings_go_in_and_come_out_with_their_lengths(stub):
    answer = stub.ModelInfer(request("BYTES", bytes_contents=[b"ab", b""]))
    assert answer.raw_output_contents == [b"\2\0\0\0ab\0\0\0\0"]


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(request(), id="no contents"),
        pytest.param(request(fp32_contents=[1, 2, 3]), id="too many values"),
        pytest.param(request(fp32_contents=[1]), id="too few values"),
        pytest.param(request(int_contents=[1, 2]), id="values of another type"),
        pytest.param(request(fp32_contents=[1, 2], raw=[bytes(8)]), id="typed and raw"),
        pytest.param(request(raw=[bytes(7)]), id="raw too short"),
        pytest.param(request(raw=[bytes(12)]), id="raw too long"),
        pytest.param(request(raw=[bytes(8)], shape=(1, -2)), id="negative dimension"),
        pytest.param(request(raw=[bytes(8)], shape=()), id="no shape"),
        pytest.param(request("BYTES", raw=[b"\xff\xff\xff\xff"], shape=(1, 1)), id="string longer than the bytes"),
        pytest.param(request("BYTES", raw=[b"\1\0\0\0a"], shape=(1, 2)), id="a string too few"),
    ],
)
def test_contents_that_do_not_fit_are_invalid(stub, wrong):
    assert code(stub, wrong) == grpc.StatusCode.INVALID_ARGUMENT


def test_a_version_that_is_no_number_is_invalid(stub):
    wrong = request(fp32_contents=[1, 2])
    wrong.model_version = "newest"
    assert code(stub, wrong) == grpc.StatusCode.INVALID_ARGUMENT


def test_a_method_that_does_not_exist_is_unimplemented(server):
    with grpc.insecure_channel(server.grpc) as channel, pytest.raises(grpc.RpcError) as error:
        channel.unary_unary("/inference.GRPCInferenceService/Conduct")(b"")
    assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("algorithm", [grpc.Compression.Gzip, grpc.Compression.Deflate], ids=["gzip", "deflate"])
def test_messages_may_be_compressed(stub, algorithm):
    answer = stub.ModelInfer(request(shape=(1, 500), raw=[bytes(2000)]), compression=algorithm)
    assert answer.raw_output_contents == [bytes(2000)]


def test_a_client_that_stops_waiting_harms_nobody(stub):
    slow = messages.ModelInferRequest(model_name="slow", raw_input_contents=[bytes(4)])
    slow.inputs.add(name="INPUT0", datatype="FP32", shape=[1, 1])
    with pytest.raises(grpc.RpcError) as error:
        stub.ModelInfer(slow, timeout=0.001)
    assert error.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    assert stub.ModelInfer(slow).raw_output_contents == [bytes(4)]
