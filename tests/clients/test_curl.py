"""Plain HTTP, as curl sends it."""

import gzip
import json
import socket
import struct
import subprocess
import zlib
from dataclasses import dataclass

import pytest

JSON_ROW = '{"inputs":[{"name":"INPUT0","shape":[1,4],"datatype":"FP32","data":[1,2,3,4]}]}'
RAW_ROW = struct.pack("<4f", 1, 2, 3, 4)


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self):
        return json.loads(self.body)


@pytest.fixture
def curl(server):
    def ask(path: str, data: str | bytes | None = None, *options: str, **headers: str) -> Answer:
        command = ["curl", "--silent", "--show-error", "--include", "--max-time", "60", *options]
        for name, value in headers.items():
            command += ["--header", f"{name.replace('_', '-')}: {value}"]
        if data is not None:
            command += ["--data-binary", "@-", "--header", "Expect:"]
        command.append(f"http://{server.http}{path}")
        body = data.encode() if isinstance(data, str) else data
        output = subprocess.run(command, input=body, stdout=subprocess.PIPE, check=True).stdout
        head, _, body = output.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        pairs = (line.split(": ", 1) for line in lines)
        return Answer(int(first.split()[1]), {name.lower(): value for name, value in pairs}, body)

    return ask


@pytest.mark.parametrize("path", ["/v2/health/live", "/v2/health/ready", "/v2/models/labelled/ready"])
def test_health_is_a_status(curl, path):
    assert curl(path).status == 200


@pytest.mark.parametrize("path", ["/v2/models/nowhere/ready", "/v2/models/labelled/versions/9/ready"])
def test_what_is_not_ready_is_a_client_error_with_a_sentence(curl, path):
    answer = curl(path)
    assert answer.status in (400, 404) and answer.json()["error"]


def test_json_in_gives_json_out(curl):
    answer = curl("/v2/models/labelled/infer", JSON_ROW, Content_Type="application/json")
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert "inference-header-content-length" not in answer.headers
    body = answer.json()
    assert (body["model_name"], body["model_version"]) == ("labelled", "1")
    assert body["outputs"] == [
        {"name": "OUTPUT0", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]},
        {"name": "OUTPUT1", "datatype": "FP32", "shape": [1, 4], "data": [-1, -2, -3, -4]},
    ]


def test_the_content_type_that_curl_sets_by_itself_is_no_obstacle(curl):
    assert curl("/v2/models/labelled/infer", JSON_ROW).status == 200


def test_data_may_be_nested_as_the_shape_is(curl):
    nested = '{"inputs":[{"name":"INPUT0","shape":[3,2],"datatype":"FP32","data":[[1,2],[3,4],[5,6]]}]}'
    answer = curl("/v2/models/transpose/infer", nested)
    assert answer.json()["outputs"][0]["data"] == [1, 3, 5, 2, 4, 6]


def test_a_version_may_be_named_in_the_path(curl):
    answer = curl("/v2/models/versioned/versions/1/infer", JSON_ROW)
    assert answer.json()["model_version"] == "1"
    assert answer.json()["outputs"][0]["data"] == [2, 3, 4, 5]


def test_an_empty_list_of_outputs_asks_for_all(curl):
    answer = curl("/v2/models/labelled/infer", JSON_ROW[:-1] + ',"outputs":[]}')
    assert len(answer.json()["outputs"]) == 2


def test_a_binary_answer_has_its_tensors_behind_the_json(curl):
    request = JSON_ROW[:-1] + ',"parameters":{"binary_data_output":true}}'
    answer = curl("/v2/models/labelled/infer", request)
    assert answer.headers["content-type"] == "application/octet-stream"
    length = int(answer.headers["inference-header-content-length"])
    outputs = json.loads(answer.body[:length])["outputs"]
    assert [output["parameters"]["binary_data_size"] for output in outputs] == [16, 16]
    assert answer.body[length:] == RAW_ROW + struct.pack("<4f", -1, -2, -3, -4)


def binary_request(raw: bytes, size: int = 16) -> tuple[bytes, str]:
    """A request with one binary tensor, and the length of its JSON."""
    tensor = {"name": "INPUT0", "shape": [1, 4], "datatype": "FP32", "parameters": {"binary_data_size": size}}
    header = json.dumps({"inputs": [tensor]}).encode()
    return header + raw, str(len(header))


