"""`make bench-prediction`: whether the simulator tells the truth.

Scenarios of `scenarios/` with latencies and SLOs scaled up tenfold, so that stalls of a small machine do not decide: the
goodput that `downbeat goodput` predicts, with the delays that the server allows for and those measured, beside the one
that `downbeat load` finds on `downbeat serve` with emulated devices. A search with a few hundred requests of each model
depends on which requests these are; so the simulator is also made to search with the very same ones.
"""

import argparse
import tempfile
import tomllib
from pathlib import Path

from cases import DEVICES, ROOT, Case, Model, scaled
from cases import cases as peer_cases
from load import Effort, goodput
from peers import Downbeat
from simulated import fluid_bound, measure_delays, predicted, predicted_on_same_arrivals

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
            delays = measure_delays(server, case, bound * 0.5)
            expected = predicted(folder, case, delays)
            # With delays that make 1 % of all requests late, no rate is predicted to pass.
            first = expected or 0.7 * bound
            measured = goodput(server, case, first, effort)
        same = predicted_on_same_arrivals(folder, case, delays, effort, first)
    return (
        f"| {case.name} | {bound:.0f} | {expected:.0f} | {same:.0f} | {measured:.0f} "
        f"| {difference(measured, expected)} | {difference(measured, same)} | {delays} |"
    )


def difference(measured: float, expected: float) -> str:
    return f"{measured / expected - 1:+.1%}" if expected else "-"


def main():
    parser = argparse.ArgumentParser(prog="bench/peers/prediction.py", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="scenarios whose name has this in it")
    parser.add_argument("--requests", type=int, default=1500, help="requests of the rarest model in each run")
    parser.add_argument("--tight", action="store_true", help="also the tight cases of `make bench-peers`, as they are")
    arguments = parser.parse_args()
    effort = Effort(seconds=10, requests=arguments.requests, precision=0.02, tries=3)
    cases = [read(name) for name in SCENARIOS if arguments.only in name]
    if arguments.tight:
        # Those of `make bench-peers` whose batches wait to the end of their windows.
        cases += [case for case in peer_cases() if case.is_tight and arguments.only in case.name]
    print(f"Goodput in requests per second; latencies and SLOs times {SCALE}. Same: predicted for the very requests that are")
    print("measured. Delays: how much later than predicted batches come, and the way there and back; p50 / p99 / p99.9 in ms\n")
    header = ["scenario", "bound", "predicted", "same", "measured", "to predicted", "to same", "delays"]
    print("| " + " | ".join(header) + " |\n" + "|---" * len(header) + "|")
    for case in cases:
        print(compare(case, effort), flush=True)


if __name__ == "__main__":
    main()
