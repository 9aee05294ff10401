"""What a wrong request gets: the right status, a sentence that names what is wrong, and a server that goes on."""

import numpy as np
import pytest

ROW = np.zeros((1, 4), np.float32)
SIXTEEN = np.zeros((1, 16), np.int32)


@pytest.fixture(autouse=True)
def goes_on(api):
    """After every wrong request the server answers a right one."""
    yield
    np.testing.assert_array_equal(api.infer("labelled", ROW).as_numpy("OUTPUT0"), ROW)


def test_an_unknown_model_is_not_found(api):
    failure = api.failure(api.infer, "nowhere", ROW)
    assert failure.kind == "unknown" and "nowhere" in failure.message


def test_an_unknown_version_is_not_found(api):
    failure = api.failure(api.infer, "labelled", ROW, model_version="9")
    assert failure.kind == "unknown" and "labelled" in failure.message and "9" in failure.message


def test_a_version_that_the_policy_leaves_out_is_not_found(api):
    assert api.failure(api.infer, "versioned", ROW, model_version="2").kind == "unknown"


def test_a_version_that_is_no_number_is_refused(api):
    assert api.failure(api.infer, "labelled", ROW, model_version="newest").kind in ("invalid", "unknown")


def test_an_input_that_the_model_does_not_have_is_refused(api):
    failure = api.failure(api.client.infer, "labelled", [api.input("SOMETHING", ROW)])
    assert failure.kind == "invalid" and "SOMETHING" in failure.message


def test_an_input_too_many_is_refused(api):
    assert api.failure(api.infer, "labelled", ROW, ROW).kind == "invalid"


def test_a_missing_input_is_refused_by_name(api):
    failure = api.failure(api.infer, "add_sub", SIXTEEN)
    assert failure.kind == "invalid" and "INPUT1" in failure.message


def test_an_input_given_twice_is_refused(api):
    tensor = api.input("INPUT0", ROW)
    assert api.failure(api.client.infer, "labelled", [tensor, tensor]).kind == "invalid"


def test_another_data_type_is_refused(api):
    failure = api.failure(api.infer, "labelled", ROW.astype(np.float64))
    assert failure.kind == "invalid" and "INPUT0" in failure.message and "FP64" in failure.message


@pytest.mark.parametrize("shape", [(1, 3), (1, 5), (4,), (1, 4, 1), (1, 2, 2)], ids=str)
def test_another_shape_is_refused(api, shape):
    failure = api.failure(api.infer, "labelled", np.zeros(shape, np.float32))
    assert failure.kind == "invalid" and "INPUT0" in failure.message


def test_a_model_without_a_batch_dimension_takes_no_other_shape(api):
    assert api.failure(api.infer, "transpose", np.zeros((1, 3, 2), np.float32)).kind == "invalid"
    assert api.failure(api.infer, "transpose", np.zeros((2, 3), np.float32)).kind == "invalid"


def test_inputs_with_different_numbers_of_rows_are_refused(api):
    assert api.failure(api.infer, "add_sub", SIXTEEN, np.zeros((2, 16), np.int32)).kind == "invalid"


def test_more_rows_than_the_model_takes_are_refused(api):
    failure = api.failure(api.infer, "labelled", np.zeros((9, 4), np.float32))
    assert failure.kind == "invalid" and "8" in failure.message


def test_an_output_that_the_model_does_not_have_is_refused(api):
    failure = api.failure(api.infer, "labelled", ROW, outputs=[api.output("SOMETHING")])
    assert failure.kind == "invalid" and "SOMETHING" in failure.message


def test_a_model_that_fails_when_it_runs_is_an_internal_error(api):
    failure = api.failure(api.infer, "lookup", np.array([[77]]))
    assert failure.kind == "failed" and failure.message
    np.testing.assert_array_equal(api.infer("lookup", np.array([[2]])).as_numpy("OUTPUT0"), [[12]])


def test_asking_a_model_that_is_not_loaded_is_not_found(api):
    failure = api.failure(api.infer, "broken", ROW)
    assert failure.kind == "unknown" and "broken" in failure.message
