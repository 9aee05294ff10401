"""The servers that are compared. Each emulates the same devices and takes one row of four numbers per request."""

import contextlib
import json
import os
import shutil
import signal
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent.parent / "tests/clients"))

import servers  # noqa: E402

import cases  # noqa: E402
from cases import DEVICES, Case, Model  # noqa: E402
from processes import family  # noqa: E402

TENSORS = """input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }
"""


def parameters(values: dict[str, float]) -> str:
    lines = (f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}' for key, value in values.items())
    return "\n".join(lines) + "\n"


class Downbeat(servers.DownbeatServer):
    """As it comes: deadlines are the models' SLOs, there is nothing to tune."""

    protocol = "grpc"
    load_flags = ()

    def __init__(self, folder: Path, case: Case, *flags: str):
        self.case, self.more = case, flags
        super().__init__(folder, self.write, [model.name for model in case.models])

    def write(self, repository: Path, *_):
        for model in self.case.models:
            (repository / model.name / "1").mkdir(parents=True)
            known = {"alpha_ms": model.alpha_ms, "beta_ms": model.beta_ms, "slo_ms": model.slo_ms}
            (repository / model.name / "config.pbtxt").write_text(
                f'backend: "emulated"\nmax_batch_size: {model.max_batch}\n' + TENSORS + parameters(known)
            )

    def command(self):
        return [
            str(servers.binary()),
            "serve",
            f"--device=emulated:{DEVICES}",
            "--address=127.0.0.1",
            "--drain-s=0",
            *self.flags(),
            # Scaled up like all other times: the default of 100 ms is meant for an H200.
            *(self.more or [f"--max-wait-ms={max(100, 100 * cases.SCALE / 15)}"]),
        ]


@dataclass(frozen=True)
class TritonSettings:
    """What an operator of Triton who knows l(b) and the SLOs would set. Shares are of each model's SLO."""

    instances: int
    # The largest batch: the largest that takes this share of the SLO.
    cap: float = 0.5
    # max_queue_delay_microseconds
    delay: float = 0.0
    # preferred_batch_size: half of the largest batch, and the largest.
    preferred: bool = False
    # default_timeout_microseconds, REJECT: what the largest batch leaves of the SLO.
    timeout: bool = True

    def __str__(self):
        words = [f"{self.instances} instances", f"batch within {self.cap:g} SLO", f"delay {self.delay:g} SLO"]
        if self.preferred:
            words.append("preferred sizes")
        words.append("queue timeout" if self.timeout else "no queue timeout")
        return ", ".join(words)


class Triton(servers.TritonServer):
    """A real Triton; where models share the devices, its rate limiter gives them out, one per execution."""

    protocol = "grpc"
    load_flags = ()

    def __init__(self, folder: Path, case: Case, settings: TritonSettings):
        self.case, self.settings = case, settings
        super().__init__(folder, self.write, [model.name for model in case.models])

    def write(self, repository: Path, *_):
        for model in self.case.models:
            home = repository / model.name
            (home / "1").mkdir(parents=True)
            shutil.copy(HERE / "triton_model.py", home / "1/model.py")
            (home / "config.pbtxt").write_text(self.config(model))

    def config(self, model: Model) -> str:
        settings = self.settings
        largest = model.largest_batch(settings.cap * model.slo_ms)
        limiter = 'rate_limiter { resources { name: "device" global: true count: 1 } }' if self.case.is_shared else ""
        batching = [f"max_queue_delay_microseconds: {int(settings.delay * model.slo_ms * 1e3)}"]
        if settings.preferred:
            batching.append(f"preferred_batch_size: {sorted({max(1, largest // 2), largest})}")
        if settings.timeout:
            timeout_us = int(max(1.0, model.slo_ms - model.latency_ms(largest)) * 1e3)
            batching.append(
                f"default_queue_policy {{ timeout_action: REJECT default_timeout_microseconds: {timeout_us} }}"
            )
        return (
            f'name: "{model.name}"\nbackend: "python"\nmax_batch_size: {largest}\n'
            + TENSORS
            + parameters({"alpha_ms": model.alpha_ms, "beta_ms": model.beta_ms})
            + f"instance_group {{ count: {settings.instances} kind: KIND_CPU {limiter} }}\n"
            + f"dynamic_batching {{ {' '.join(batching)} }}\n"
        )

    def command(self):
        shared = ["--rate-limit=execution_count", f"--rate-limit-resource=device:{DEVICES}"]
        return super().command() + (shared if self.case.is_shared else [])


@dataclass(frozen=True)
class AppSettings:
    """What can be set on servers that only collect batches. Shares are of each model's SLO."""

    # The largest batch: the largest that takes this share of the SLO.
    cap: float = 0.5
    # How long a batch waits for more requests.
    delay: float = 0.0
    # How many requests a device is given at once, in largest batches; those beyond wait where they can still go to
    # another device. Ray Serve alone has that (max_ongoing_requests).
    ongoing: int = 0

    def __str__(self):
        words = [f"batch within {self.cap:g} SLO", f"wait {self.delay:g} SLO"]
        if self.ongoing:
            words.append(f"{self.ongoing} batches ongoing")
        return ", ".join(words)


class App(servers.Server):
    """A server that is a Python program. Each model has devices of its own: these servers cannot share them."""

    protocol = "http"
    # None of them reads tensors in binary form, nor tells what its models take.
    load_flags = ("--tensors=json", f"--data={HERE / 'row.json'}")
    backend = ""

    def __init__(self, folder: Path, case: Case, settings: AppSettings):
        self.case, self.settings = case, settings
        super().__init__(folder, lambda *_: None, ())

    @classmethod
    def python(cls) -> Path:
        return servers.ROOT / ".tools/peers" / cls.kind / "bin/python"

    def command(self):
        def of_model(model: Model) -> dict:
            return {
                "name": model.name,
                "alpha_s": model.alpha_ms / 1e3,
                "beta_s": model.beta_ms / 1e3,
                "max_batch": model.largest_batch(self.settings.cap * model.slo_ms),
                "ongoing": model.largest_batch(self.settings.cap * model.slo_ms) * self.settings.ongoing,
                "wait_s": self.settings.delay * model.slo_ms / 1e3,
            }

        models = [of_model(model) for model in self.case.models]
        setup = {"port": self.http_port, "devices": DEVICES, "models": models}
        return [str(self.python()), str(HERE / f"{self.kind}_app.py"), json.dumps(setup)]

    def wait_until_ready(self):
        """Returns once every model answers."""
        until = time.monotonic() + servers.START_S
        body = (HERE / "row.json").read_bytes()
        left = [model.name for model in self.case.models]
        while left and time.monotonic() < until:
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.kind} exited with {self.process.returncode}:\n{self.log_tail()}")
            request = urllib.request.Request(f"http://{self.http}/v2/models/{left[-1]}/infer", body)
            request.add_header("Content-Type", "application/json")
            try:
                with urllib.request.urlopen(request, timeout=30):
                    left.pop()
            except OSError:
                time.sleep(0.2)
        if left:
            raise RuntimeError(f"{self.kind} was not ready after {servers.START_S} s:\n{self.log_tail()}")


    def stop(self) -> int:
        """Ends the server and all that it started: these leave processes behind that go on polling."""
        members = family(self.process.pid)
        code = super().stop()
        for pid in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return code


class LitServe(App):
    kind = "litserve"


class RayServe(App):
    kind = "ray"
