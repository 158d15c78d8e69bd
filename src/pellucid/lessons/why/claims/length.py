"""The cost of length: time and memory of attention, and the longest text that fits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from pellucid.attention import attend, attend_fast
from pellucid.lessons.why.cells import Cells, Column, average, decide, judge_seeds, measure_cells
from pellucid.lessons.why.clock import peak_bytes, seconds_of
from pellucid.lessons.why.fits import PowerLaw, fit_power_law, longest_below
from pellucid.lessons.why.result import Found, Panel, ResultTable, Verdict
from pellucid.lessons.why.setting import MeasurementSetting
from pellucid.machine.hardware import available_memory
from pellucid.machine.randomness import generator

# The paper's base model.
NUM_HEADS = 8
D_KEY = 64
D_FF = 2048
NUM_LAYERS = 6
PAGE = 700
"""Tokens of a page."""
WORDS_ON_PAGE = 500
TOKENS_PER_WORD = PAGE / WORDS_ON_PAGE
QUADRATIC = (1.7, 2.3)
MEMORY = 24 * 2**30
"""Bytes that hold the longest text."""

Way = Literal["explicit", "fast"]
WAYS: dict[str, Way] = {"five stages": "explicit", "fused": "fast"}
COSTS = ("explicit_seconds", "fast_seconds", "rest_seconds", "explicit_bytes", "fast_bytes")
Laws = Mapping[str, PowerLaw]
"""A power law for each of `COSTS`, fitted to the longer half of the lengths."""


def measure(setting: MeasurementSetting) -> Found:
    """Time both ways of attention over lengths, and fit power laws."""
    lengths = setting.choose(
        (128, 256, 512, 1024, 2048), (8, 16, 32, 64), tuple(64 * 2**k for k in range(9))
    )
    cells = _measure_lengths(setting, lengths)
    laws = _laws_of(cells)
    more = {cost: 2 ** laws[cost].exponent for cost in COSTS}
    longest = {way: _longest_words(laws, _rest_bytes(cells), way) for way in WAYS.values()}
    room = {way: write_length(found[1]) for way, found in longest.items()}
    return Found(
        "one layer's self-attention was measured, of the size in the paper “Attention Is All You "
        f"Need”. Twice the words take {more['explicit_seconds']:.1f} times the time. They also "
        f"take {more['explicit_bytes']:.1f} times the memory, if all attention weights are stored. "
        "Fused attention, such as FlashAttention, computes them piece by piece and never stores "
        f"them all. Twice the words then still take {more['fast_seconds']:.1f} times the time. But "
        f"they take {more['fast_bytes']:.1f} times the memory. In 24 GiB of memory one layer then "
        f"has room for a text of {room['fast']} words. With all weights stored it has room for "
        f"{room['explicit']} words, since each of {NUM_HEADS} heads stores about "
        f"{laws['explicit_bytes'].at(PAGE) / (4 * NUM_HEADS * PAGE**2):.0f} numbers for every pair "
        "of tokens: scores, weights, and the stages between them. A word counts as "
        f"{TOKENS_PER_WORD:g} tokens. {_say_pages(laws)}",
        f"One layer's self-attention of {NUM_HEADS} heads with d_k = {D_KEY}, as in the "
        f"paper's base model, in float32 without gradients, from {lengths[0]} to {lengths[-1]:,} "
        "tokens: once as five stages that are all kept, once fused. Where all heads together do "
        "not fit the memory, the stages run head by head. The rest of the layer is its projections "
        f"and its feed-forward network of {D_FF}. Memory is that of results at once, of all heads. "
        "Exponents are slopes of log cost over log length, fitted to the longer half. "
        f"A page of {WORDS_ON_PAGE} words has {PAGE} tokens.",
        verdicts={
            "quadratic": judge_seeds(lambda one: judge_quadratic(_laws_of(one)), cells),
            "page": judge_seeds(lambda one: judge_page(_laws_of(one)), cells),
        },
        tables=(
            _tabulate(cells),
            _exponents(cells),
            _crossings(cells),
            ResultTable(
                "Longest text in words: six layers in 1 second, one layer's results in 24 GiB, "
                "those of six layers at once, as training keeps them",
                ("", "1 s", "24 GiB, one layer", "24 GiB, six layers"),
                ("", ",.0f", ",.0f", ",.0f"),
                tuple((name, *longest[way]) for name, way in WAYS.items()),
                is_of_this_machine=True,
            ),
        ),
        panels=tuple(_panels(cells)),
    )


def fit_laws(cells: Cells) -> Laws:
    """Fit a power law to each cost, on the longer half of the lengths and at least three.

    Args:
        cells: of one seed. Lengths that do not fit this machine in five stages are left out.
    """
    whole = [row for row in cells.rows if row["explicit_seconds"] and row["explicit_bytes"]]
    # What does not grow with the length hides the exponent at small ones.
    longer = whole[-max(3, (len(whole) + 1) // 2) :]
    lengths = [row["length"] for row in longer]
    return {cost: fit_power_law(lengths, [row[cost] for row in longer]) for cost in COSTS}


def _average(found: Sequence[Laws]) -> Laws:
    """Average factors and exponents, the factors as logarithms."""

    def mean(each: Sequence[PowerLaw]) -> PowerLaw:
        factor = average([law.factor for law in each], in_logarithms=True)
        return PowerLaw(factor, average([law.exponent for law in each]))

    return {cost: mean([laws[cost] for laws in found]) for cost in COSTS}


def _laws_of(cells: Cells) -> Laws:
    return _average([fit_laws(cells.where(seed=seed)) for seed in cells.values("seed")])


def judge_quadratic(laws: Laws) -> Verdict:
    """Judge by the exponents of time, in five stages and fused."""
    low, high = QUADRATIC
    exponents = {}
    for what, cost in (("time", "seconds"), ("memory", "bytes")):
        for said, way in (("in five stages", "explicit"), ("fused", "fast")):
            exponents[f"{what} {said}"] = laws[f"{way}_{cost}"].exponent
    is_quadratic = [low <= laws[f"{way}_seconds"].exponent <= high for way in WAYS.values()]
    return decide(
        f"quadratic is an exponent from {low} to {high} of the time; holds if it is, in five "
        "stages and fused, fails if in neither; the claim says nothing of memory",
        ", ".join(f"{name} {exponent:.2f}" for name, exponent in exponents.items()),
        "If time grows with the square, twice the words take 4 times the time. From "
        f"{2**low:.1f} to {2**high:.1f} times counts as that. With all weights stored it is "
        f"{2 ** laws['explicit_seconds'].exponent:.1f} times the time. With fused "
        f"attention it is {2 ** laws['fast_seconds'].exponent:.1f} times.",
        fails=not any(is_quadratic),
        unless={
            "all weights are kept": is_quadratic == [True, False],
            "attention is fused": is_quadratic == [False, True],
        },
    )


def judge_page(laws: Laws) -> Verdict:
    """Judge by how long the six layers of the paper's encoder take for two pages."""
    seconds = {name: seconds_of_encoder(laws, way, 2 * PAGE) for name, way in WAYS.items()}
    fastest = seconds_of_pages(laws)
    return decide(
        f"a page has about {PAGE} tokens; fails if {NUM_LAYERS} layers take two pages in a second "
        "in the faster way, holds if they need more than a minute",
        ", ".join(f"{name} {found:.2g} s" for name, found in seconds.items()),
        f"{NUM_LAYERS} layers of the paper's size read two pages in {fastest:.2g} seconds. Up to "
        "one second counts as no limit.",
        fails=fastest <= 1,
        unless={"an answer must come within about a second": fastest <= 60},
    )


