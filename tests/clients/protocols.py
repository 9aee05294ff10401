"""One way to ask through either of Triton's Python clients, which have the same classes and nearly the same calls."""

from dataclasses import dataclass
from types import ModuleType

import numpy as np
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

# What went wrong, and how each protocol says it.
STATUS = {
    "invalid": {"http": "400", "grpc": "StatusCode.INVALID_ARGUMENT"},
    "unknown": {"http": "404", "grpc": "StatusCode.NOT_FOUND"},
    "failed": {"http": "500", "grpc": "StatusCode.INTERNAL"},
    "unimplemented": {"http": "501", "grpc": "StatusCode.UNIMPLEMENTED"},
    "expired": {"http": "504", "grpc": "StatusCode.DEADLINE_EXCEEDED"},
}


@dataclass(frozen=True)
class Failure:
    """How a call failed: a key of `STATUS`, or what the protocol said where that has none."""

    kind: str
    message: str


class Protocol:
    """A client of one protocol."""

    def __init__(self, name: str, address: str):
        self.name = name
        self.module: ModuleType = {"http": tritonclient.http, "grpc": tritonclient.grpc}[name]
        # A connection for each of the requests that a test has under way at once.
        options = {"concurrency": 8} if name == "http" else {}
        self.client = self.module.InferenceServerClient(address, **options)

    def input(self, name: str, array: np.ndarray, datatype: str | None = None):
        tensor = self.module.InferInput(name, list(array.shape), datatype or np_to_triton_dtype(array.dtype))
        return tensor.set_data_from_numpy(array)

    def output(self, name: str, **options):
        return self.module.InferRequestedOutput(name, **options)

    def infer(self, model: str, *arrays: np.ndarray, **options):
        """Asks with the arrays as INPUT0, INPUT1 and so on."""
        inputs = [self.input(f"INPUT{index}", array) for index, array in enumerate(arrays)]
        return self.client.infer(model, inputs, **options)

    def failure(self, call, *arguments, **options) -> Failure:
        """How a call fails, which it must."""
        try:
            result = call(*arguments, **options)
        except InferenceServerException as error:
            kinds = {status[self.name]: kind for kind, status in STATUS.items()}
            return Failure(kinds.get(error.status(), str(error.status())), error.message())
        raise AssertionError(f"expected a failure, got {result}")

    def json(self, call: str, *arguments) -> dict:
        """What a call answers, as JSON. Over gRPC 64-bit numbers come as strings and zeros not at all."""
        method = getattr(self.client, call)
        return method(*arguments) if self.name == "http" else method(*arguments, as_json=True)

    def response(self, result) -> dict:
        """All that was answered to an inference, as JSON."""
        return result.get_response() if self.name == "http" else result.get_response(as_json=True)
