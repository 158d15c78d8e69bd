"""The cost of length from 64 to 16,384 tokens, and the text that fits a memory or a second."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from pellucid.attention import attend, attend_fast
from pellucid.lessons.why.claims.length import (
    D_FF,
    D_KEY,
    GIB,
    NUM_HEADS,
    NUM_LAYERS,
    PAGE,
    PAGE_SAYS,
    QUADRATIC_SAYS,
    Cost,
    Laws,
    fit_laws,
    judge_page,
    judge_quadratic,
    seconds_of_encoder,
    write_length,
)
from pellucid.lessons.why.clock import peak_bytes, seconds_of
from pellucid.lessons.why.fits import PowerLaw, fit_power_law, longest_below
from pellucid.lessons.why.long.sums import mean, series_of, write
from pellucid.lessons.why.result import Cell, Finding, Measurement, Panel, Plot, Table
from pellucid.lessons.why.setting import Setting
from pellucid.machine.hardware import available_memory, describe_machine
from pellucid.machine.randomness import generator

WORDS_ON_PAGE = 500
TOKENS_PER_WORD = PAGE / WORDS_ON_PAGE
MEMORY = 24 * GIB
SECONDS = 1.0
WAYS = {"five stages": "explicit", "fused": "fast"}
Cells = list[dict[str, Any]]


def measure(setting: Setting) -> Measurement:
    """Time both ways of attention from 64 to 16,384 tokens, and find what fits."""
    lengths = setting.choose(tuple(64 * 2**k for k in range(9)), (8, 16, 32, 64))
    cells = {
        seed: [_measure_length(length, seed, setting) for length in lengths]
        for seed in setting.seeds
    }
    # A length whose five stages do not fit this machine has none of their times.
    by_seed = {seed: fit_laws(_costs(found)) for seed, found in cells.items()}
    laws = _average_laws(list(by_seed.values()))
    rest_bytes = fit_power_law(lengths, [one["rest_bytes"] for one in cells[setting.seed]])
    crossings = {
        name: [crossing(found, way) for found in cells.values()] for name, way in WAYS.items()
    }
    longest = {way: _longest_words(laws, rest_bytes, way) for way in WAYS.values()}
    explicit, fast = longest["explicit"], longest["fast"]
    return Measurement(
        claim="length",
        question="Is attention quadratic, and how long may a text be?",
        number=f"Time grows with n^{laws.explicit_seconds.exponent:.2f} in five stages and "
        f"n^{laws.fast_seconds.exponent:.2f} fused, memory with "
        f"n^{laws.explicit_bytes.exponent:.2f} and n^{laws.fast_bytes.exponent:.2f}. Six layers "
        f"read {write_length(explicit[0])} words in a second in five stages and "
        f"{write_length(fast[0])} fused; 24 GiB hold {write_length(explicit[1])} and "
        f"{write_length(fast[1])}.",
        method=f"One layer's self-attention of {NUM_HEADS} heads with d_k = {D_KEY}, as in the "
        f"paper's base model, in float32 without gradients, from {lengths[0]} to {lengths[-1]:,} "
        "tokens: once as five stages that are all kept, once fused. Where all heads together do "
        "not fit the memory, the stages run head by head. The rest of the layer is its projections "
        f"and its feed-forward network of {D_FF}. Memory is that of results at once, of all heads. "
        "Exponents are fitted to the longer half. A page of "
        f"{WORDS_ON_PAGE} words has {PAGE} tokens.",
        findings=(
            Finding(QUADRATIC_SAYS, judge_quadratic(laws)),
            Finding(PAGE_SAYS, judge_page(laws)),
        ),
        tables=(
            _cost_table(lengths, list(cells.values())),
            _exponent_table(list(by_seed.values())),
            _crossing_table(crossings),
            _limit_table(longest),
        ),
        plot=_plot(lengths, list(cells.values())),
        notes=(
            "Below the length at which attention takes as long as the rest of its layer, most of "
            "the time is not quadratic at all.",
            "Longest texts are extrapolated from the fits if they are longer than what was "
            "measured. Training keeps the results of all six layers, and then a sixth of the "
            "memory is left for each.",
        ),
        to_try=("pellucid inspect demo", "pellucid why cache"),
        seed=setting.seed,
        size=setting.size,
        machine=describe_machine(),
    )


def crossing(cells: Sequence[dict[str, Any]], way: str) -> float | None:
    """Find the length at which attention first takes as long as the rest of its layer.

    Args:
        cells: the measured lengths, in rising order.
        way: ``explicit`` or ``fast``.

    Returns:
        The length, between two that were measured along a line through their logarithms; None if
        attention is faster at all of them, the first length if it is slower there already.
    """
    before: tuple[float, float] | None = None
    for cell in cells:
        seconds = cell[f"{way}_seconds"]
        if seconds is None:
            continue
        place, gap = math.log(cell["length"]), math.log(seconds / cell["rest_seconds"])
        if gap >= 0:
            if before is None:
                return float(cell["length"])
            return math.exp(before[0] + (place - before[0]) * before[1] / (before[1] - gap))
        before = place, gap
    return None


def _measure_length(length: int, seed: int, setting: Setting) -> dict[str, Any]:
    times: dict[str, Any] = setting.cell(
        f"times of {length} tokens, seed {seed}",
        lambda: _time_length(length, seed, setting),
        is_timed=True,
    )
    return {"length": length, **times, **_count_bytes(length, setting)}


@torch.inference_mode()
def _time_length(length: int, seed: int, setting: Setting) -> dict[str, Any]:
    query_BHLK, key_BHLK, value_BHLK = _draw(length, NUM_HEADS, seed)
    repeats = setting.choose(5 if length <= 512 else 3 if length <= 4096 else 1, 1)
    heads = _heads_at_once(length)

    def explicit() -> None:
        for first in range(0, NUM_HEADS, heads):
            part = slice(first, first + heads)
            attend(query_BHLK[:, part], key_BHLK[:, part], value_BHLK[:, part])

    return {
        "heads_at_once": heads,
        "explicit_seconds": seconds_of(explicit, repeats=repeats) if heads else None,
        "fast_seconds": seconds_of(
            lambda: attend_fast(query_BHLK, key_BHLK, value_BHLK), repeats=repeats
        ),
        "rest_seconds": seconds_of(_rest_of_layer(length, seed), repeats=repeats),
    }


def _heads_at_once(length: int) -> int:
    """Choose how many heads' stages fit into the free memory together; 0 if not even one's do."""
    left = available_memory(torch.device("cpu"))
    # The five stages hold about four matrices of scores, and two more are room to spare.
    for heads in (NUM_HEADS, 1):
        if left is None or 6 * heads * length**2 * 4 < left:
            return heads
    return 0


@torch.inference_mode()
def _count_bytes(length: int, setting: Setting) -> dict[str, Any]:
    """Count the bytes of results at once, which every machine has alike."""

    def make() -> dict[str, Any]:
        fast_HLK = _draw(length, NUM_HEADS, 1)
        found: dict[str, Any] = {
            "fast_bytes": peak_bytes(lambda: attend_fast(*fast_HLK)),
            "rest_bytes": peak_bytes(_rest_of_layer(length, 1)),
            "explicit_bytes": None,
        }
        if _heads_at_once(length):
            one_HLK = _draw(length, 1, 1)
            # Every stage has the heads as an axis, so that each takes as much as the first.
            found["explicit_bytes"] = NUM_HEADS * peak_bytes(lambda: attend(*one_HLK))
        return found

    # A machine with less memory leaves out lengths that another one counts.
    counted: dict[str, Any] = setting.cell(f"bytes of {length} tokens", make, is_timed=True)
    return counted


def _draw(length: int, heads: int, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    numbers = generator(seed, "why length", length)
    shape = (3, 1, heads, length, D_KEY)
    query_BHLK, key_BHLK, value_BHLK = torch.from_numpy(
        numbers.standard_normal(shape, dtype="float32")
    )
    return query_BHLK, key_BHLK, value_BHLK


def _rest_of_layer(length: int, seed: int) -> Callable[[], object]:
    d_model = NUM_HEADS * D_KEY
    projections = torch.nn.Linear(d_model, 4 * d_model, bias=False)
    inner, outer = torch.nn.Linear(d_model, D_FF), torch.nn.Linear(D_FF, d_model)
    numbers = generator(seed, "why length rest", length)
    x_LD = torch.from_numpy(numbers.standard_normal((length, d_model), dtype="float32"))
    return lambda: (projections(x_LD), outer(torch.relu(inner(x_LD))))


def _costs(cells: Cells) -> list[Cost]:
    """Take the lengths that were measured in both ways."""
    return [
        Cost(**{name: cell[name] for name in Cost.__dataclass_fields__})
        for cell in cells
        if cell["explicit_seconds"] is not None and cell["explicit_bytes"] is not None
    ]


def _average_laws(found: Sequence[Laws]) -> Laws:
    """Average factors and exponents, the factors as logarithms."""

    def average(name: str) -> PowerLaw:
        each: list[PowerLaw] = [getattr(laws, name) for laws in found]
        factor = math.exp(mean([math.log(law.factor) for law in each]))
        return replace(each[0], factor=factor, exponent=mean([law.exponent for law in each]))

    return Laws(*(average(name) for name in Laws.__dataclass_fields__))


def _longest_words(laws: Laws, rest_bytes: PowerLaw, way: Any) -> tuple[float, float, float]:
    """Find the words that fit a second of six layers, and a memory: one layer's, all six."""
    attention_bytes: PowerLaw = getattr(laws, f"{way}_bytes")

    def bytes_of_layer(length: float) -> float:
        return attention_bytes.at(length) + rest_bytes.at(length)

    tokens = (
        longest_below(lambda length: seconds_of_encoder(laws, way, length), SECONDS),
        longest_below(bytes_of_layer, MEMORY),
        longest_below(lambda length: NUM_LAYERS * bytes_of_layer(length), MEMORY),
    )
    one_second, one_layer, six_layers = (count / TOKENS_PER_WORD for count in tokens)
    return one_second, one_layer, six_layers


