"""Distances between positions: a step as a linear map, and maps with a word put in front.

The map of a step is exact for sinusoids, and fitted for a learned table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pellucid.attention.positions import offset_matrix, sinusoidal_positions
from pellucid.lessons.why.cells import (
    Cells,
    Column,
    decide,
    judge_seeds,
    measure_cells,
    write,
    write_small,
)
from pellucid.lessons.why.head_weights import weights_of_heads
from pellucid.lessons.why.packaged import load_packaged, packaged_name, write_examples_of
from pellucid.lessons.why.result import Found, ResultTable, Verdict
from pellucid.lessons.why.setting import MeasurementSetting
from pellucid.lessons.why.tiny.learn import Pair, Tiny, make_tiny, train_tiny
from pellucid.machine.randomness import generator
from pellucid.model import EncoderDecoder

OFFSETS = (1, 2, 3, 5, 8)
EXACT = 1e-9
"""A matrix is exact below this error."""
FITS = 0.9
"""A map fits from this R² on."""
FOLDS = 5
STRENGTHS = (1e-6, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)
"""Of the ridge, as a share of the mean variance; the best one counts."""


def add_distances(setting: MeasurementSetting, found: Found, order: Cells) -> Found:
    """Add what positions make of distance: a step as a linear map, and a word put in front."""
    count, longest, d_model, steps = setting.choose((4000, 48, 32, 600), (40, 24, 16, 3))
    waves = table_fits(sinusoidal_positions(longest, d_model, dtype=torch.float64).numpy(), OFFSETS)
    learned = measure_cells(
        setting,
        f"learned positions, copying up to {longest} letters, d {d_model}, {steps} updates",
        lambda seed: fits_of_learned(
            OFFSETS, count=count, longest=longest, d_model=d_model, steps=steps, seed=seed
        ),
        read=lambda fits: _by_offset(fits, waves),
    )
    drawn = setting.choose(4000, 600)
    told = measure_cells(
        setting,
        f"{packaged_name()}: then in front, of {drawn} sentences",
        lambda seed: movement_of_packaged(drawn, seed=seed),
    )
    errors = {offset: error_of_matrix(offset, 5000, 512) for offset in (1, 3, 50)}
    loss = write(learned.all("loss", offset=OFFSETS[0]))
    return found.plus(
        method=" Half of the statements have “then” in front. A model with learned positions "
        f"copies lines of 1 to {longest} letters (d = {d_model}, {steps} updates); R² is that of "
        "positions that the map was not fitted on. Maps are compared over the words that both "
        "sentences have, rows summing to 1 again: 0 if equal, 100 % if they share no weight.",
        verdicts={
            "matrix": judge_seeds(lambda one: judge_matrix(max(errors.values()), one), learned),
            "relative": judge_seeds(judge_map_distance, order),
        },
        tables=[
            ResultTable(
                "Largest error of M · PE_i = PE_{i+δ}, 5,000 positions of width 512, float64",
                ("δ", "error"),
                ("d", ".1e"),
                tuple(errors.items()),
            ),
            _fit_table(learned),
            _moving_table(order, told),
        ],
        panels=[
            order.panel(
                "Weight moved by “then” in front",
                ("", "%"),
                {
                    "same words": "moved_by_word",
                    "same places": "moved_by_place",
                },
                "kind",
                scale=100,
                kind="bars",
            )
        ],
        notes=[
            f"The copying model ends at a loss of {loss} nats.",
        ],
    )


def _by_offset(fits: Mapping[str, Any], waves: Sequence[float]) -> list[dict[str, float]]:
    rows = []
    for place, offset in enumerate(OFFSETS):
        row = {name: fits[name][place] for name in ("encoder", "decoder", "before")}
        rows.append({"offset": offset, "waves": waves[place], "loss": fits["loss"], **row})
    return rows


def judge_matrix(error: float, learned: Cells) -> Verdict:
    """Judge by the error of M for sinusoids and the fit of maps in learned tables.

    Args:
        error: the largest of M, in float64.
        learned: fits of trained tables, and of sinusoids by the same method.
    """
    fits = [*learned.all("encoder"), *learned.all("decoder")]
    rule = (
        f"exact is an error below {EXACT:g}; holds if M is exact for sinusoids and a map fits "
        f"every learned table with R² ≥ {FITS}, fails if M is not exact"
    )
    numbers = (
        f"error of M {error:.1e}; R² of learned tables {min(fits):.2f} to {max(fits):.2f}, of "
        f"sinusoids at least {min(learned.all('waves')):.4f}"
    )
    reason = (
        "One matrix M should turn the encoding of any place into that of the place δ words further "
        f"on. For sines and cosines its error is at most {write_small(error)}. Below "
        f"{write_small(EXACT)} it counts as exact. For encodings that a network has learned, the "
        f"best matrix predicts {min(fits):.0%} of their variation, in the worst case. To hold, it "
        f"must be {FITS:.0%} or more."
    )
    return decide(
        rule.replace("e-", "e−"),
        numbers.replace("e-", "e−"),
        reason.replace("-", "−"),
        fails=error >= EXACT,
        unless={"the encodings are sines and cosines, not learned": min(fits) < FITS},
    )


def judge_map_distance(order: Cells) -> Verdict:
    """Judge by how far the attention maps of trained models move with a word in front."""
    found = {
        kind: (order.mean("moved_by_word", kind=kind), order.mean("moved_by_place", kind=kind))
        for kind in order.values("kind")
    }
    by_word, by_place = found["sinusoidal"]
    return decide(
        "holds if the maps of a sinusoidal model stay closer to those of the same words than to "
        "those of the same places; fails otherwise",
        "; ".join(
            f"{kind}: same words {word:.0%}, same places {place:.0%}"
            for kind, (word, place) in found.items()
        ),
        "If “then” is put in front of a sentence, all its words move by one place. Do the "
        "attention weights move with them? In tiny translators with sines and cosines, each pair "
        "of words was followed to its new places: of the weight between them, "
        f"{by_word:.0%} changed. Then the same two places were compared, where other words stand "
        f"now: {by_place:.0%} changed. To hold, the first number must be smaller. It need not be "
        "0.",
        fails=by_word >= by_place,
    )


def _fit_table(cells: Cells) -> ResultTable:
    columns = (
        Column("sinusoids", "waves", ".3f", over_seeds="first"),
        Column("learned, encoder", "encoder"),
        Column("decoder", "decoder"),
        Column("before training", "before"),
    )
    title = "R² of the best linear map from PE_i to PE_{i+δ}, for positions it was not fitted on"
    return cells.table(title, "offset", columns, head="δ")


def _moving_table(order: Cells, told: Cells) -> ResultTable:
    by_word = write([100 * share for share in told.all("by_word")])
    by_place = write([100 * share for share in told.all("by_place")])
    bank = f"{100 * told.rows[0]['bank']:.3g}"
    sentences = sum(told.all("sentences"))
    return order.table(
        "Weight that moves when “then” is put in front, encoder, all layers and heads",
        "kind",
        (
            Column("same words, %", "moved_by_word", scale=100),
            Column("same places, %", "moved_by_place", scale=100),
        ),
        names={kind: f"tiny model, {kind}" for kind in order.values("kind")},
        more=[
            (f"packaged model, {sentences} sentences with told", by_word, by_place),
            ("packaged model, “the bank told the man he was bankrupt”", bank, "–"),
        ],
    )


def error_of_matrix(offset: int, num_positions: int, d_model: int) -> float:
    r"""Compute the largest error of $M(\delta)\,\text{PE}_i = \text{PE}_{i+\delta}$ in float64."""
    encoded_LD = sinusoidal_positions(num_positions + offset, d_model, dtype=torch.float64)
    matrix_DD = offset_matrix(offset, d_model, dtype=torch.float64)
    moved_LD = encoded_LD[:num_positions] @ matrix_DD.T
    return float((moved_LD - encoded_LD[offset:]).abs().max())


def fit_of_offset(table_LD: np.ndarray, offset: int) -> float:
    """Compute R² of the best linear map from PE_i to PE_{i+δ}, for positions it was not fitted on.

    The map has a constant and is fitted by ridge regression on four fifths of the positions, five
    times. With as many numbers as positions a map would fit anything that it was fitted on, which
    would say nothing.

    Args:
        table_LD: the encodings.
        offset: δ.

    Returns:
        1 for a perfect map; 0 or less for one that is no better than the mean.
    """
    start_XD = table_LD[:-offset]
    end_XD = table_LD[offset:]
    fold_X = np.arange(len(start_XD)) % FOLDS
    # The best strength counts, in favor of the claim.
    return max(_held_out(start_XD, end_XD, fold_X, strength) for strength in STRENGTHS)


def _held_out(
    start_XD: np.ndarray, end_XD: np.ndarray, fold_X: np.ndarray, strength: float
) -> float:
    missed = 0.0
    spread = 0.0
    for fold in range(FOLDS):
        is_in_X = fold_X != fold
        center_D = start_XD[is_in_X].mean(axis=0)
        target_D = end_XD[is_in_X].mean(axis=0)
        given_XD = start_XD[is_in_X] - center_D
        gram_DD = given_XD.T @ given_XD
        # Relative to the mean variance, since tables differ in size.
        gram_DD += strength * np.trace(gram_DD) / len(gram_DD) * np.eye(len(gram_DD))
        map_DD = np.linalg.solve(gram_DD, given_XD.T @ (end_XD[is_in_X] - target_D))
        # Centered by the mean of what was fitted: the other positions are unknown to the map.
        true_XD = end_XD[~is_in_X] - target_D
        missed += float(((true_XD - (start_XD[~is_in_X] - center_D) @ map_DD) ** 2).sum())
        spread += float((true_XD**2).sum())
    return 1 - missed / spread


def table_fits(table_LD: np.ndarray, offsets: Sequence[int]) -> list[float]:
    """Compute R² for several offsets."""
    return [fit_of_offset(table_LD, offset) for offset in offsets]


def fits_of_learned(
    offsets: Sequence[int], *, count: int, longest: int, d_model: int, steps: int, seed: int
) -> dict[str, object]:
    """Train a model with learned positions to copy letters, and fit its tables.

    Copying letters needs positions and nothing else, and lines of all lengths train all of them.

    Returns:
        R² of the ``encoder``'s and the ``decoder``'s table after training, of the encoder's table
        ``before`` it, and the ``loss`` at the end.
    """
    pairs = _draw_letters(count, longest, seed)
    tiny = make_tiny(
        pairs,
        seed=seed,
        d_model=d_model,
        d_ff=2 * d_model,
        num_heads=2,
        positions="learned",
        max_source_length=longest + 1,
        max_target_length=longest + 1,
    )
    tables = {
        name.split(".")[0]: weight
        for name, weight in tiny.model.named_parameters()
        if name.endswith("positions.weight")
    }

    def fits(side: str) -> list[float]:
        return table_fits(tables[side].detach().double().numpy()[:longest], offsets)

    before = fits("encoder")
    tiny = train_tiny(tiny, pairs, steps=steps, seed=seed, rate=5e-3)
    tail = tiny.losses[-10:]
    return {
        "encoder": fits("encoder"),
        "decoder": fits("decoder"),
        "before": before,
        "loss": sum(tail) / len(tail),
    }


def _draw_letters(count: int, longest: int, seed: int) -> list[Pair]:
    numbers = generator(seed, "why position letters")
    found = []
    for _ in range(count):
        drawn = numbers.integers(0, 12, int(numbers.integers(1, longest + 1)))
        line = " ".join("abcdefghijkl"[letter] for letter in drawn)
        found.append((line, line))
    return found


def distance_of_maps(first_HLM: Tensor, second_HLM: Tensor) -> tuple[float, float]:
    """Compare the weights of a sentence with those after one word was put before it.

    Both maps are cut to the tokens that they share, and rows sum to 1 again. The distance is half
    the sum of absolute differences of a row: 0 if they are equal, 1 if they share nothing.

    Args:
        first_HLM: the sentence's weights.
        second_HLM: with the new word, one longer on both axes.

    Returns:
        The mean distance of rows that belong to the same tokens, and of rows that stand at the
        same places (whose tokens are one apart).
    """
    length = first_HLM.shape[-1]
    # Cut off what the new word reads, and what reads it.
    by_word = _total_variation(first_HLM, second_HLM[:, 1:, 1:])
    by_place = _total_variation(first_HLM, second_HLM[:, :length, :length])
    return by_word, by_place


def movement_of_tiny(tiny: Tiny, sentences: Sequence[str], word: str) -> tuple[float, float]:
    """Average the distances in a tiny model's encoder, over sentences, layers and heads."""
    pairs = [(tiny.source.encode(one), tiny.source.encode(f"{word} {one}")) for one in sentences]
    return _movement(tiny.model, pairs)


