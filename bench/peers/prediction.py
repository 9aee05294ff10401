"""`make bench-prediction`: whether the simulator tells the truth.

Scenarios of `scenarios/` with latencies and SLOs scaled up tenfold, so that stalls of a small machine do not decide: the
goodput that `downbeat goodput` predicts, with the delays that the server allows for and those measured, beside the one
that `downbeat load` finds on `downbeat serve` with emulated devices.
"""

import argparse
import tempfile
import tomllib
from pathlib import Path

from cases import DEVICES, ROOT, Case, Model, scaled
from load import Effort, goodput, load
from peers import Downbeat
from simulated import fluid_bound, predicted

SCENARIOS = (
    "one-model-8gpu",
    "one-model-8gpu-bursty",
    "eight-models-8gpu",
    "eight-models-8gpu-bursty",
    "tight-slo",
    "steep-profiles",
)
SCALE = 10
# The server's own limit on waiting for company, scaled alike.
MAX_WAIT = f"--max-wait-ms={100 * SCALE}"


def read(name: str) -> Case:
    """A scenario of equally popular models on eight devices."""
    scenario = tomllib.loads((ROOT / f"scenarios/{name}.toml").read_text())
    if scenario["gpus"] != DEVICES or any("weight" in model for model in scenario["model"]):
        raise ValueError(f"{name} is not one of equally popular models on {DEVICES} devices")
    arrival = scenario.get("arrival", {"kind": "poisson"})
    text = arrival["kind"] + (f":{arrival['shape']}" if "shape" in arrival else "")
    models = tuple(
        Model(
            model["name"],
            model["profile"]["alpha_ms"],
            model["profile"]["beta_ms"],
            model["slo_ms"],
            model["profile"]["max_batch"],
        )
        for model in scenario["model"]
    )
    return scaled(Case(name, models, text, False), SCALE)


def compare(case: Case, effort: Effort) -> str:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bound = fluid_bound(folder, case)
        with Downbeat(folder, case, MAX_WAIT) as server:
            overhead_ms = load(server, case, bound * 0.3, ["--duration=3"])["server_ms"]["overhead"]["p50"]
            expected = predicted(folder, case, overhead_ms * 1e3)
            measured = goodput(server, case, expected, effort)
    return (
        f"| {case.name} | {bound:.0f} | {expected:.0f} | {measured:.0f} | {measured / expected - 1:+.1%} "
        f"| {overhead_ms:.2f} |"
    )


def main():
    parser = argparse.ArgumentParser(prog="bench/peers/prediction.py", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="scenarios whose name has this in it")
    parser.add_argument("--requests", type=int, default=1500, help="requests of the rarest model in each run")
    arguments = parser.parse_args()
    effort = Effort(seconds=10, requests=arguments.requests, precision=0.02, tries=3)
    print(f"Goodput in requests per second; latencies and SLOs times {SCALE}; overhead in ms\n")
    print("| scenario | bound | predicted | measured | difference | overhead p50 |\n|---|---|---|---|---|---|")
    for name in (name for name in SCENARIOS if arguments.only in name):
        print(compare(read(name), effort), flush=True)


if __name__ == "__main__":
    main()
