"""Which rows of the output matrix must a step compute to be sure of its best k tokens?

    python benchmarks/shortlist.py [--model demo]
    python benchmarks/shortlist.py --model RUN --source FILE --target FILE --input FILE

The states are those of the decoder under greedy search of the input's sentences; without files, of
the built-in corpus. Statistics of states come from the first half of the sentences, figures from
steps of the second half. Source and target are the training text that lists are made of.

- A *list* has the likeliest target tokens of each source token (IBM Model 1) and the most frequent
  tokens. A bound says how large a logit any other row can have. The list is proven if no bound
  reaches its k-th best logit. Otherwise all other rows are computed, or only those whose bound
  reaches it.
- *Without a list* rows are computed in the order of their bounds until no bound reaches the k-th
  best logit so far. The answer is always proven, and the count of rows is what matters.

"Read" is the share of the matrix's bytes that a step reads, the data of the bound included: int8
rows, norms and other numbers of a row in four bytes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from side_by_side.results import write_result

from pellucid.bundle import Bundle, load_bundle, resolve_model
from pellucid.config import DecodingConfig
from pellucid.corpora import make_split
from pellucid.data import make_source_batch
from pellucid.decode.constraints.request import Request
from pellucid.decode.decoder import make_decoder
from pellucid.text.reading.lines import read_lines

Array = NDArray[Any]
ITERATIONS = 5
BATCH = 32
CHUNK = 250
BEST = (1, 5)


@dataclass(frozen=True)
class Bound:
    """Upper bounds of logits.

    Attributes:
        upper: gives them for states, (A, D) to (A, V).
        cost: the share of the matrix's bytes that computing them reads.
        rest: the share of a row that is read to know its logit exactly.
    """

    upper: Callable[[Array], Array]
    cost: float
    rest: float = 1.0


@dataclass(frozen=True)
class Steps:
    """States and the matrix they are multiplied with.

    Attributes:
        fitted_AD: states for statistics.
        states_AD: states to measure.
        lists_AV: for each of them, True for the tokens of its sentence's list.
        weight_VD: as int8 has it, in the given units.
        bias_V: of the logits.
    """

    fitted_AD: Array
    states_AD: Array
    lists_AV: Array
    weight_VD: Array
    bias_V: Array


def main() -> None:
    """Measure, print a table, write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="demo")
    parser.add_argument("--source", type=Path, help="training text")
    parser.add_argument("--target", type=Path)
    parser.add_argument("--input", type=Path, help="sentences to translate")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=1000, help="measured, drawn by chance")
    parser.add_argument("--per-token", type=int, default=10, help="listed for a source token")
    parser.add_argument("--frequent", type=int, default=200, help="listed for every sentence")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    bundle = load_bundle(resolve_model(arguments.model))
    steps = make_steps(bundle, arguments)
    size, width = steps.weight_VD.shape
    listed = steps.lists_AV.sum(1).mean()
    print(f"Vocabulary {size}, width {width}; a list has {listed:.0f} tokens on average.\n")
    rows: dict[str, dict[str, float]] = {}
    for name, bound in make_bounds(steps).items():
        rows[name] = found = measure(steps, bound)
        if len(rows) == 1:
            print(f"| bound | {' | '.join(found)} |\n{'| --- ' * (len(found) + 1)}|")
        values = (f"{v:.1f}" if key.startswith("rows") else f"{v:.1%}" for key, v in found.items())
        print(f"| {name} | {' | '.join(values)} |", flush=True)
    written = {"model": arguments.model, "vocabulary": size, "width": width, "bounds": rows}
    write_result("shortlist", written, (), arguments.out)


