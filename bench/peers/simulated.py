"""What the simulator says of a case: the fluid bound, and what Downbeat should reach on a machine with measured delays."""

import itertools
import json
import subprocess
import urllib.request
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import peers
from cases import Case
from load import Effort, load

# What `downbeat serve` allows for, unless it is told otherwise.
CONTROL_DELAY_US = 200
RESPONSE_RESERVE_US = 1000

# `downbeat load` does not count the first second, and begins with this seed.
WARMUP_S = 1
FIRST_SEED = 1

# Delays are measured for so long.
DELAYS_S = 10
REFINED = 4

# A run in which the client was late by this share of the tightest SLO says nothing; so `downbeat load` has it, too.
STALL = 0.25
STALLED_MAX = 6

# A distribution: shares, and the microseconds that each stays within.
Quantiles = list[tuple[float, float]]


@dataclass(frozen=True)
class Delays:
    """What a server and its client were seen to take on top of what a device takes."""

    # How much later than predicted batches come back.
    overrun_us: Quantiles
    # From when a request is due to when its answer is there, less what the server says of queue and device.
    response_us: Quantiles

    def keys(self) -> list[str]:
        """As keys of a scenario."""
        jitter = f'jitter = {{ kind = "added", added_us = {listed(self.overrun_us)} }}'
        return [jitter, f"response_us = {listed(self.response_us)}"]

    def __str__(self):
        def at(quantiles: Quantiles, share: float) -> str:
            return f"{next(us for upto, us in quantiles if upto >= share) / 1e3:.2f}"

        both = (("batches", self.overrun_us), ("way", self.response_us))
        return ", ".join(f"{name} {' / '.join(at(q, share) for share in (0.5, 0.99, 0.999))}" for name, q in both)


def listed(quantiles: Quantiles) -> str:
    return json.dumps([[round(share, 6), round(us, 3)] for share, us in quantiles])


def measure_delays(server, case: Case, rate: float) -> Delays:
    """Sends a load and looks at what it took beside devices, when the machine does not stand still meanwhile."""
    tightest_ms = min(model.slo_ms for model in case.models)
    for _ in range(STALLED_MAX):
        before = overruns(server)
        report = load(server, case, rate, [f"--duration={DELAYS_S}"])
        seen = overruns(server)
        seen.subtract(before)
        if report["client_lag_ms"]["max"] <= STALL * tightest_ms:
            break
    way, lag = report["server_ms"]["overhead"], report["client_lag_ms"]
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1.0}
    return Delays(
        overrun_us=from_buckets(sorted(seen.items())),
        response_us=refined([(share, 1e3 * (way[name] + lag[name])) for name, share in shares.items()]),
    )


def refined(quantiles: Quantiles) -> Quantiles:
    """With more quantiles in between: the simulator draws a straight line, but the tail of delays bends upwards."""
    quantiles = [(share, max(us, 1.0)) for share, us in quantiles]
    more = quantiles[:1]
    for (low, fast), (high, slow) in itertools.pairwise(quantiles):
        steps = (step / REFINED for step in range(1, REFINED + 1))
        more += [(low + (high - low) * part, fast * (slow / fast) ** part) for part in steps]
    return more


def overruns(server) -> Counter:
    """How many batches of all models came back within each bucket of the server's histogram, so far."""
    with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    buckets: Counter = Counter()
    for line in lines:
        if line.startswith("downbeat_batch_overrun_seconds_bucket"):
            labels, count = line.rsplit(" ", 1)
            buckets[float(labels.partition('le="')[2].partition('"')[0])] += int(count)
    return buckets


def from_buckets(buckets: list[tuple[float, int]]) -> Quantiles:
    """From upper ends in seconds, with how many are below each. What is in the first was in time."""
    total = buckets[-1][1]
    ends = [0.0, *(end for end, _ in buckets[1:-1]), 2 * buckets[-2][0]]
    quantiles: Quantiles = []
    for end, (_, count) in zip(ends, buckets, strict=True):
        share = count / total
        if share > (quantiles[-1][0] if quantiles else 0.0):
            quantiles.append((share, end * 1e6))
    return quantiles


def fluid_bound(folder: Path, case: Case) -> float:
    """The rate at which device time runs out when every model fills the largest batch that its SLO allows."""
    return goodput(folder, case.scenario(), seeds=1)["fluid_bound_rps"]


def allowed_for(delays: Delays | None) -> list[str]:
    """The keys of a scenario that say what the server allows for, and what really happens."""
    server = [f"control_delay_us = {CONTROL_DELAY_US}", f"response_reserve_us = {RESPONSE_RESERVE_US}"]
    return server + (delays.keys() if delays else [])


def predicted(folder: Path, case: Case, delays: Delays | None) -> float:
    """The goodput that the simulator predicts for Downbeat; without delays, on a machine that never is late."""
    report = goodput(folder, case.scenario(allowed_for(delays)), seeds=3)
    return report["policies"]["adaptive"]["goodput_rps"]


def predicted_on_same_arrivals(
    folder: Path, case: Case, delays: Delays | None, effort: Effort, first_rps: float
) -> float:
    """What `downbeat load --find-goodput` would find on the simulated server: the same search, with the same requests."""
    passed = failed = None
    rate = first_rps
    while passed is None or failed is None or failed > passed * (1 + effort.precision):
        if any(passes(folder, case, delays, effort, rate, FIRST_SEED + attempt) for attempt in range(effort.tries)):
            passed = rate
        else:
            failed = rate
        if passed is None:
            if rate < first_rps / 1024:
                return 0.0
            rate /= 2
        else:
            rate = passed * 2 if failed is None else (passed + failed) / 2
    return passed


def passes(folder: Path, case: Case, delays: Delays | None, effort: Effort, rate: float, seed: int) -> bool:
    """Whether every model has 99 % in SLO at this rate, in simulation."""
    length_s = max(effort.seconds, effort.requests * len(case.models) / rate) + WARMUP_S
    keys = [f"duration_s = {length_s}", f"warmup_s = {WARMUP_S}", *allowed_for(delays)]
    report = simulator(folder, case.scenario(keys), "simulate", f"--rate={rate}", f"--seed={seed}")
    return report["bad_rate_worst"] <= 0.01


def goodput(folder: Path, scenario: str, seeds: int) -> dict:
    return simulator(folder, scenario, "goodput", "--policies=adaptive", f"--seeds={seeds}")


def simulator(folder: Path, scenario: str, command: str, *flags: str) -> dict:
    file = folder / "scenario.toml"
    file.write_text(scenario)
    words = [str(peers.servers.binary()), command, str(file), *flags, "--format=json"]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
