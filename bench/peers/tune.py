"""Finds the settings with which a rival does best: one setting after the other, by short runs."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from cases import DEVICES, Case
from load import Effort, LoadFailed, goodput, passes
from peers import AppSettings, TritonSettings

# A candidate must pass at so many times the best rate so far to be searched at all.
BETTER = 1.05


def first_triton(case: Case) -> TritonSettings:
    """Where models share devices, batches that wait pay most, and few instances; alone, neither does."""
    return TritonSettings(instances=2, delay=0.25) if case.is_shared else TritonSettings(instances=DEVICES)


def triton_candidates(best: TritonSettings, case: Case) -> Iterator[list[TritonSettings]]:
    """What to try next to the best so far, a setting at a time. The best is sent back in."""
    if case.is_shared:
        best = yield [replace(best, instances=count) for count in (1, 4, 8)]
        best = yield [replace(best, delay=delay) for delay in (0.0, 0.125, 0.375, 0.5)]
    else:
        best = yield [replace(best, delay=delay) for delay in (0.125, 0.25)]
    best = yield [replace(best, cap=cap) for cap in (0.35, 0.7, 0.8)]
    best = yield [replace(best, preferred=True)]
    best = yield [replace(best, timeout=False)]


def first_litserve(_: Case) -> AppSettings:
    return AppSettings()


def first_ray(_: Case) -> AppSettings:
    return AppSettings(ongoing=2)


def app_candidates(best: AppSettings, _: Case) -> Iterator[list[AppSettings]]:
    best = yield [replace(best, cap=cap) for cap in (0.35, 0.7)]
    best = yield [replace(best, delay=delay) for delay in (0.125, 0.25)]
    if best.ongoing:
        best = yield [replace(best, ongoing=ongoing) for ongoing in (1, 4)]


@dataclass
class Tuning:
    """The tuning of one rival for one case."""

    case: Case
    start: Callable
    effort: Effort
    guess_rps: float
    say: Callable[[str], None]

    def best(self, first, candidates: Callable) -> tuple:
        """The best settings found, with the rate that they reached."""
        best, best_rps = first, self.reached(first, 0.0) or 0.0
        steps = candidates(best, self.case)
        wave = next(steps, None)
        while wave is not None:
            for settings in wave:
                if (reached := self.reached(settings, best_rps)) and reached > best_rps:
                    best, best_rps = settings, reached
            try:
                wave = steps.send(best)
            except StopIteration:
                wave = None
        return best, best_rps

    def reached(self, settings, to_beat: float) -> float | None:
        """The goodput with these settings; `None` where it is not above what is to beat."""
        reached = None
        with tempfile.TemporaryDirectory() as folder, self.start(Path(folder), self.case, settings) as server:
            try:
                bar = to_beat * BETTER
                if not bar or passes(server, self.case, bar, self.effort):
                    reached = goodput(server, self.case, bar or self.guess_rps, self.effort)
            except LoadFailed as error:
                self.say(f"  {settings}: {error}")
        self.say(f"  {settings}: {f'{reached:.0f} rps' if reached else 'not better'}")
        return reached
