"""`make bench-overhead`: what a server adds to a request, and what processor time it spends on it.

The model takes 0.2 ms, so that nearly all of a round trip is the server's, the network's and the client's. Downbeat's
answers say how long they waited and ran; the rest of the round trip is overhead. Triton's do not, and its overhead is
its round trip less 0.2 ms. Processor time counts the server and all its processes, at the same rates.
"""

import tempfile
from pathlib import Path

from cases import Case, Model
from load import load
from peers import Downbeat, Triton, TritonSettings
from processes import cpu_seconds

L_MS = 0.2
# Long enough that nobody is late.
CASE = Case("overhead", (Model("model", 0.001, L_MS - 0.001, 1000.0),), "poisson", False)
RATES = (100, 500, 1000, 2000)
SECONDS = 10


def measure(server, rate: float) -> dict:
    load(server, CASE, rate, ["--duration=1"])
    before = cpu_seconds(server.process.pid)
    report = load(server, CASE, rate, [f"--duration={SECONDS}", "--warmup=0"])
    spent = cpu_seconds(server.process.pid)
    spent.subtract(before)
    return {"report": report, "cpu_us": {name: s * 1e6 / report["offered"] for name, s in spent.items()}}


def line(name: str, rate: float, measured: dict) -> str:
    report, cpu_us = measured["report"], sum(measured["cpu_us"].values())
    latency = report["latency_ms"]
    parts = report.get("server_ms")
    if parts:
        queue, compute, overhead = (parts[part]["p50"] for part in ("queue", "compute", "overhead"))
        where = f"{queue:.3f} | {compute:.3f} | {overhead:.3f}"
    else:
        where = f"- | - | {latency['p50'] - L_MS:.3f}"
    return (
        f"| {name} | {rate} | {report['in_slo_share']:.4f} | {latency['p50']:.3f} | {latency['p99']:.3f} | {where} "
        f"| {report['client_lag_ms_p99']:.3f} | {cpu_us:.0f} | {1e6 / cpu_us:.0f} |"
    )


def main():
    servers = {
        "Downbeat": lambda folder: Downbeat(folder, CASE, "--max-wait-ms=0"),
        "Triton": lambda folder: Triton(folder, CASE, TritonSettings(instances=8, timeout=False)),
    }
    print("Times in ms; overhead = round trip - queue - compute (p50); CPU: microseconds of all cores per request\n")
    print("| server | rps | in SLO | p50 | p99 | queue | compute | overhead | client lag p99 | CPU us | requests per CPU second |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    threads = {}
    for name, start in servers.items():
        with tempfile.TemporaryDirectory() as folder, start(Path(folder)) as server:
            for rate in RATES:
                measured = measure(server, rate)
                print(line(name, rate, measured), flush=True)
                threads[name] = measured["cpu_us"]
    print(f"\nWhere the processor time goes, us per request at {RATES[-1]} rps, by process/thread:")
    for name, spent in threads.items():
        parts = sorted(((us, thread) for thread, us in spent.items() if us >= 1), reverse=True)
        print(f"  {name}: " + ", ".join(f"{thread} {us:.0f}" for us, thread in parts))


if __name__ == "__main__":
    main()
