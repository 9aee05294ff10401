"""Calls `downbeat load`."""

import json
import subprocess

import peers
from cases import Case


class LoadFailed(RuntimeError):
    """No load could be made: the server said no, or is gone."""


def load(server, case: Case, rate: float, duration_s: float, *flags: str) -> dict:
    """Sends a case's traffic to a server; the report."""
    url = f"{server.protocol}://{getattr(server, server.protocol)}"
    command = [
        str(peers.servers.binary()),
        "load",
        f"--url={url}",
        *(f"--model={model.name}:slo_ms={model.slo_ms}" for model in case.models),
        f"--arrival={case.arrival}",
        f"--rate={rate:.3f}",
        f"--duration={duration_s}",
        "--format=json",
        *flags,
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise LoadFailed(done.stderr.strip() or f"exit code {done.returncode}")
    return json.loads(done.stdout)


def passes(server, case: Case, rate: float, duration_s: float) -> bool:
    """Whether every model has 99 % in SLO at this rate."""
    return load(server, case, rate, duration_s)["in_slo_share_worst"] >= 0.99


def goodput(server, case: Case, first_rps: float, duration_s: float, precision: float, tries: int) -> dict:
    return load(
        server, case, first_rps, duration_s, "--find-goodput", f"--precision={precision}", f"--tries={tries}"
    )
