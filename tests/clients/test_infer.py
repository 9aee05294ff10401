"""Inference, over either protocol."""

import queue

import numpy as np
import pytest

FIRST = np.arange(16, dtype=np.int32).reshape(1, 16)
SECOND = np.full((1, 16), 3, dtype=np.int32)


def test_two_inputs_give_two_outputs(api):
    result = api.infer("add_sub", FIRST, SECOND)
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), FIRST + SECOND)
    np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), FIRST - SECOND)


def test_inputs_may_come_in_any_order(api):
    inputs = [api.input("INPUT1", SECOND), api.input("INPUT0", FIRST)]
    result = api.client.infer("add_sub", inputs)
    np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), FIRST - SECOND)


def test_only_the_outputs_that_were_asked_for_come_back(api):
    result = api.infer("add_sub", FIRST, SECOND, outputs=[api.output("OUTPUT1")])
    np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), FIRST - SECOND)
    assert result.as_numpy("OUTPUT0") is None


def test_the_answer_names_model_version_and_request(api):
    result = api.infer("versioned", np.zeros((1, 4), np.float32), request_id="request 7")
    response = api.response(result)
    assert response["model_name"] == "versioned"
    assert response["model_version"] == "3"
    assert response["id"] == "request 7"


@pytest.mark.parametrize(("version", "amount"), [("", 3), ("1", 1), ("3", 3)])
def test_the_latest_version_answers_unless_one_is_named(api, version, amount):
    result = api.infer("versioned", np.zeros((1, 4), np.float32), model_version=version)
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), np.full((1, 4), amount, np.float32))


@pytest.mark.parametrize("rows", [1, 2, 8])
def test_a_request_may_hold_several_rows(api, rows):
    array = np.arange(rows * 5, dtype=np.float32).reshape(rows, 5)
    np.testing.assert_array_equal(api.infer("identity_fp32", array).as_numpy("OUTPUT0"), array)


@pytest.mark.parametrize("length", [1, 7, 1000])
def test_a_dynamic_axis_takes_any_length(api, length):
    array = np.ones((2, length), dtype=np.float32)
    np.testing.assert_array_equal(api.infer("row_sum", array).as_numpy("OUTPUT0"), [[length], [length]])


def test_a_dynamic_axis_may_be_empty(api):
    result = api.infer("identity_fp32", np.zeros((1, 0), np.float32)).as_numpy("OUTPUT0")
    assert result.shape == (1, 0)


def test_a_model_without_a_batch_dimension_takes_the_declared_shape(api):
    array = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.testing.assert_array_equal(api.infer("transpose", array).as_numpy("OUTPUT0"), array.T)


def test_strings_are_computed_with(api):
    left = np.array([[b"down", "é".encode()]], dtype=object)
    right = np.array([[b"beat", b""]], dtype=object)
    result = api.infer("concat", left, right).as_numpy("OUTPUT0")
    assert result.tolist() == [[b"downbeat", "é".encode()]]


def test_classes_come_as_value_index_and_label(api):
    array = np.array([[1, 2.5, 3, 4], [9, 8, 7, 6]], dtype=np.float32)
    result = api.infer("labelled", array, outputs=[api.output("OUTPUT0", class_count=2)])
    assert result.as_numpy("OUTPUT0").tolist() == [
        [b"4.000000:3:fish", b"3.000000:2:bird"],
        [b"9.000000:0:cat", b"8.000000:1:dog"],
    ]


def test_classes_without_labels_come_as_value_and_index(api):
    array = np.array([[1, 2.5, 3, 4]], dtype=np.float32)
    result = api.infer("labelled", array, outputs=[api.output("OUTPUT1", class_count=9)])
    assert result.as_numpy("OUTPUT1").tolist() == [[b"-1.000000:0", b"-2.500000:1", b"-3.000000:2", b"-4.000000:3"]]


def test_classes_of_integers_have_no_fraction(api):
    result = api.infer(
        "identity_int32", np.array([[1, 3, 2]], np.int32), outputs=[api.output("OUTPUT0", class_count=1)]
    )
    assert result.as_numpy("OUTPUT0").tolist() == [[b"3:1"]]


def test_parameters_that_a_server_does_not_know_change_nothing(api):
    result = api.infer("add_sub", FIRST, SECOND, parameters={"mood": "good", "tries": 3, "really": True})
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), FIRST + SECOND)


def test_a_request_may_have_a_priority_and_a_timeout(api):
    result = api.infer("add_sub", FIRST, SECOND, priority=1, timeout=50_000_000)
    np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), FIRST + SECOND)


def test_megabytes_go_through(api):
    array = np.random.default_rng(2).standard_normal((1, 2_000_000), dtype=np.float32)
    np.testing.assert_array_equal(api.infer("identity_fp32", array).as_numpy("OUTPUT0"), array)


def test_a_slow_model_answers_what_it_was_asked(api):
    result = api.infer("slow", np.array([[4]], np.float32)).as_numpy("OUTPUT0")
    np.testing.assert_array_equal(result, [[4]])


def test_a_client_can_have_several_requests_under_way(api):
    arrays = {str(value): np.full((1, 64), value, np.float32) for value in range(8)}
    for answer in asked_at_once(api, arrays):
        array = arrays.pop(api.response(answer)["id"])
        np.testing.assert_array_equal(answer.as_numpy("OUTPUT0"), array)
    assert not arrays


def asked_at_once(api, arrays):
    """The answers to all requests, in whatever order they came. The two clients differ in how they hand them out."""
    requests = [("identity_fp32", [api.input("INPUT0", array)], id) for id, array in arrays.items()]
    if api.name == "http":
        handles = [api.client.async_infer(model, inputs, request_id=id) for model, inputs, id in requests]
        return [handle.get_result() for handle in handles]
    answers = queue.Queue()
    for model, inputs, id in requests:
        api.client.async_infer(model, inputs, lambda result, error: answers.put((result, error)), request_id=id)
    received = [answers.get(timeout=60) for _ in requests]
    assert [error for _, error in received if error] == []
    return [result for result, _ in received]
