"""The models that the tests ask: small ONNX graphs, and the repository that holds them.

Each is written once, as ONNX. Downbeat runs the file itself; a Triton without ONNX Runtime runs it through its python
backend (`triton_model.py`), under the same name and the same configuration.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 21
IR_VERSION = 10
MAX_BATCH_SIZE = 8

# Open Inference Protocol name -> ONNX element type.
ONNX_TYPES = {
    "BOOL": TensorProto.BOOL,
    "UINT8": TensorProto.UINT8,
    "UINT16": TensorProto.UINT16,
    "UINT32": TensorProto.UINT32,
    "UINT64": TensorProto.UINT64,
    "INT8": TensorProto.INT8,
    "INT16": TensorProto.INT16,
    "INT32": TensorProto.INT32,
    "INT64": TensorProto.INT64,
    "FP16": TensorProto.FLOAT16,
    "FP32": TensorProto.FLOAT,
    "FP64": TensorProto.DOUBLE,
    "BF16": TensorProto.BFLOAT16,
    "BYTES": TensorProto.STRING,
}
DATA_TYPES = tuple(ONNX_TYPES)


@dataclass(frozen=True)
class Tensor:
    """An input or an output as the configuration declares it: `dims` without the batch dimension."""

    name: str
    datatype: str
    dims: tuple[int, ...]
    labels: tuple[str, ...] = ()

    def onnx(self, batched: bool) -> onnx.ValueInfoProto:
        axes = [f"{self.name}_{axis}" if dim < 0 else dim for axis, dim in enumerate(self.dims)]
        return helper.make_tensor_value_info(
            self.name, ONNX_TYPES[self.datatype], ["batch", *axes] if batched else axes
        )

    def pbtxt(self) -> str:
        kind = "TYPE_STRING" if self.datatype == "BYTES" else f"TYPE_{self.datatype}"
        labels = f' label_filename: "{self.name}_labels.txt"' if self.labels else ""
        return f'{{ name: "{self.name}" data_type: {kind} dims: {list(self.dims)}{labels} }}'


@dataclass(frozen=True)
class Model:
    """A model of the test repository. `versions` holds the nodes and the weights of each version's graph."""

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    versions: dict[int, tuple[list[onnx.NodeProto], dict[str, np.ndarray]]]
    max_batch_size: int = MAX_BATCH_SIZE
    settings: str = ""
    loaded_at_start: bool = True

    def onnx(self, version: int = 1) -> bytes:
        """The model file of a version."""
        nodes, weights = self.versions[version]
        batched = self.max_batch_size > 0
        graph = helper.make_graph(
            nodes,
            self.name,
            [tensor.onnx(batched) for tensor in self.inputs],
            [tensor.onnx(batched) for tensor in self.outputs],
            [numpy_helper.from_array(value, name) for name, value in weights.items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
        onnx.checker.check_model(model)
        return model.SerializeToString()

    def config(self, backend: str) -> str:
        """The configuration file. The SLO is so wide that no test meets it by accident."""
        lines = [
            f'name: "{self.name}"',
            backend,
            f"max_batch_size: {self.max_batch_size}",
            *(f"input {tensor.pbtxt()}" for tensor in self.inputs),
            *(f"output {tensor.pbtxt()}" for tensor in self.outputs),
            "instance_group { count: 1 kind: KIND_CPU }",
            'parameters { key: "slo_ms" value { string_value: "60000" } }',
            self.settings,
        ]
        if self.max_batch_size > 0:
            lines.append("dynamic_batching { }")
        return "\n".join(lines) + "\n"


def node(kind: str, inputs: str, outputs: str, **attributes) -> onnx.NodeProto:
    return helper.make_node(kind, inputs.split(), outputs.split(), **attributes)


def identity(datatype: str) -> Model:
    return Model(
        f"identity_{datatype.lower()}",
        (Tensor("INPUT0", datatype, (-1,)),),
        (Tensor("OUTPUT0", datatype, (-1,)),),
        {1: ([node("Identity", "INPUT0", "OUTPUT0")], {})},
    )


def unary(name: str, nodes, weights=None, dims=(4,), **settings) -> Model:
    """A model from one FP32 tensor to another of the same shape."""
    return Model(
        name,
        (Tensor("INPUT0", "FP32", dims),),
        (Tensor("OUTPUT0", "FP32", dims),),
        {1: (nodes, weights or {})},
        **settings,
    )


def add_sub() -> Model:
    return Model(
        "add_sub",
        (Tensor("INPUT0", "INT32", (16,)), Tensor("INPUT1", "INT32", (16,))),
        (Tensor("OUTPUT0", "INT32", (16,)), Tensor("OUTPUT1", "INT32", (16,))),
        {1: ([node("Add", "INPUT0 INPUT1", "OUTPUT0"), node("Sub", "INPUT0 INPUT1", "OUTPUT1")], {})},
    )


def perceptron() -> Model:
    """Floats that depend on every input and every weight, to compare with ONNX Runtime's own."""
    random = np.random.default_rng(1)
    weights = {
        "first": random.standard_normal((64, 128), dtype=np.float32),
        "second": random.standard_normal((128, 32), dtype=np.float32),
    }
    nodes = [
        node("MatMul", "INPUT0 first", "hidden"),
        node("Tanh", "hidden", "bounded"),
        node("MatMul", "bounded second", "OUTPUT0"),
    ]
    return Model(
        "perceptron",
        (Tensor("INPUT0", "FP32", (64,)),),
        (Tensor("OUTPUT0", "FP32", (32,)),),
        {1: (nodes, weights)},
        max_batch_size=32,
    )


def concat() -> Model:
    return Model(
        "concat",
        (Tensor("INPUT0", "BYTES", (-1,)), Tensor("INPUT1", "BYTES", (-1,))),
        (Tensor("OUTPUT0", "BYTES", (-1,)),),
        {1: ([node("StringConcat", "INPUT0 INPUT1", "OUTPUT0")], {})},
    )


def row_sum() -> Model:
    """A second axis that each request chooses."""
    return Model(
        "row_sum",
        (Tensor("INPUT0", "FP32", (-1,)),),
        (Tensor("OUTPUT0", "FP32", (1,)),),
        {1: ([node("ReduceSum", "INPUT0 axes", "OUTPUT0", keepdims=1)], {"axes": np.array([1])})},
    )


def transpose() -> Model:
    """A model without a batch dimension."""
    return Model(
        "transpose",
        (Tensor("INPUT0", "FP32", (3, 2)),),
        (Tensor("OUTPUT0", "FP32", (2, 3)),),
        {1: ([node("Transpose", "INPUT0", "OUTPUT0", perm=[1, 0])], {})},
        max_batch_size=0,
    )


def labelled() -> Model:
    labels = ("cat", "dog", "bird", "fish")
    return Model(
        "labelled",
        (Tensor("INPUT0", "FP32", (4,)),),
        (Tensor("OUTPUT0", "FP32", (4,), labels), Tensor("OUTPUT1", "FP32", (4,))),
        {1: ([node("Identity", "INPUT0", "OUTPUT0"), node("Neg", "INPUT0", "OUTPUT1")], {})},
    )


def lookup() -> Model:
    """Fails, as a model can, when it runs: where the index is not in the table of four."""
    table = np.array([10, 11, 12, 13], dtype=np.float32)
    return Model(
        "lookup",
        (Tensor("INPUT0", "INT64", (1,)),),
        (Tensor("OUTPUT0", "FP32", (1,)),),
        {1: ([node("Gather", "table INPUT0", "OUTPUT0")], {"table": table})},
    )


def slow() -> Model:
    """Answers what it was asked, after tens of milliseconds of multiplying by a matrix that averages."""
    size, rounds = 256, 200
    steps = [node("MatMul", f"step{i} average", f"step{i + 1}") for i in range(rounds)]
    # [batch, 1] -> [batch, 1, 1] -> [batch, 256, 256] -> [batch, 1, 1] -> [batch, 1]
    nodes = [
        node("Unsqueeze", "INPUT0 last", "cell"),
        node("Expand", "cell square", "step0"),
        *steps,
        node("ReduceMean", f"step{rounds} both", "mean", keepdims=1),
        node("Squeeze", "mean last", "OUTPUT0"),
    ]
    weights = {
        "last": np.array([2]),
        "both": np.array([1, 2]),
        "square": np.array([1, size, size]),
        "average": np.full((size, size), 1 / size, dtype=np.float32),
    }
    return unary("slow", nodes, weights, dims=(1,))


def versioned() -> Model:
    """Version n adds n."""
    nodes = [node("Add", "INPUT0 amount", "OUTPUT0")]
    amounts = {version: {"amount": np.array([version], dtype=np.float32)} for version in (1, 2, 3)}
    return Model(
        "versioned",
        (Tensor("INPUT0", "FP32", (4,)),),
        (Tensor("OUTPUT0", "FP32", (4,)),),
        {version: (nodes, weights) for version, weights in amounts.items()},
        settings="version_policy { specific { versions: [ 1, 3 ] } }",
    )


def negate(name: str, **settings) -> Model:
    return unary(name, [node("Neg", "INPUT0", "OUTPUT0")], **settings)


MODELS = {
    model.name: model
    for model in (
        *map(identity, DATA_TYPES),
        add_sub(),
        perceptron(),
        concat(),
        row_sum(),
        transpose(),
        labelled(),
        lookup(),
        slow(),
        versioned(),
        negate("counted"),
        negate("on_demand", loaded_at_start=False),
        negate("overridden", loaded_at_start=False),
        negate("broken", loaded_at_start=False),
    )
}


LOADED_AT_START = tuple(model.name for model in MODELS.values() if model.loaded_at_start)


def write_repository(folder: Path, backend: str, runner: Path | None = None) -> None:
    """Writes all models in Triton's layout. `runner` is the `model.py` for a server that does not read ONNX itself."""
    for model in MODELS.values():
        home = folder / model.name
        home.mkdir(parents=True)
        (home / "config.pbtxt").write_text(model.config(backend))
        for tensor in model.outputs:
            if tensor.labels:
                (home / f"{tensor.name}_labels.txt").write_text("\n".join(tensor.labels) + "\n")
        for version in model.versions:
            place = home / str(version)
            place.mkdir()
            file = b"this is not a model" if model.name == "broken" else model.onnx(version)
            (place / "model.onnx").write_bytes(file)
            if runner:
                shutil.copy(runner, place / "model.py")