def measure(steps: Steps, bound: Bound) -> dict[str, float]:
    """Count for the best 1 and 5 what lists prove, and what is read with and without them."""
    found: dict[str, list[Array]] = {}
    for first in range(0, len(steps.states_AD), CHUNK):
        states, listed = (x[first : first + CHUNK] for x in (steps.states_AD, steps.lists_AV))
        logits = states @ steps.weight_VD.T + steps.bias_V
        upper = bound.upper(states)
        # The order of additions may differ in the last digits.
        assert (upper >= logits - 1e-3).all(), "a bound is too low"
        size = listed.mean(1)
        for k in BEST:
            inside = np.partition(np.where(listed, logits, -np.inf), -k, axis=1)[:, -k]
            left = ((upper >= inside[:, None]) & ~listed).mean(1)
            best = np.partition(logits, -k, axis=1)[:, -k]
            above = upper >= best[:, None]
            one = {
                "list has them": inside >= best,
                "proven": left == 0,
                "read, else all": size + bound.cost + (left > 0) * (1 - size) * bound.rest,
                "read, else some": size + bound.cost + left * bound.rest,
                "rows without list": above.sum(1),
                "read without list": bound.cost + above.mean(1) * bound.rest,
            }
            for name, value in one.items():
                found.setdefault(f"{name}, k = {k}", []).append(value)
    return {name: float(np.concatenate(values).mean()) for name, values in found.items()}


