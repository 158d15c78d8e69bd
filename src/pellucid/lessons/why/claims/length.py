"""The cost of length: time and memory of attention, and the longest text that fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from pellucid.attention import attend, attend_fast
from pellucid.lessons.why.clock import peak_bytes, seconds_of
from pellucid.lessons.why.fits import PowerLaw, fit_power_law, longest_below
from pellucid.lessons.why.result import (
    NOTES,
    Finding,
    Measurement,
    Panel,
    Plot,
    Series,
    Statement,
    Table,
    Verdict,
)
from pellucid.lessons.why.setting import Setting
from pellucid.machine.hardware import available_memory, describe_machine
from pellucid.machine.randomness import generator

NUM_HEADS, D_KEY, D_FF = 8, 64, 2048
LONGEST_IN_QUICK = 2048
PAGE = 700
"""Tokens of a page of some 500 words."""
QUADRATIC = (1.7, 2.3)
GIB = 2**30
NUM_LAYERS = 6

Way = Literal["explicit", "fast"]
_WAYS: dict[str, Way] = {"five stages": "explicit", "fused": "fast"}

QUADRATIC_SAYS = Statement(
    NOTES, "section 5", "for a sequence of n tokens, self-attention performs n² calculations"
)
PAGE_SAYS = Statement(
    NOTES, "section 5", "in practice the input has to be limited to at most a page of text"
)


@dataclass(frozen=True)
class Cost:
    """The cost of one layer's attention at one length.

    Attributes:
        length: the number of tokens.
        explicit_seconds: of the five stages, one after another.
        fast_seconds: of fused attention.
        rest_seconds: of the layer's projections and feed-forward network.
        explicit_bytes: most bytes of results at once, of the five stages.
        fast_bytes: of fused attention.
    """

    length: int
    explicit_seconds: float
    fast_seconds: float
    rest_seconds: float
    explicit_bytes: int
    fast_bytes: int


@dataclass(frozen=True)
class Laws:
    """A power law for each column of costs, fitted to the longer half of the lengths."""

    explicit_seconds: PowerLaw
    fast_seconds: PowerLaw
    rest_seconds: PowerLaw
    explicit_bytes: PowerLaw
    fast_bytes: PowerLaw


def measure(setting: Setting) -> Measurement:
    """Time both ways of attention over lengths, and fit power laws."""
    lengths = setting.choose((128, 256, 512, 1024, LONGEST_IN_QUICK), (8, 16, 32, 64))
    left = available_memory(torch.device("cpu"))
    # The five stages hold about four matrices of scores.
    fits = [n for n in lengths if left is None or 5 * NUM_HEADS * n * n * 4 < left]
    costs = []
    for length in fits if len(fits) > 3 else lengths[:4]:
        setting.say(f"{length} tokens")
        costs.append(_measure_length(length, setting))
    laws = fit_laws(costs)
    return Measurement(
        claim="length",
        question="Is attention quadratic, and how long may a text be?",
        number=f"Time grows with n^{laws.explicit_seconds.exponent:.2f} in five stages and "
        f"n^{laws.fast_seconds.exponent:.2f} fused, memory with "
        f"n^{laws.explicit_bytes.exponent:.2f} and n^{laws.fast_bytes.exponent:.2f}.",
        method=f"One layer's self-attention of {NUM_HEADS} heads with d_k = {D_KEY}, as in the "
        "paper's base model, in float32 without gradients: once as five stages that are all kept, "
        "once fused. The rest of the layer is its projections and its feed-forward network of "
        f"{D_FF}. Memory is that of results at once. Exponents are slopes of log cost over log "
        "length, fitted to the longer half.",
        findings=(
            Finding(QUADRATIC_SAYS, judge_quadratic(laws)),
            Finding(PAGE_SAYS, judge_page(laws)),
        ),
        tables=(_costs(costs), _limits(laws)),
        plot=_plot(costs),
        notes=(
            "Attention costs as much as the rest of the layer at "
            f"{write_length(laws.explicit_seconds.meets(laws.rest_seconds))} tokens in five "
            f"stages and at {write_length(laws.fast_seconds.meets(laws.rest_seconds))} fused: in "
            "shorter texts most of the time is not quadratic at all.",
            "Longest texts are extrapolated from the fits where they are longer than what was "
            "measured.",
        ),
        to_try=("pellucid inspect demo", "pellucid why cache"),
        seed=setting.seed,
        size=setting.size,
        machine=describe_machine(),
    )


def fit_laws(costs: list[Cost]) -> Laws:
    """Fit a power law to each column, on the longer half of the lengths and at least three."""
    longer = costs[-max(3, (len(costs) + 1) // 2) :]
    lengths = [cost.length for cost in longer]

    def fit(column: str) -> PowerLaw:
        return fit_power_law(lengths, [getattr(cost, column) for cost in longer])

    return Laws(*(fit(column) for column in Laws.__dataclass_fields__))


def judge_quadratic(laws: Laws) -> Verdict:
    """Judge by the exponents of time and memory, in five stages and fused."""
    low, high = QUADRATIC
    names = ("time in five stages", "time fused", "memory in five stages", "memory fused")
    exponents = (
        laws.explicit_seconds.exponent, laws.fast_seconds.exponent,
        laws.explicit_bytes.exponent, laws.fast_bytes.exponent,
    )  # fmt: skip
    rule = (
        f"quadratic is an exponent from {low} to {high}; holds if all four are, fails if neither "
        "time is"
    )
    numbers = ", ".join(f"{name} {e:.2f}" for name, e in zip(names, exponents, strict=True))
    is_quadratic = [low <= exponent <= high for exponent in exponents]
    if all(is_quadratic):
        return Verdict("holds", "", rule, numbers)
    if not any(is_quadratic[:2]):
        return Verdict("fails", "", rule, numbers)
    if is_quadratic == [True, True, True, False]:
        kept = f"all weights are kept; fused, memory grows with n^{exponents[3]:.2f}"
    else:
        kept = "it is about " + " and ".join(
            name for name, is_one in zip(names, is_quadratic, strict=True) if is_one
        )
    return Verdict("holds only if", kept, rule, numbers)


def judge_page(laws: Laws) -> Verdict:
    """Judge by how long the six layers of the paper's encoder take for two pages."""
    seconds = {name: seconds_of_encoder(laws, way, 2 * PAGE) for name, way in _WAYS.items()}
    fastest = min(seconds.values())
    rule = (
        f"a page has about {PAGE} tokens; fails if {NUM_LAYERS} layers take two pages in a second "
        "in the faster way, holds if they need more than a minute"
    )
    numbers = ", ".join(f"{name} {found:.2g} s" for name, found in seconds.items())
    if fastest <= 1:
        return Verdict("fails", "", rule, numbers)
    if fastest <= 60:
        return Verdict("holds only if", "an answer must come within about a second", rule, numbers)
    return Verdict("holds", "", rule, numbers)


