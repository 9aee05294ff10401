"""Every data type there and back, as bytes and as JSON."""

import ml_dtypes
import numpy as np
import pytest
from models import DATA_TYPES

NUMPY = {
    "BOOL": np.bool_,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "FP16": np.float16,
    "FP32": np.float32,
    "FP64": np.float64,
    "BF16": ml_dtypes.bfloat16,
    "BYTES": np.object_,
}


def sample(datatype: str) -> np.ndarray:
    """Two rows with the values at which a conversion would show."""
    kind = NUMPY[datatype]
    if datatype == "BOOL":
        values = [True, False, True, False, False, True]
    elif datatype == "BYTES":
        values = [b"", b"a", "gr\u00fc\u00df dich \U0001f3b5".encode(), b"x" * 70_000, b'"\\/\n', b"1"]
    elif np.issubdtype(kind, np.integer):
        limits = np.iinfo(kind)
        values = [limits.min, limits.max, 0, 1, limits.max - 1, limits.min + 1]
    else:
        values = [0.0, -0.0, 1.0, -2.5, 2.0**-14, 2.0**15]
    return np.array(values, dtype=kind).reshape(2, 3)


def assert_identical(got: np.ndarray, sent: np.ndarray):
    assert got.shape == sent.shape
    if sent.dtype == np.object_:
        assert got.tolist() == sent.tolist()
    else:
        assert got.dtype == sent.dtype
        assert got.tobytes() == sent.tobytes()


@pytest.mark.parametrize("datatype", DATA_TYPES)
def test_a_tensor_comes_back_as_it_was_sent(api, datatype):
    array = sample(datatype)
    tensor = api.input("INPUT0", array, datatype)
    result = api.client.infer(f"identity_{datatype.lower()}", [tensor])
    assert_identical(result.as_numpy("OUTPUT0"), array)


@pytest.mark.parametrize("datatype", ["FP16", "FP32", "FP64", "BF16"])
def test_infinities_and_nan_come_back_in_binary(api, datatype):
    array = np.array([[np.inf, -np.inf, np.nan]], dtype=NUMPY[datatype])
    tensor = api.input("INPUT0", array, datatype)
    result = api.client.infer(f"identity_{datatype.lower()}", [tensor])
    assert_identical(result.as_numpy("OUTPUT0"), array)


@pytest.mark.parametrize("datatype", DATA_TYPES)
def test_metadata_names_the_data_type(api, datatype):
    answer = api.json("get_model_metadata", f"identity_{datatype.lower()}")
    assert answer["inputs"][0]["datatype"] == datatype
    assert answer["outputs"][0]["datatype"] == datatype
