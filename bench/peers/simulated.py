"""What the simulator says of a case: the fluid bound, and what Downbeat should reach."""

import json
import subprocess
from pathlib import Path

import peers
from cases import Case


def simulated(folder: Path, case: Case, delay_us: float = 0) -> tuple[float, float]:
    """The fluid bound and the goodput of Downbeat's own policy, in requests per second."""
    scenario = folder / "scenario.toml"
    scenario.write_text(case.scenario(delay_us))
    command = [str(peers.servers.binary()), "goodput", str(scenario), "--policies=adaptive", "--format=json"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return report["fluid_bound_rps"], report["policies"]["adaptive"]["goodput_rps"]