def seconds_of_encoder(laws: Laws, way: Way, length: float) -> float:
    """Compute the time of the paper's encoder, attention and the rest of each layer."""
    attention: PowerLaw = getattr(laws, f"{way}_seconds")
    return NUM_LAYERS * (attention.at(length) + laws.rest_seconds.at(length))


def longest_in(laws: Laws, way: Way, seconds: float) -> float:
    """Find the longest text that the paper's encoder reads in a time."""
    return longest_below(lambda length: seconds_of_encoder(laws, way, length), seconds)


@torch.inference_mode()
def _measure_length(length: int, setting: Setting) -> Cost:
    numbers = generator(setting.seed, "why length", length)
    shape = (3, 1, NUM_HEADS, length, D_KEY)
    query_BHLK, key_BHLK, value_BHLK = torch.from_numpy(
        numbers.standard_normal(shape, dtype="float32")
    )
    d_model = NUM_HEADS * D_KEY
    projections = torch.nn.Linear(d_model, 4 * d_model, bias=False)
    inner, outer = torch.nn.Linear(d_model, D_FF), torch.nn.Linear(D_FF, d_model)
    x_LD = torch.from_numpy(numbers.standard_normal((length, d_model), dtype="float32"))
    repeats = setting.choose(3 if length > 512 else 5, 2)

    def explicit() -> object:
        return attend(query_BHLK, key_BHLK, value_BHLK)

    def fast() -> object:
        return attend_fast(query_BHLK, key_BHLK, value_BHLK)

    return Cost(
        length,
        seconds_of(explicit, repeats=repeats),
        seconds_of(fast, repeats=repeats),
        seconds_of(
            lambda: (projections(x_LD), outer(torch.relu(inner(x_LD)))), repeats=repeats
        ),
        peak_bytes(explicit),
        peak_bytes(fast),
    )  # fmt: skip


def write_length(length: float) -> str:
    """Write a length with two digits that count."""
    if not length < 1e9:
        return "more than a billion"
    digits = max(0, len(str(int(length))) - 2)
    return f"{round(length, -digits):,.0f}"


def _costs(costs: list[Cost]) -> Table:
    return Table(
        "Cost of one layer's attention",
        ("tokens", "stages, ms", "fused, ms", "rest, ms", "stages, MiB", "fused, MiB"),
        ("d", ".2f", ".2f", ".2f", ".2f", ".2f"),
        tuple(
            (cost.length, 1000 * cost.explicit_seconds, 1000 * cost.fast_seconds,
             1000 * cost.rest_seconds, cost.explicit_bytes / 2**20, cost.fast_bytes / 2**20)
            for cost in costs
        ),
        is_of_this_machine=True,
    )  # fmt: skip


def _limits(laws: Laws) -> Table:
    rows = []
    for name, way in _WAYS.items():
        seconds: PowerLaw = getattr(laws, f"{way}_seconds")
        memory: PowerLaw = getattr(laws, f"{way}_bytes")
        rows.append(
            (name, seconds.exponent, memory.exponent, seconds.length_at(1.0),
             longest_in(laws, way, 1.0), memory.length_at(GIB))
        )  # fmt: skip
    return Table(
        "Exponents, and the longest text in tokens: one second for one layer's attention, one "
        "second for six whole layers, 1 GiB for one layer's attention",
        ("", "time", "memory", "1 s, attention", "1 s, encoder", "1 GiB"),
        ("", ".2f", ".2f", ",.0f", ",.0f", ",.0f"),
        tuple(rows),
        is_of_this_machine=True,
    )


def _plot(costs: list[Cost]) -> Plot:
    lengths = tuple(float(cost.length) for cost in costs)

    def series(name: str, column: str, scale: float, role: str) -> Series:
        heights = tuple(scale * getattr(cost, column) for cost in costs)
        return Series(name, lengths, heights, role)  # type: ignore[arg-type]

    time = Panel(
        "Time of one layer", "tokens", "ms",
        (
            series("attention, five stages", "explicit_seconds", 1000, "accent"),
            series("attention, fused", "fast_seconds", 1000, "plain"),
            series("rest of the layer", "rest_seconds", 1000, "plain"),
        ),
        x_log=True, y_log=True,
    )  # fmt: skip
    memory = Panel(
        "Memory of its results", "tokens", "MiB",
        (
            series("attention, five stages", "explicit_bytes", 2**-20, "accent"),
            series("attention, fused", "fast_bytes", 2**-20, "plain"),
        ),
        x_log=True, y_log=True,
    )  # fmt: skip
    return Plot((time, memory))
