"""Ray Serve with emulated devices. A replica is a device; where there are several models, each has one replica."""

import asyncio
import json
import sys
import time

import ray
from ray import serve
from starlette.requests import Request


@serve.deployment
class Emulated:
    def __init__(self, model: dict):
        self.name, self.alpha_s, self.beta_s = model["name"], model["alpha_s"], model["beta_s"]
        self.run.set_max_batch_size(model["max_batch"])
        self.run.set_batch_wait_timeout_s(model["wait_s"])

    @serve.batch
    async def run(self, inputs: list) -> list:
        await asyncio.sleep(self.alpha_s * len(inputs) + self.beta_s)
        return [[0.0] * 4] * len(inputs)

    async def __call__(self, request: Request) -> dict:
        body = await request.json()
        output = await self.run(body["inputs"][0]["data"])
        tensor = {"name": "y", "datatype": "FP32", "shape": [1, 4], "data": output}
        return {"model_name": self.name, "outputs": [tensor]}


if __name__ == "__main__":
    setup = json.loads(sys.argv[1])
    ray.init(num_cpus=64, include_dashboard=False, log_to_driver=False, object_store_memory=200 << 20)
    serve.start(http_options={"host": "127.0.0.1", "port": setup["port"]})
    for model in setup["models"]:
        app = Emulated.options(
            name=model["name"],
            num_replicas=setup["devices"] // len(setup["models"]),
            max_ongoing_requests=model["ongoing"],
            ray_actor_options={"num_cpus": 1},
        ).bind(model)
        serve.run(app, name=model["name"], route_prefix=f"/v2/models/{model['name']}")
    while True:
        time.sleep(3600)
