"""What is compared: models with their latencies, SLOs and traffic, on eight emulated devices."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

DEVICES = 8
MAX_BATCH = 32

# A server whose models are Python processes on two cores cannot follow models that answer within a millisecond. All
# latencies are those measured on an H200, times this; SLOs follow.
SCALE = 15

# Eight models that people serve side by side: from light to heavy, vision and language.
EIGHT = (
    "vgg16",
    "vit_b_16",
    "convnext_base",
    "bert-base",
    "fcn_resnet50",
    "deeplabv3_resnet50",
    "bert-large",
    "swin_b",
)
ONE = ("bert-large",)

# SLOs as multiples of l(1): a request that finds a device idle takes a third of the tight one.
SLO_FACTORS = {"tight": 3, "loose": 10}
ARRIVALS = {"poisson": "poisson", "bursty": "gamma:0.2"}


@dataclass(frozen=True)
class Model:
    """l(b) = alpha_ms * b + beta_ms."""

    name: str
    alpha_ms: float
    beta_ms: float
    slo_ms: float
    max_batch: int = MAX_BATCH

    def latency_ms(self, batch: int) -> float:
        return self.alpha_ms * batch + self.beta_ms

    def largest_batch(self, within_ms: float) -> int:
        """The largest batch that takes no longer; 1 where even that does."""
        return max(1, min(self.max_batch, int((within_ms - self.beta_ms) / self.alpha_ms)))


@dataclass(frozen=True)
class Case:
    name: str
    models: tuple[Model, ...]
    arrival: str
    is_tight: bool

    @property
    def is_shared(self) -> bool:
        """Whether several models share the devices."""
        return len(self.models) > 1

    def scenario(self, more: Iterable[str] = ()) -> str:
        """The same as a scenario of the simulator, with more of its keys."""
        kind, _, shape = self.arrival.partition(":")
        arrival = f'{{ kind = "{kind}", shape = {shape} }}' if shape else f'{{ kind = "{kind}" }}'
        lines = [
            f"gpus = {DEVICES}",
            "total_rps = 100",
            f"arrival = {arrival}",
            *more,
        ]
        for model in self.models:
            profile = (
                f"{{ alpha_ms = {model.alpha_ms}, beta_ms = {model.beta_ms}, max_batch = {model.max_batch} }}"
            )
            lines += ["[[model]]", f'name = "{model.name}"', f"slo_ms = {model.slo_ms}", f"profile = {profile}"]
        return "\n".join(lines) + "\n"


@cache
def measured(slice_name: str = "7g") -> dict[str, dict[int, float]]:
    """Milliseconds by model and batch size."""
    table: dict[str, dict[int, float]] = {}
    with (ROOT / "profiles/h200.csv").open() as file:
        for row in csv.DictReader(file):
            if row["slice"] == slice_name:
                table.setdefault(row["model"], {})[int(row["batch"])] = float(row["latency_ms"])
    return table


def model(name: str, slo_factor: float) -> Model:
    """The line through the measured latencies of one and of 32, scaled."""
    points = measured()[name]
    alpha = (points[MAX_BATCH] - points[1]) / (MAX_BATCH - 1)
    alpha_ms, l1_ms = round(SCALE * alpha, 3), round(SCALE * points[1], 3)
    return Model(name, alpha_ms, round(l1_ms - alpha_ms, 3), round(slo_factor * l1_ms, 1))


def cases() -> list[Case]:
    return [
        Case(
            f"{len(names)} {'model' if len(names) == 1 else 'models'}, {tightness}, {traffic}",
            tuple(model(name, factor) for name in names),
            arrival,
            tightness == "tight",
        )
        for names in (ONE, EIGHT)
        for tightness, factor in SLO_FACTORS.items()
        for traffic, arrival in ARRIVALS.items()
    ]


def scaled(case: Case, factor: float) -> Case:
    """The same case with everything slower by a factor."""
    models = tuple(
        replace(m, alpha_ms=m.alpha_ms * factor, beta_ms=m.beta_ms * factor, slo_ms=m.slo_ms * factor)
        for m in case.models
    )
    return replace(case, models=models)
