"""Finds the settings with which a rival does best: one setting after the other, by short runs."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from cases import DEVICES, Case
from load import LoadFailed, goodput, passes
from peers import TritonSettings

# A candidate must beat the best so far by this to be searched at all.
BETTER = 1.05


def triton_candidates(best: TritonSettings, case: Case) -> Iterator[list[TritonSettings]]:
    """What to try next to the best so far, a setting at a time. `best` is sent back in."""
    if case.is_shared:
        best = yield [replace(best, instances=count) for count in (2, 8)]
    best = yield [replace(best, cap=cap) for cap in (0.35, 0.7)]
    best = yield [replace(best, delay=delay) for delay in (0.125, 0.25)]
    best = yield [replace(best, preferred=True)]
    best = yield [replace(best, timeout=False)]


def first_triton(case: Case) -> TritonSettings:
    return TritonSettings(instances=4 if case.is_shared else DEVICES)


def tune(case: Case, start: Callable, first, candidates: Callable, guess_rps: float, duration_s: float, say: Callable):
    """The best settings found, with the rate that they reach in short runs."""
    best, best_rps = first, quick(case, start, first, guess_rps, duration_s)
    say(f"  {best}: {best_rps:.0f} rps")
    steps = candidates(best, case)
    wave = next(steps, None)
    while wave is not None:
        for settings in wave:
            reached = better(case, start, settings, best_rps, guess_rps, duration_s)
            say(f"  {settings}: {f'{reached:.0f} rps' if reached else 'not better'}")
            if reached and reached > best_rps:
                best, best_rps = settings, reached
        try:
            wave = steps.send(best)
        except StopIteration:
            wave = None
    return best, best_rps


def better(case, start, settings, best_rps: float, guess_rps: float, duration_s: float) -> float | None:
    if best_rps <= 0:
        return quick(case, start, settings, guess_rps, duration_s)
    with tempfile.TemporaryDirectory() as folder, start(Path(folder), case, settings) as server:
        try:
            if not passes(server, case, best_rps * BETTER, duration_s):
                return None
            return goodput(server, case, best_rps * BETTER, duration_s, 0.1, 1)["goodput_rps"]
        except LoadFailed:
            return None


def quick(case, start, settings, guess_rps: float, duration_s: float) -> float:
    with tempfile.TemporaryDirectory() as folder, start(Path(folder), case, settings) as server:
        try:
            return goodput(server, case, guess_rps, duration_s, 0.1, 1)["goodput_rps"]
        except LoadFailed:
            return 0.0