def test_a_binary_request_gets_json_unless_it_asks_for_more(curl):
    body, length = binary_request(RAW_ROW)
    answer = curl("/v2/models/labelled/infer", body, Inference_Header_Content_Length=length)
    assert answer.json()["outputs"][0]["data"] == [1, 2, 3, 4]


@pytest.mark.parametrize("model", ["labelled", "identity_fp32"])
def test_with_a_header_length_of_zero_the_body_is_the_one_input(curl, model):
    """The shape is the model's, with one row; a dynamic axis takes what is there. The answer is binary."""
    answer = curl(
        f"/v2/models/{model}/infer",
        RAW_ROW,
        Inference_Header_Content_Length="0",
        Content_Type="application/octet-stream",
    )
    assert answer.status == 200
    length = int(answer.headers["inference-header-content-length"])
    assert json.loads(answer.body[:length])["outputs"][0]["shape"] == [1, 4]
    assert answer.body[length : length + 16] == RAW_ROW


@pytest.mark.parametrize(("model", "raw"), [("labelled", RAW_ROW[:12]), ("labelled", b""), ("add_sub", RAW_ROW)])
def test_a_raw_body_must_fit_the_one_input(curl, model, raw):
    answer = curl(f"/v2/models/{model}/infer", raw, Inference_Header_Content_Length="0")
    assert answer.status == 400 and answer.json()["error"]


@pytest.mark.parametrize(
    ("raw", "size", "length"),
    [
        pytest.param(RAW_ROW[:12], 16, None, id="tensor truncated"),
        pytest.param(RAW_ROW + RAW_ROW, 16, None, id="bytes left over"),
        pytest.param(RAW_ROW[:12], 12, None, id="size that does not fit the shape"),
        pytest.param(RAW_ROW, 16, "9999", id="header longer than the body"),
        pytest.param(RAW_ROW, 16, "-5", id="negative header length"),
        pytest.param(RAW_ROW, 16, "many", id="header length that is no number"),
    ],
)
def test_binary_bodies_whose_sizes_disagree_are_refused(curl, raw, size, length):
    body, right = binary_request(raw, size)
    answer = curl("/v2/models/labelled/infer", body, Inference_Header_Content_Length=length or right)
    assert answer.status == 400 and answer.json()["error"]


WRONG_JSON = [
    pytest.param("garbage", id="not JSON"),
    pytest.param("{}", id="no inputs"),
    pytest.param('{"id":7,' + JSON_ROW[1:], id="id that is no string"),
    pytest.param(JSON_ROW.replace("[1,2,3,4]", "[1,2,3]"), id="too few values"),
    pytest.param(JSON_ROW.replace("[1,2,3,4]", "[1,2,3,4,5]"), id="too many values"),
    pytest.param(JSON_ROW.replace("[1,2,3,4]", '["a","b","c","d"]'), id="values of another type"),
    pytest.param(JSON_ROW.replace("[1,4]", "[1,-4]"), id="negative dimension"),
    pytest.param('{"parameters":{"timeout":"soon"},' + JSON_ROW[1:], id="timeout that is no number"),
]


@pytest.mark.parametrize("body", WRONG_JSON)
def test_json_that_makes_no_sense_is_answered_with_a_sentence(curl, body):
    answer = curl("/v2/models/labelled/infer", body)
    assert 400 <= answer.status <= 500 and answer.json()["error"]


@pytest.mark.triton_differs(reason="Triton calls what it cannot read its own error: 500")
@pytest.mark.parametrize("body", WRONG_JSON)
def test_json_that_makes_no_sense_is_the_clients_error(curl, body):
    assert curl("/v2/models/labelled/infer", body).status == 400


@pytest.mark.parametrize(
    "body",
    [
        pytest.param('{"inputs":[]}', id="no inputs"),
        pytest.param(JSON_ROW.replace("FP32", "FP33"), id="unknown data type"),
        pytest.param(JSON_ROW.replace(',"data":[1,2,3,4]', ""), id="no data"),
        pytest.param(JSON_ROW[:-1] + ',"parameters":{"list":[1]}}', id="parameter that is a list"),
    ],
)
def test_json_that_asks_for_the_impossible_is_the_clients_error(curl, body):
    answer = curl("/v2/models/labelled/infer", body)
    assert answer.status == 400 and answer.json()["error"]