def movement_of_packaged(count: int, *, seed: int) -> dict[str, object]:
    """Average the distances in the packaged model, over new sentences of the same kind.

    Returns:
        ``sentences`` that were compared, ``by_word``, ``by_place``, and the distance ``by_word``
        of ``the bank told the man he was bankrupt``.
    """
    bundle = load_packaged()
    encode = bundle.tokenizer.encode_source
    written = [one.source for one in write_examples_of(count, seed=seed)]
    bank = "the bank told the man he was bankrupt"
    # If no sentence is of this kind, the example of the notes stands for them.
    told = [one for one in written if one.startswith("the ") and " told " in one] or [bank]
    pairs = [(encode(one), encode(f"then {one}")) for one in told]
    # A tokenizer may cut the first word differently behind another one.
    pairs = [pair for pair in pairs if pair[1][1:] == pair[0]]
    by_word, by_place = _movement(bundle.model, pairs)
    own, _ = _movement(bundle.model, [(encode(bank), encode(f"then {bank}"))])
    return {"sentences": len(pairs), "by_word": by_word, "by_place": by_place, "bank": own}


@torch.no_grad()
def _movement(
    model: EncoderDecoder, pairs: Sequence[tuple[list[int], list[int]]]
) -> tuple[float, float]:
    found = []
    for plain, longer in pairs:
        first = weights_of_heads(model, plain)
        second = weights_of_heads(model, longer)
        found += [distance_of_maps(first[site], second[site]) for site in first]
    by_word, by_place = zip(*found, strict=True)
    return sum(by_word) / len(found), sum(by_place) / len(found)


def _total_variation(first_HLM: Tensor, second_HLM: Tensor) -> float:
    # The new word has taken a share of every row.
    second_HLM = second_HLM / second_HLM.sum(dim=-1, keepdim=True)
    return float((first_HLM - second_HLM).abs().sum(dim=-1).mean()) / 2
