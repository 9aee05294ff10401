"""The model of the demo, where set-up has fetched it."""

import os
import re
import shutil
from pathlib import Path

import onnxruntime

ROOT = Path(__file__).parent.parent.parent
TYPES = {"tensor(int32)": "TYPE_INT32", "tensor(float)": "TYPE_FP32"}


def model_file() -> Path | None:
    """The one model of the demo's repository."""
    repository = Path(os.environ.get("DOWNBEAT_DEMO_REPOSITORY", ROOT / ".tools/demo-repository"))
    return next(iter(sorted(repository.glob("*/*/model.onnx"))), None)


def name() -> str:
    return model_file().parent.parent.name


def write_repository(folder: Path, backend: str, runner: Path | None = None) -> None:
    """Copies the demo's repository; for a server that needs a `model.py`, with a configuration that says so."""
    shutil.copytree(model_file().parent.parent.parent, folder)
    home = folder / name()
    if runner is None:
        # What is tested is the numbers, on whatever machine: not how fast they come.
        config = home / "config.pbtxt"
        config.write_text(re.sub(r'"slo_ms"(.*?)"\d+"', r'"slo_ms"\1"60000"', config.read_text(), flags=re.DOTALL))
        return
    shutil.copy(runner, home / model_file().parent.name / "model.py")
    session = onnxruntime.InferenceSession(model_file(), providers=["CPUExecutionProvider"])
    lines = [f'name: "{name()}"', backend, "max_batch_size: 32", "dynamic_batching { }"]
    for kind, tensors in (("input", session.get_inputs()), ("output", session.get_outputs())):
        for tensor in tensors:
            dims = [dim if isinstance(dim, int) else -1 for dim in tensor.shape[1:]]
            lines.append(f'{kind} {{ name: "{tensor.name}" data_type: {TYPES[tensor.type]} dims: {dims} }}')
    (home / "config.pbtxt").write_text("\n".join(lines) + "\n")