def seconds_of_pages(laws: Laws) -> float:
    """Compute the time of the paper's encoder for two pages, in the faster way."""
    return min(seconds_of_encoder(laws, way, 2 * PAGE) for way in WAYS.values())


def _say_pages(laws: Laws) -> str:
    is_no_limit = judge_page(laws).outcome == "fails"
    return (
        f"{'A page is no limit: on' * is_no_limit or 'On'} the processor of this measurement, "
        f"{NUM_LAYERS} layers read two pages of {WORDS_ON_PAGE} words each in "
        f"{seconds_of_pages(laws):.2g} seconds"
    )


def seconds_of_encoder(laws: Laws, way: Way, length: float) -> float:
    """Compute the time of the paper's encoder, attention and the rest of each layer."""
    return NUM_LAYERS * (laws[f"{way}_seconds"].at(length) + laws["rest_seconds"].at(length))


def longest_in(laws: Laws, way: Way, seconds: float) -> float:
    """Find the longest text that the paper's encoder reads in a time."""
    return longest_below(lambda length: seconds_of_encoder(laws, way, length), seconds)


def crossing(rows: Sequence[Mapping[str, Any]], way: str) -> float | None:
    """Find the length at which attention first takes as long as the rest of its layer.

    Args:
        rows: the measured lengths, in rising order.
        way: ``explicit`` or ``fast``.

    Returns:
        The length, between two that were measured along a line through their logarithms; None if
        attention is faster at all of them, the first length if it is slower there already.
    """
    before: tuple[float, float] | None = None
    for row in rows:
        seconds = row[f"{way}_seconds"]
        # Too long for this machine's memory.
        if seconds is None:
            continue
        place = math.log(row["length"])
        gap = math.log(seconds / row["rest_seconds"])
        if gap >= 0:
            if before is None:
                return float(row["length"])
            last, under = before
            return math.exp(last + (place - last) * under / (under - gap))
        before = (place, gap)
    return None