def _cost_table(lengths: Sequence[int], by_seed: Sequence[Cells]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for place, length in enumerate(lengths):
        found = [cells[place] for cells in by_seed]
        times = [
            write([one[what] for one in found], scale=1000) if found[0][what] is not None else "–"
            for what in ("explicit_seconds", "fast_seconds", "rest_seconds")
        ]
        sizes = [
            None if found[0][what] is None else found[0][what] / 2**20
            for what in ("explicit_bytes", "fast_bytes")
        ]
        rows.append((length, *times, *sizes, found[0]["heads_at_once"]))
    return Table(
        "Cost of one layer",
        ("tokens", "stages, ms", "fused, ms", "rest, ms", "stages, MiB", "fused, MiB",
         "heads at once"),
        ("d", "", "", "", ",.2f", ",.2f", "d"),
        tuple(rows),
        is_of_this_machine=True,
    )  # fmt: skip


def _exponent_table(by_seed: Sequence[Laws]) -> Table:
    def exponents(column: str) -> str:
        return write([getattr(laws, column).exponent for laws in by_seed])

    return Table(
        "Fitted exponents, longer half of the lengths",
        ("", "time", "memory"),
        ("", "", ""),
        (
            *((name, exponents(f"{way}_seconds"), exponents(f"{way}_bytes"))
              for name, way in WAYS.items()),
            ("rest of the layer", exponents("rest_seconds"), "–"),
        ),
        is_of_this_machine=True,
    )  # fmt: skip


def _crossing_table(crossings: dict[str, list[float | None]]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, found in crossings.items():
        known = [one for one in found if one is not None]
        has_all = len(known) == len(found)
        rows.append(
            (name, write(known) if has_all else "–",
             write([one / TOKENS_PER_WORD for one in known]) if has_all else "–")
        )  # fmt: skip
    return Table(
        "Length from which attention takes longer than the rest of its layer; a dash if it never "
        "does",
        ("", "tokens", "words"),
        ("", "", ""),
        tuple(rows),
        is_of_this_machine=True,
    )


def _limit_table(longest: dict[str, tuple[float, float, float]]) -> Table:
    return Table(
        f"Longest text in words: six layers in {SECONDS:g} second, one layer's results in 24 GiB, "
        "those of six layers at once, as training keeps them",
        ("", "1 s", "24 GiB, one layer", "24 GiB, six layers"),
        ("", ",.0f", ",.0f", ",.0f"),
        tuple((name, *longest[way]) for name, way in WAYS.items()),
        is_of_this_machine=True,
    )


def _plot(lengths: Sequence[int], by_seed: Sequence[Cells]) -> Plot:
    def line(name: str, column: str, scale: float, role: Any) -> Any:
        values = [
            [math.nan if cells[place][column] is None else cells[place][column]
             for cells in by_seed]
            for place in range(len(lengths))
        ]  # fmt: skip
        return series_of(name, lengths, values, role, scale=scale, in_logarithms=True)

    time = Panel(
        "Time of one layer", "tokens", "ms",
        (
            line("attention, five stages", "explicit_seconds", 1000, "accent"),
            line("attention, fused", "fast_seconds", 1000, "plain"),
            line("rest of the layer", "rest_seconds", 1000, "plain"),
        ),
        x_log=True, y_log=True,
    )  # fmt: skip
    memory = Panel(
        "Memory of its results", "tokens", "MiB",
        (
            line("attention, five stages", "explicit_bytes", 2**-20, "accent"),
            line("attention, fused", "fast_bytes", 2**-20, "plain"),
            line("rest of the layer", "rest_bytes", 2**-20, "plain"),
        ),
        x_log=True, y_log=True,
    )  # fmt: skip
    return Plot((time, memory))
