"""`make bench-peers`: Downbeat and other servers side by side on the same emulated devices.

Each server has the same models, which take the same l(b), and the same eight devices; `downbeat load` searches the
highest rate at which every model has 99 % of its requests in SLO. Rivals are tuned first, by short searches; then all
are measured alike.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import cases
from cases import Case
from load import Effort, LoadFailed, goodput, load
from peers import Downbeat, Triton
from simulated import simulated
from tune import Tuning, first_triton, triton_candidates


def say(text: str):
    print(text, file=sys.stderr, flush=True)


def compare(case: Case, effort: Effort, tuning: Effort) -> dict:
    """One line of the table."""
    say(f"{case.name}:")
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        bound, _ = simulated(folder, case)
        with Downbeat(folder, case) as server:
            # What the way from the client to the device and back takes, for the simulator.
            delays = load(server, case, bound * 0.3, ["--duration=3"])["server_ms"]["overhead"]
            ours = goodput(server, case, bound * 0.7, effort)
        _, predicted = simulated(folder, case, delays["p50"] * 1e3)
    say(f"  downbeat: {ours:.0f} rps (bound {bound:.0f}, simulated {predicted:.0f})")
    settings, reached = Tuning(case, Triton, tuning, bound * 0.3, say).best(first_triton(case), triton_candidates)
    theirs = 0.0
    if reached:
        with tempfile.TemporaryDirectory() as folder, Triton(Path(folder), case, settings) as server:
            theirs = goodput(server, case, reached, effort)
    say(f"  triton: {theirs:.0f} rps with {settings}")
    return {
        "case": case.name,
        "bound_rps": bound,
        "downbeat_rps": ours,
        "simulated_rps": predicted,
        "delay_ms": delays["p50"],
        "triton_rps": theirs,
        "triton_settings": str(settings),
    }


def ratio(a: float, b: float) -> str:
    return f"{a / b:.2f}" if b else "-"


def table(rows: list[dict]) -> str:
    """As Markdown, for the README."""
    lines = [
        "| case | bound | Downbeat | simulated | Triton | ratio | ceiling | Triton's best settings |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        ours, theirs, bound = row["downbeat_rps"], row["triton_rps"], row["bound_rps"]
        lines.append(
            f"| {row['case']} | {bound:.0f} | {ours:.0f} | {row['simulated_rps']:.0f} | {theirs:.0f} "
            f"| {ratio(ours, theirs)} | {ratio(bound, theirs)} | {row['triton_settings']} |"
        )
    return "\n".join(lines)


def machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, {memory:.0f} GiB"


def main():
    parser = argparse.ArgumentParser(prog="bench/peers", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--requests", type=int, default=1000, help="requests of the rarest model in each run")
    parser.add_argument("--tuning-requests", type=int, default=300, help="the same, while rivals are tuned")
    parser.add_argument("--out", type=Path, help="also write the figures as JSON to this file")
    arguments = parser.parse_args()
    effort = Effort(seconds=10, requests=arguments.requests, precision=0.03, tries=2)
    tuning = Effort(seconds=5, requests=arguments.tuning_requests, precision=0.1, tries=1)
    rows = []
    for case in cases.cases():
        if arguments.only in case.name:
            try:
                rows.append(compare(case, effort, tuning))
            except LoadFailed as error:
                sys.exit(f"{case.name}: {error}")
            if arguments.out:
                arguments.out.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=2) + "\n")
    print(f"Goodput in requests per second at 99 % in SLO of the worst model ({machine()};")
    print(f"{cases.DEVICES} emulated devices, latencies of an H200 times {cases.SCALE}); ceiling = bound / Triton\n")
    print(table(rows))


if __name__ == "__main__":
    main()