def _measure_lengths(setting: MeasurementSetting, lengths: Sequence[int]) -> Cells:
    def time(length: int, seed: int) -> dict[str, Any]:
        # A long call is disturbed less, and lasts too long to repeat it often.
        repeats = 5 if length <= 512 else 3 if length <= 4096 else 1
        return _time_length(length, seed, setting.choose(repeats, 1))

    times = measure_cells(
        setting,
        "times of {length} tokens",
        time,
        is_timed=True,
        length=lengths,
    )
    # A machine with less memory leaves out lengths that another one counts.
    sizes = {
        length: setting.cell(
            f"bytes of {length} tokens", partial(_count_bytes, length), is_timed=True
        )
        for length in lengths
    }
    return Cells(tuple({**row, **sizes[row["length"]]} for row in times.rows))


@torch.inference_mode()
def _time_length(length: int, seed: int, repeats: int) -> dict[str, Any]:
    query_BHLK, key_BHLK, value_BHLK = _draw(length, NUM_HEADS, seed)
    heads = _heads_at_once(length)

    def explicit() -> None:
        for first in range(0, NUM_HEADS, heads):
            part = slice(first, first + heads)
            attend(query_BHLK[:, part], key_BHLK[:, part], value_BHLK[:, part])

    return {
        # Kept, as the table says where the stages ran head by head.
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
    # All heads at once, as a model computes them, or one after another.
    for heads in (NUM_HEADS, 1):
        if left is None or 6 * heads * length**2 * 4 < left:
            return heads
    return 0


@torch.inference_mode()
def _count_bytes(length: int) -> dict[str, Any]:
    """Count the bytes of results at once, which every machine has alike."""
    fast_HLK = _draw(length, NUM_HEADS, 1)
    one_HLK = _draw(length, 1, 1)
    return {
        "fast_bytes": peak_bytes(lambda: attend_fast(*fast_HLK)),
        "rest_bytes": peak_bytes(_rest_of_layer(length, 1)),
        # Every stage has the heads as an axis, so that each takes as much as the first.
        "explicit_bytes": NUM_HEADS * peak_bytes(lambda: attend(*one_HLK))
        if _heads_at_once(length)
        else None,
    }


def _draw(length: int, heads: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    numbers = generator(seed, "why length", length)
    shape = (3, 1, heads, length, D_KEY)
    query_BHLK, key_BHLK, value_BHLK = torch.from_numpy(
        numbers.standard_normal(shape, dtype="float32")
    )
    return query_BHLK, key_BHLK, value_BHLK


def _rest_of_layer(length: int, seed: int) -> Callable[[], object]:
    d_model = NUM_HEADS * D_KEY
    # Queries, keys, values and the output in one product.
    projections = torch.nn.Linear(d_model, 4 * d_model, bias=False)
    inner = torch.nn.Linear(d_model, D_FF)
    outer = torch.nn.Linear(D_FF, d_model)
    numbers = generator(seed, "why length rest", length)
    x_LD = torch.from_numpy(numbers.standard_normal((length, d_model), dtype="float32"))
    return lambda: (projections(x_LD), outer(torch.relu(inner(x_LD))))


def write_length(length: float) -> str:
    """Write a length with two digits that count."""
    if not length < 1e9:
        return "more than a billion"
    # An extrapolated length has no more than two digits to trust.
    digits = max(0, len(str(int(length))) - 2)
    return f"{round(length, -digits):,.0f}"


def _rest_bytes(cells: Cells) -> PowerLaw:
    first = cells.where(seed=cells.values("seed")[0])
    return fit_power_law(first.all("length"), first.all("rest_bytes"))


def _longest_words(laws: Laws, rest_bytes: PowerLaw, way: Way) -> tuple[float, float, float]:
    """Find the words that fit a second of six layers, and a memory: one layer's, all six."""

    def bytes_of_layer(length: float) -> float:
        return laws[f"{way}_bytes"].at(length) + rest_bytes.at(length)

    return (
        longest_in(laws, way, 1.0) / TOKENS_PER_WORD,
        longest_below(bytes_of_layer, MEMORY) / TOKENS_PER_WORD,
        longest_below(lambda length: NUM_LAYERS * bytes_of_layer(length), MEMORY) / TOKENS_PER_WORD,
    )


def _tabulate(cells: Cells) -> ResultTable:
    return cells.table(
        "Cost of one layer, with the heads that five stages compute at once",
        "length",
        (
            Column("stages, ms", "explicit_seconds", ".2f", 1000),
            Column("fused, ms", "fast_seconds", ".2f", 1000),
            Column("rest, ms", "rest_seconds", ".2f", 1000),
            Column("stages, MiB", "explicit_bytes", ",.2f", 2**-20, over_seeds="first"),
            Column("fused, MiB", "fast_bytes", ",.2f", 2**-20, over_seeds="first"),
            Column("heads", "heads_at_once", "d", over_seeds="first"),
        ),
        head="tokens",
        is_of_this_machine=True,
    )


def _exponents(measured: Cells) -> ResultTable:
    rows = []
    for name, way in {**WAYS, "rest of the layer": "rest"}.items():
        for seed in measured.values("seed"):
            laws = _laws_of(measured.where(seed=seed))
            memory = None if way == "rest" else laws[f"{way}_bytes"].exponent
            time = laws[f"{way}_seconds"].exponent
            rows.append({"way": name, "seed": seed, "time": time, "memory": memory})
    columns = (Column("time", "time"), Column("memory", "memory"))
    title = "Fitted exponents, longer half of the lengths"
    return Cells(tuple(rows)).table(title, "way", columns, is_of_this_machine=True)


def _crossings(cells: Cells) -> ResultTable:
    rows = []
    for name, way in WAYS.items():
        for seed in cells.values("seed"):
            tokens = crossing(cells.where(seed=seed).rows, way)
            rows.append({"way": name, "seed": seed, "tokens": tokens})
    return Cells(tuple(rows)).table(
        "Length from which attention takes longer than the rest of its layer; a dash if it never "
        "does",
        "way",
        (Column("tokens", "tokens"), Column("words", "tokens", scale=1 / TOKENS_PER_WORD)),
        is_of_this_machine=True,
    )


def _panels(cells: Cells) -> Iterator[Panel]:
    names = {
        "attention, five stages": "explicit",
        "attention, fused": "fast",
        "rest of the layer": "rest",
    }
    for title, label, cost, scale in (
        ("Time of one layer", "ms", "seconds", 1000),
        ("Memory of its results", "MiB", "bytes", 2**-20),
    ):
        yield cells.panel(
            title,
            ("tokens", label),
            {name: f"{way}_{cost}" for name, way in names.items()},
            "length",
            scale=scale,
            x_log=True,
            y_log=True,
        )