@pytest.mark.triton_differs(reason="Triton cuts numbers to the bits that fit: 300 becomes 44")
def test_a_number_that_its_type_cannot_hold_is_refused(curl):
    body = '{"inputs":[{"name":"INPUT0","shape":[1,1],"datatype":"INT8","data":[300]}]}'
    assert curl("/v2/models/identity_int8/infer", body).status == 400


@pytest.mark.parametrize(("name", "compress"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_a_compressed_request_is_read(curl, name, compress):
    answer = curl("/v2/models/labelled/infer", compress(JSON_ROW.encode()), Content_Encoding=name)
    assert answer.json()["outputs"][0]["data"] == [1, 2, 3, 4]


def test_the_length_header_of_a_compressed_request_speaks_of_the_uncompressed_body(curl):
    body, length = binary_request(RAW_ROW)
    answer = curl(
        "/v2/models/labelled/infer",
        gzip.compress(body),
        Content_Encoding="gzip",
        Inference_Header_Content_Length=length,
    )
    assert answer.json()["outputs"][0]["data"] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("accepted", "used"),
    [
        ("gzip", "gzip"),
        ("deflate", "deflate"),
        ("gzip;q=0.1, deflate;q=0.9", "deflate"),
        ("br", None),
        ("identity", None),
    ],
)
def test_an_answer_is_compressed_as_the_client_prefers(curl, accepted, used):
    answer = curl("/v2/models/labelled/infer", JSON_ROW, Accept_Encoding=accepted)
    assert answer.headers.get("content-encoding") == used
    uncompress = {"gzip": gzip.decompress, "deflate": zlib.decompress, None: bytes}[used]
    assert json.loads(uncompress(answer.body))["outputs"][0]["data"] == [1, 2, 3, 4]


def test_a_compression_that_the_server_does_not_know_is_refused(curl):
    answer = curl("/v2/models/labelled/infer", JSON_ROW, Content_Encoding="br")
    assert answer.status in (415, 501) and answer.json()["error"]


@pytest.mark.triton_differs(reason="Triton takes a body that it cannot uncompress for an empty one")
def test_a_body_that_is_not_compressed_as_it_says_is_refused(curl):
    answer = curl("/v2/models/identity_fp32/infer", JSON_ROW, Content_Encoding="gzip")
    assert answer.status == 400 and answer.json()["error"]


def test_a_path_that_does_not_exist_is_not_found(curl):
    answer = curl("/v2/nowhere")
    assert answer.status == 404 and answer.json()["error"]


def test_a_method_that_a_path_does_not_have_is_not_allowed(curl):
    for answer in (curl("/v2/models/labelled/infer"), curl("/v2", "{}"), curl("/v2/repository/index")):
        assert answer.status == 405 and answer.json()["error"]


def test_the_index_can_be_asked_for_what_is_ready(curl):
    answer = curl("/v2/repository/index", '{"ready":true}')
    assert {entry["state"] for entry in answer.json()} == {"READY"}
    assert {entry["name"] for entry in curl("/v2/repository/index", "").json()} > {"broken", "labelled"}


def test_errors_are_json_whatever_the_status(curl):
    answer = curl("/v2/models/nowhere/infer", JSON_ROW)
    assert answer.status == 404
    assert list(answer.json()) == ["error"]


def test_a_client_that_hangs_up_harms_nobody(curl, server):
    body = '{"inputs":[{"name":"INPUT0","shape":[1,1],"datatype":"FP32","data":[7]}]}'
    head = f"POST /v2/models/slow/infer HTTP/1.1\r\nHost: {server.http}\r\nContent-Length: {len(body)}\r\n\r\n"
    for sent in (head, head + body[:20], head + body):
        with socket.create_connection(("127.0.0.1", server.http_port)) as connection:
            connection.sendall(sent.encode())
    assert curl("/v2/models/slow/infer", body).json()["outputs"][0]["data"] == [7]
