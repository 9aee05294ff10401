"""The servers that the tests can be pointed at, started on the test models and on free ports."""

import contextlib
import os
import signal
import socket
import subprocess
import sysconfig
import time
import urllib.error
import urllib.request
from pathlib import Path

from models import LOADED_AT_START, write_repository

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
START_S = 180
STOP_S = 40


class Server:
    """A server on a repository that `write` fills, with the models `load` loaded. It runs inside a `with`.

    Ports are chosen here, so that nothing has to be read from what it prints.
    """

    kind: str
    backend: str
    runner: Path | None = None

    def __init__(self, folder: Path, write=write_repository, load=LOADED_AT_START):
        self.repository = folder / "repository"
        self.log = folder / "server.log"
        write(self.repository, self.backend, self.runner)
        self.http_port, self.grpc_port, self.metrics_port = free_ports(3)
        self.http = f"127.0.0.1:{self.http_port}"
        self.grpc = f"127.0.0.1:{self.grpc_port}"
        self.metrics = f"127.0.0.1:{self.metrics_port}"
        self.load = load
        self.process: subprocess.Popen | None = None

    def command(self) -> list[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def __enter__(self):
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                self.command(), env=self.environment(), stdout=log, stderr=subprocess.STDOUT
            )
        try:
            self.wait_until_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def wait_until_ready(self):
        """Returns once the server says that it is ready."""
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.kind} exited with {self.process.returncode}:\n{self.log_tail()}")
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                with urllib.request.urlopen(f"http://{self.http}/v2/health/ready", timeout=5):
                    return
            time.sleep(0.1)
        raise RuntimeError(f"{self.kind} was not ready after {START_S} s:\n{self.log_tail()}")

    def stop(self) -> int:
        """Asks the server to stop, and returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def log_tail(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]

    def flags(self) -> list[str]:
        """What both servers understand."""
        return [
            f"--model-repository={self.repository}",
            f"--http-port={self.http_port}",
            f"--grpc-port={self.grpc_port}",
            f"--metrics-port={self.metrics_port}",
            "--model-control-mode=explicit",
            *(f"--load-model={model}" for model in self.load),
        ]


class TritonServer(Server):
    """The Triton that `make setup-triton` installed, with the python backend."""

    kind = "triton"
    backend = 'backend: "python"'
    runner = HERE / "triton_model.py"
    home = ROOT / ".tools/triton"

    def command(self):
        triton = self.home / "pytriton/tritonserver"
        return [
            str(triton / "bin/tritonserver"),
            f"--backend-directory={triton / 'backends'}",
            "--allow-gpu-metrics=false",
            *self.flags(),
        ]

    def environment(self):
        # The backend embeds Python in isolated mode: it ignores PYTHONPATH, and takes the packages of the first python3
        # in PATH.
        return super().environment() | {
            "LD_LIBRARY_PATH": f"{self.home / 'nvidia_pytriton.libs'}:{sysconfig.get_config_var('LIBDIR')}",
            "PATH": f"{self.home / 'venv/bin'}:{os.environ['PATH']}",
        }


class DownbeatServer(Server):
    """`downbeat serve`: the binary that DOWNBEAT names, or else what cargo built last."""

    kind = "downbeat"
    backend = 'platform: "onnxruntime_onnx"'

    def command(self):
        # What is tested is the protocol: how fast the machine is must not decide it.
        return [str(binary()), "serve", "--device=cpu", "--default-slo-ms=60000", *self.flags()]


SERVERS = {server.kind: server for server in (TritonServer, DownbeatServer)}


def binary() -> Path:
    if named := os.environ.get("DOWNBEAT"):
        return Path(named)
    built = [ROOT / "target" / profile / "downbeat" for profile in ("release", "debug")]
    built = [path for path in built if path.exists()]
    if not built:
        raise RuntimeError("no downbeat in target/: run `cargo build`, or name the binary in DOWNBEAT")
    return max(built, key=lambda path: path.stat().st_mtime)


def free_ports(count: int) -> list[int]:
    """Ports that are free now; held together so that they differ."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]