def make_bounds(steps: Steps) -> dict[str, Bound]:
    """Make every bound that is measured."""
    weight, bias, fitted = steps.weight_VD, steps.bias_V, steps.fitted_AD
    centered = weight - weight.mean(0)  # It moves all logits of a step by the same.
    mean = fitted.mean(0)
    bounds = {
        "norms of rows": by_norms(weight, bias),
        "… both means removed": around(mean, by_norms(centered, bias + centered @ mean), steps),
    }
    for size in (16, 64, 256):
        group_V = cluster(weight, len(weight) // size)
        bounds[f"clusters of {size}, radius"] = by_clusters(weight, bias, group_V, whole=True)
        bounds[f"clusters of {size}, distance of each row"] = by_clusters(
            weight, bias, group_V, whole=False
        )
        directions = weight / np.linalg.norm(weight, axis=1, keepdims=True)
        group_V = cluster(directions, len(weight) // size)
        bounds[f"directions in clusters of {size}"] = by_angles(weight, bias, group_V)
    width = weight.shape[1]
    for count in (width // 4, width // 2):
        for is_white in (False, True):
            name = f"{count} {'whitened ' * is_white}principal directions exactly"
            bounds[name] = by_prefix(weight, bias, fitted, count, is_white=is_white)
    for bits in (2, 3, 4):
        rounded = round_to_bits(weight, bits)
        bounds[f"{bits} bits"] = by_rounding(weight, rounded, bias, bits, rest=1.0)
        bounds[f"the highest {bits} of int8's bits"] = by_rounding(
            weight, highest_bits(weight, bits), bias, bits, rest=1 - bits / 8
        )
    return bounds


def by_norms(weight: Array, bias: Array) -> Bound:
    """Bound by |h| |w|."""
    sizes = np.linalg.norm(weight, axis=1)
    return Bound(lambda states: norms_of(states) * sizes + bias, cost=4 / weight.shape[1])


def around(mean: Array, bound: Bound, steps: Steps) -> Bound:
    """Apply a bound for centered rows to states without their mean."""
    common = steps.weight_VD.mean(0)
    return Bound(
        lambda states: bound.upper(states - mean) + (states @ common)[:, None],
        cost=2 * bound.cost,
        rest=bound.rest,
    )


def by_clusters(weight: Array, bias: Array, group_V: Array, *, whole: bool) -> Bound:
    """Bound by h c + |h| |w - c|, with the largest distance of a whole cluster or each row's."""
    centers, width = centers_of(weight, group_V), weight.shape[1]
    distance = np.linalg.norm(weight - centers[group_V], axis=1)
    cost = len(centers) / len(weight)
    if whole:
        distance, bias = largest_of(distance, group_V), largest_of(bias, group_V)
    else:
        cost += 4 / width
    return Bound(
        lambda states: (states @ centers.T)[:, group_V] + norms_of(states) * distance + bias, cost
    )


def by_angles(weight: Array, bias: Array, group_V: Array) -> Bound:
    """Bound by |h| |w| cos(angle of h and c - largest angle of w and c)."""
    sizes = np.linalg.norm(weight, axis=1)
    directions = weight / sizes[:, None]
    centers = centers_of(directions, group_V)
    centers /= np.maximum(np.linalg.norm(centers, axis=1, keepdims=True), 1e-12)
    cosine_V = np.einsum("vd,vd->v", directions, centers[group_V]).clip(-1, 1)
    angle_V = largest_of(np.arccos(cosine_V), group_V)
    longest, shortest = largest_of(sizes, group_V), -largest_of(-sizes, group_V)
    highest_bias = largest_of(bias, group_V)

    def upper(states: Array) -> Array:
        norms = norms_of(states)
        angle = np.arccos((states @ centers.T / norms).clip(-1, 1))[:, group_V]
        cosine = np.cos(np.maximum(angle - angle_V, 0).clip(0, np.pi))
        return norms * np.where(cosine > 0, longest, shortest) * cosine + highest_bias

    return Bound(upper, cost=len(centers) / len(weight))


def by_prefix(weight: Array, bias: Array, fitted: Array, count: int, *, is_white: bool) -> Bound:
    """Bound by the product over principal directions of the states and |h| |w| over the rest.

    Whitened: in the coordinates in which states have the same variance in all directions, along the
    principal directions of the rows.
    """
    values, vectors = np.linalg.eigh(fitted.T @ fitted / len(fitted))
    turn, back = vectors[:, ::-1], vectors[:, ::-1]
    if is_white:
        turn, back = vectors / np.sqrt(values), vectors * np.sqrt(values)
        rows = weight @ back
        _, second = np.linalg.eigh(rows.T @ rows)
        turn, back = turn @ second[:, ::-1], back @ second[:, ::-1]
    rows = weight @ back
    sizes, width = np.linalg.norm(rows[:, count:], axis=1), weight.shape[1]

    def upper(states: Array) -> Array:
        turned = states @ turn
        product = turned[:, :count] @ rows[:, :count].T
        return product + norms_of(turned[:, count:]) * sizes + bias

    return Bound(upper, cost=(count + 4) / width, rest=1 - count / width)


def by_rounding(weight: Array, rounded: Array, bias: Array, bits: int, *, rest: float) -> Bound:
    """Bound by the product with rounded rows and |h| |w - rounded|."""
    sizes, width = np.linalg.norm(weight - rounded, axis=1), weight.shape[1]
    return Bound(
        lambda states: states @ rounded.T + norms_of(states) * sizes + bias,
        cost=bits / 8 + 4 / width,
        rest=rest,
    )


def round_to_bits(weight: Array, bits: int) -> Array:
    """Round each row to 2^bits equidistant values, with the best of 27 scales."""
    half = 2 ** (bits - 1)
    best, least = np.zeros_like(weight), np.full(len(weight), np.inf)
    for factor in np.linspace(0.35, 1.0, 27):
        unit = np.abs(weight).max(1, keepdims=True) * factor / (half - 0.5)
        rounded = ((np.floor(weight / unit).clip(-half, half - 1) + 0.5) * unit).astype("f4")
        error = ((weight - rounded) ** 2).sum(1)
        best[error < least] = rounded[error < least]
        least = np.minimum(least, error)
    return best


def highest_bits(weight: Array, bits: int) -> Array:
    """Cut the integers of int8 to their highest bits, and add half of what is cut."""
    unit = np.abs(weight).max(1, keepdims=True) / 127
    step = 2 ** (8 - bits)
    return ((np.floor(np.rint(weight / unit) / step) * step + (step - 1) / 2) * unit).astype("f4")


def norms_of(rows: Array) -> Array:
    return np.linalg.norm(rows, axis=1, keepdims=True)


def cluster(rows: Array, count: int) -> Array:
    """Assign rows to clusters by Lloyd's algorithm: the group of each row."""
    centers = rows[np.random.default_rng(1).choice(len(rows), count, replace=False)]
    for _ in range(10):
        group = (rows @ centers.T - (centers**2).sum(1) / 2).argmax(1)
        found = np.bincount(group, minlength=count) > 0
        centers[found] = centers_of(rows, np.unique(group, return_inverse=True)[1])
    return np.unique(group, return_inverse=True)[1]


def centers_of(rows: Array, group_V: Array) -> Array:
    sums = np.zeros((group_V.max() + 1, rows.shape[1]), rows.dtype)
    np.add.at(sums, group_V, rows)
    return sums / np.bincount(group_V)[:, None].astype(rows.dtype)


def largest_of(values: Array, group_V: Array) -> Array:
    """Give every row the largest value of its group."""
    largest = np.full(group_V.max() + 1, -np.inf, values.dtype)
    np.maximum.at(largest, group_V, values)
    return largest[group_V]


def make_steps(bundle: Bundle, arguments: argparse.Namespace) -> Steps:
    """Translate, and collect the states, the matrix as int8 has it, and the lists."""
    if arguments.input:
        lines = [*read_lines(arguments.input)][: arguments.sentences]
        pairs = [[*read_lines(path)] for path in (arguments.source, arguments.target)]
    else:
        lines = [one.source for one in make_split("validation", count=arguments.sentences)]
        train = make_split("train", count=30_000)
        pairs = [[one.source for one in train], [one.target for one in train]]
    sources = bundle.tokenizer.encode_sources(lines)
    states_AD, sentence_A = collect_states(bundle, sources)
    weight = bundle.model.output_weight.detach().numpy()
    unit = np.abs(weight).max(1, keepdims=True) / 127
    bias = bundle.model.output_bias
    lists = make_lists(
        bundle.tokenizer.encode_sources(pairs[0]),
        bundle.tokenizer.encode_targets(pairs[1]),
        sources,
        len(weight),
        per_token=arguments.per_token,
        frequent=arguments.frequent,
    )
    is_fitted = sentence_A < len(lines) // 2
    others = np.flatnonzero(~is_fitted)
    drawn = np.random.default_rng(1).permutation(others)[: arguments.steps]
    return Steps(
        states_AD[is_fitted],
        states_AD[drawn],
        lists[sentence_A[drawn]],
        np.rint(weight / unit) * unit,
        np.zeros(len(weight), "f4") if bias is None else bias.detach().numpy(),
    )


@torch.inference_mode()
def collect_states(bundle: Bundle, sources: list[list[int]]) -> tuple[Array, Array]:
    """Translate greedily: the decoder's last states, (A, D), and each one's sentence."""
    decoder = make_decoder([bundle.model], bundle.tokenizer)
    requests = [Request(tuple(ids), max_length=2 * len(ids) + 20) for ids in sources]
    found = decoder.decode(requests, DecodingConfig(beam=1), batch_tokens=4096)
    outputs = [one[0].ids for one in found]
    ids = bundle.config.tokenizer
    states, sentences = [], []
    for first in range(0, len(sources), BATCH):
        chosen = range(first, min(first + BATCH, len(sources)))
        read = [(ids.target_start_id, *outputs[i][:-1]) for i in chosen]
        source, mask = make_source_batch([sources[i] for i in chosen], pad_id=ids.pad_id)
        target, is_token = make_source_batch(read, pad_id=ids.pad_id)
        memory = bundle.model.encode(source, mask)
        states.append(bundle.model.decode(target, memory, mask)[is_token].numpy())
        sentences += [i for i in chosen for _ in outputs[i]]
    return np.concatenate(states), np.array(sentences)


def make_lists(
    ones: Sequence[Sequence[int]],
    others: Sequence[Sequence[int]],
    sources: Sequence[Sequence[int]],
    size: int,
    *,
    per_token: int,
    frequent: int,
) -> Array:
    """Mark each source's tokens that are likely by IBM Model 1, or frequent: (sentences, V)."""
    pairs = [*zip(ones, others, strict=True)]
    read = np.concatenate([np.tile(left, len(right)) for left, right in pairs])
    written = np.concatenate([np.repeat(right, len(left)) for left, right in pairs])
    lengths = np.concatenate([np.full(len(right), len(left)) for left, right in pairs])
    token_of = np.repeat(np.arange(len(lengths)), lengths)
    keys, cell = np.unique(read * size + written, return_inverse=True)
    probability = np.ones(len(keys))
    for _ in range(ITERATIONS):
        posterior = probability[cell]
        posterior /= np.bincount(token_of, posterior)[token_of]
        counts = np.bincount(cell, posterior)
        probability = counts / np.bincount(keys // size, counts)[keys // size]
    order = np.lexsort((-probability, keys // size))
    starts = np.searchsorted(keys[order] // size, np.arange(keys[-1] // size + 2))
    usual = np.argsort(-np.bincount(np.concatenate(others), minlength=size))[:frequent]
    lists = np.zeros((len(sources), size), bool)
    lists[:, usual] = True
    for row, source in enumerate(sources):
        for token in source:
            if token + 1 < len(starts):
                best = order[starts[token] : min(starts[token] + per_token, starts[token + 1])]
                lists[row, keys[best] % size] = True
    return lists


if __name__ == "__main__":
    main()
