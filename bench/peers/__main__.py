"""`make bench-peers`: Downbeat and other servers side by side on the same emulated devices.

Each server has the same models, which take the same l(b), and the same eight devices; `downbeat load` searches the
highest rate at which every model has 99 % of its requests in SLO. Rivals are tuned first, by short searches; then all
are measured alike.
"""

import argparse
import json
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import cases
from cases import Case
from load import Effort, LoadFailed, goodput
from peers import Downbeat, LitServe, RayServe, Triton
from simulated import fluid_bound, measure_delays, predicted, predicted_on_same_arrivals
from tune import Tuning, app_candidates, first_litserve, first_ray, first_triton, triton_candidates


@dataclass(frozen=True)
class Rival:
    name: str
    start: Callable
    first: Callable
    candidates: Callable


RIVALS = {
    "triton": Rival("Triton", Triton, first_triton, triton_candidates),
    "ray": Rival("Ray Serve", RayServe, first_ray, app_candidates),
    "litserve": Rival("LitServe", LitServe, first_litserve, app_candidates),
}


def say(text: str):
    print(text, file=sys.stderr, flush=True)


def measure_downbeat(case: Case, effort: Effort) -> dict:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bound = fluid_bound(folder, case)
        with Downbeat(folder, case) as server:
            # What the way from the client to the device and back takes, for the simulator.
            delays = measure_delays(server, case, bound * 0.5)
            ours = goodput(server, case, bound * 0.7, effort)
        simulated = predicted_on_same_arrivals(folder, case, delays, effort, bound * 0.7)
        expected = predicted(folder, case, delays)
    say(f"  Downbeat: {ours:.0f} rps (bound {bound:.0f}, simulated {simulated:.0f}, with other arrivals {expected:.0f})")
    return {
        "bound_rps": bound,
        "downbeat_rps": ours,
        "simulated_rps": simulated,
        "predicted_rps": expected,
        "delays_ms": str(delays),
    }


def measure_rival(rival: Rival, case: Case, effort: Effort, tuning: Effort, guess_rps: float) -> dict:
    say(f"  {rival.name}, tuning:")
    settings, reached = Tuning(case, rival.start, tuning, guess_rps, say).best(rival.first(case), rival.candidates)
    measured = 0.0
    if reached:
        with tempfile.TemporaryDirectory() as folder, rival.start(Path(folder), case, settings) as server:
            # The tuning has seen this rate pass: that the longer runs do not find it again may be chance.
            measured = goodput(server, case, reached, effort)
    say(f"  {rival.name}: {measured:.0f} rps with {settings}")
    return {"rps": measured, "tuning_rps": reached, "settings": str(settings)}


def measure_or_say_why(rival: Rival, case: Case, effort: Effort, tuning: Effort, guess_rps: float) -> dict:
    """One rival that does not run here must not cost the figures of the others."""
    try:
        return measure_rival(rival, case, effort, tuning, guess_rps)
    except (LoadFailed, RuntimeError) as error:
        say(f"  {rival.name} cannot be measured: {error}")
        return {"rps": 0.0, "tuning_rps": 0.0, "settings": "does not run"}


def ratio(a: float, b: float) -> str:
    return f"{a / b:.2f}" if b else "-"


def table(rows: list[dict], rivals: list[str]) -> str:
    """As Markdown, for the README."""
    names = [RIVALS[rival].name for rival in rivals]
    header = ["case", "bound", "Downbeat", "simulated", *(f"{n} | ratio | ceiling" for n in names)]
    header += [f"{name}'s settings" for name in names]
    lines = ["| " + " | ".join(header) + " |"]
    lines.append("|" + "---|" * lines[0].count(" |"))
    for row in rows:
        ours, bound = row["downbeat_rps"], row["bound_rps"]
        cells = [row["case"], f"{bound:.0f}", f"{ours:.0f}", f"{row['simulated_rps']:.0f}"]
        for rival in rivals:
            theirs = row[rival]["rps"]
            cells += [f"{theirs:.0f}", ratio(ours, theirs), ratio(bound, theirs)]
        cells += [row[rival]["settings"] for rival in rivals]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, {memory:.0f} GiB"


def main():
    parser = argparse.ArgumentParser(prog="bench/peers", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name matches this, e.g. 8.models.*tight")
    parser.add_argument("--rivals", default="triton", help=f"some of {','.join(RIVALS)}")
    parser.add_argument("--requests", type=int, default=1000, help="requests of the rarest model in each run")
    parser.add_argument("--tuning-requests", type=int, default=300, help="the same, while rivals are tuned")
    parser.add_argument("--scale", type=int, default=cases.SCALE, help="how much slower than an H200 everything is")
    parser.add_argument("--out", type=Path, help="also write the figures as JSON to this file")
    arguments = parser.parse_args()
    cases.SCALE = arguments.scale
    # Whoever stops it, the servers are to be stopped too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    rivals = [name for name in arguments.rivals.split(",") if name]
    if unknown := [name for name in rivals if name not in RIVALS]:
        sys.exit(f"there is no rival {unknown[0]}; there are {', '.join(RIVALS)}")
    effort = Effort(seconds=10, requests=arguments.requests, precision=0.03, tries=3)
    tuning = Effort(seconds=5, requests=arguments.tuning_requests, precision=0.1, tries=1)
    rows = []
    for case in (case for case in cases.cases() if re.search(arguments.only, case.name)):
        say(f"{case.name}:")
        try:
            row = {"case": case.name, **measure_downbeat(case, effort)}
        except (LoadFailed, RuntimeError) as error:
            sys.exit(f"{case.name}: {error}")
        for name in rivals:
            row[name] = measure_or_say_why(RIVALS[name], case, effort, tuning, 0.3 * row["bound_rps"])
        rows.append(row)
        if arguments.out:
            arguments.out.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=2) + "\n")
    print(f"Goodput in requests per second at 99 % in SLO of the worst model ({machine()};")
    print(f"{cases.DEVICES} emulated devices, latencies of an H200 times {cases.SCALE}). Ratio: Downbeat / rival;")
    print("ceiling: bound / rival\n")
    print(table(rows, rivals))


if __name__ == "__main__":
    main()
