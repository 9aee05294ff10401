"""What the simulator says of a case: the fluid bound, and what Downbeat should reach."""

import json
import subprocess
from pathlib import Path

import peers
from cases import Case


# What `downbeat serve` allows for, unless it is told otherwise.
CONTROL_DELAY_US = 200
RESPONSE_RESERVE_US = 1000


def fluid_bound(folder: Path, case: Case) -> float:
    """The rate at which device time runs out when every model fills the largest batch that its SLO allows."""
    return search(folder, case.scenario(), seeds=1)["fluid_bound_rps"]


def predicted(folder: Path, case: Case, overhead_us: float) -> float:
    """The goodput that the simulator predicts for Downbeat, where the way to the server and back takes this long."""
    reserve_us = max(RESPONSE_RESERVE_US, overhead_us)
    report = search(folder, case.scenario(CONTROL_DELAY_US, reserve_us), seeds=3)
    return report["policies"]["adaptive"]["goodput_rps"]


def search(folder: Path, scenario: str, seeds: int) -> dict:
    file = folder / "scenario.toml"
    file.write_text(scenario)
    binary = str(peers.servers.binary())
    command = [binary, "goodput", str(file), "--policies=adaptive", f"--seeds={seeds}", "--format=json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
