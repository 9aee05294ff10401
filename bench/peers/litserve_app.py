"""A LitServe server of emulated devices. A worker is a device; where there are several models, each has one worker."""

import json
import sys
import time

import litserve


class Emulated(litserve.LitAPI):
    def __init__(self, model: dict):
        super().__init__(
            max_batch_size=model["max_batch"],
            batch_timeout=model["wait_s"],
            api_path=f"/v2/models/{model['name']}/infer",
        )
        self.name, self.alpha_s, self.beta_s = model["name"], model["alpha_s"], model["beta_s"]

    def setup(self, device):
        pass

    def decode_request(self, request):
        return request["inputs"][0]["data"]

    def batch(self, inputs):
        return inputs

    def predict(self, inputs):
        rows = len(inputs) if isinstance(inputs[0], list) else 1
        time.sleep(self.alpha_s * rows + self.beta_s)
        return [[0.0] * 4] * rows

    def unbatch(self, output):
        return output

    def encode_response(self, output):
        tensor = {"name": "y", "datatype": "FP32", "shape": [1, 4], "data": [0.0] * 4}
        return {"model_name": self.name, "outputs": [tensor]}


if __name__ == "__main__":
    setup = json.loads(sys.argv[1])
    apis = [Emulated(model) for model in setup["models"]]
    server = litserve.LitServer(
        apis,
        accelerator="cpu",
        devices=1,
        workers_per_device=setup["devices"] // len(apis),
        healthcheck_path="/v2/health/ready",
        timeout=False,
    )
    # One process that reads requests: by default there is one per worker, and they take each other's time on a small host.
    server.run(
        host="127.0.0.1",
        port=setup["port"],
        num_api_servers=1,
        generate_client_file=False,
        log_level="warning",
    )
