"""Calls `downbeat load`."""

import json
import subprocess
from dataclasses import dataclass

import peers
from cases import Case


class LoadFailed(RuntimeError):
    """No load could be made: the server said no, or is gone."""


@dataclass(frozen=True)
class Effort:
    """How thoroughly something is measured."""

    seconds: float
    # Of the rarest model: with fewer, whether 1 % of them are late is chance.
    requests: int
    precision: float
    # How often a rate is tried before it has failed.
    tries: int

    def flags(self) -> list[str]:
        return [f"--duration={self.seconds}", f"--min-requests={self.requests}"]

    def search_flags(self) -> list[str]:
        return [*self.flags(), "--find-goodput", f"--precision={self.precision}", f"--tries={self.tries}"]


def load(server, case: Case, rate: float, flags: list[str]) -> dict:
    """Sends a case's traffic to a server; the report."""
    url = f"{server.protocol}://{getattr(server, server.protocol)}"
    command = [
        str(peers.servers.binary()),
        "load",
        f"--url={url}",
        *(f"--model={model.name}:slo_ms={model.slo_ms}" for model in case.models),
        f"--arrival={case.arrival}",
        f"--rate={rate:.3f}",
        "--format=json",
        *server.load_flags,
        *flags,
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    # With 1, nothing came back; the report says so, and that is a result, too.
    if done.returncode not in (0, 1) or not done.stdout:
        raise LoadFailed(done.stderr.strip() or f"exit code {done.returncode}")
    return json.loads(done.stdout)


def passes(server, case: Case, rate: float, effort: Effort) -> bool:
    """Whether every model has 99 % in SLO at this rate."""
    return (load(server, case, rate, effort.flags())["in_slo_share_worst"] or 0) >= 0.99


def goodput(server, case: Case, first_rps: float, effort: Effort) -> float:
    """The highest rate at which every model has 99 % in SLO."""
    return load(server, case, first_rps, effort.search_flags())["goodput_rps"]
