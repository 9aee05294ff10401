"""`model.py` of every test model on Triton: runs the ONNX file beside it, so that both servers run the same model."""

from pathlib import Path

import numpy as np
import onnxruntime
import triton_python_backend_utils as backend


class TritonPythonModel:
    def initialize(self, args):
        file = Path(args["model_repository"], args["model_version"], "model.onnx")
        self.batched = '"max_batch_size":0' not in args["model_config"]
        # ONNX Runtime has no BF16 in Python. The one model that needs it returns its input.
        self.returns_input = "TYPE_BF16" in args["model_config"]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        self.inputs = [tensor.name for tensor in self.session.get_inputs()]
        self.outputs = [tensor.name for tensor in self.session.get_outputs()]

    def execute(self, requests):
        if self.returns_input:
            return [self.echo(request) for request in requests]
        if not self.batched:
            return [self.respond(self.session.run(None, self.feed([request]))) for request in requests]
        sizes = [request.inputs()[0].shape()[0] for request in requests]
        results = self.session.run(None, self.feed(requests))
        ends = np.cumsum(sizes)
        return [self.respond([result[end - size : end] for result in results]) for size, end in zip(sizes, ends)]

    def feed(self, requests):
        """The inputs of all requests, one after the other."""
        return {
            name: np.concatenate([read(backend.get_input_tensor_by_name(r, name)) for r in requests])
            for name in self.inputs
        }

    def respond(self, results):
        return backend.InferenceResponse(
            [backend.Tensor(name, write(result)) for name, result in zip(self.outputs, results)]
        )

    def echo(self, request):
        tensor = backend.get_input_tensor_by_name(request, self.inputs[0])
        return backend.InferenceResponse([backend.Tensor.from_dlpack(self.outputs[0], tensor.to_dlpack())])


def read(tensor):
    array = tensor.as_numpy()
    return np.vectorize(bytes.decode, otypes=[object])(array) if array.dtype == object else array


def write(array):
    return np.vectorize(str.encode, otypes=[object])(array) if array.dtype == object else np.ascontiguousarray(array)
