"""Positions at full length: none, sinusoidal and learned, and what each makes of distance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from pellucid.attention.positions import sinusoidal_positions
from pellucid.lessons.why.claims.position import (
    LENGTH_SAYS,
    ORDER_SAYS,
    Ordered,
    Shuffled,
    judge_lengths,
    judge_order,
    measure_shuffling,
    share_of_same,
)
from pellucid.lessons.why.long.moving import movement_of_packaged, movement_of_tiny
from pellucid.lessons.why.long.offsets import error_of_matrix, fits_of_learned, table_fits
from pellucid.lessons.why.long.position_shown import (
    KINDS,
    OFFSETS,
    By,
    draw_positions,
    tabulate_positions,
)
from pellucid.lessons.why.long.sums import mean, write
from pellucid.lessons.why.result import (
    NOTES,
    Finding,
    Measurement,
    Statement,
    Verdict,
)
from pellucid.lessons.why.setting import Setting
from pellucid.lessons.why.tiny.learn import count_exact, make_tiny, train_tiny
from pellucid.lessons.why.tiny.sentences import draw_lists, draw_statements

EXACT, FITS = 1e-9, 0.9
"""A matrix is exact below this error, and a map fits from this R² on."""
EQUAL = 0.05
"""Maps are equal below this distance."""

MATRIX_SAYS = Statement(
    NOTES, "section 3.2, equation 4", "for an offset δ one matrix M takes PE_i to PE_{i+δ}"
)
DISTANCE_SAYS = Statement(
    NOTES,
    "section 3.2",
    "with then put in front of the bank told the man …, words keep their relative positions",
)


def measure(setting: Setting) -> Measurement:
    """Train with three kinds of positions, and measure order, lengths, offsets and maps."""
    sizes = setting.choose((6000, 300), (60, 4))
    trained_to, longest = setting.choose((3, 6), (2, 3))
    letters = setting.choose((4000, 48, 32, 600), (40, 24, 16, 3))
    shuffled = [_shuffling(seed, setting) for seed in setting.seeds]
    order: By = {kind: [_order(kind, sizes, s, setting) for s in setting.seeds] for kind in KINDS}
    lengths = {
        kind: [_lengths(kind, sizes, trained_to, longest, s, setting) for s in setting.seeds]
        for kind in KINDS
    }
    learned = [_learned(letters, seed, setting) for seed in setting.seeds]
    told = [_told(seed, setting) for seed in setting.seeds]
    errors = {offset: error_of_matrix(offset, 5000, 512) for offset in (1, 3, 50)}
    waves = table_fits(
        sinusoidal_positions(letters[1], letters[2], dtype=torch.float64).numpy(), OFFSETS
    )
    ordered = [_sum_up(kind, order[kind]) for kind in ("sinusoidal", "none")]
    by_length = {
        size: mean([found[size - 1] for found in lengths["sinusoidal"]])
        for size in range(1, longest + 1)
    }
    worst = Shuffled(*(float(max(column)) for column in zip(*shuffled, strict=True)))
    step = mean([one["encoder"][0] for one in learned])
    moved = mean([one["moved_by_word"] for one in order["sinusoidal"]])
    return Measurement(
        claim="position",
        question="Is there no order without positions?",
        number=f"Without positions {ordered[1].same:.0%} of the sentences are translated alike "
        f"when the two animals change places, with sinusoids {ordered[0].same:.0%}. Lists one "
        f"longer than in training: {by_length[trained_to + 1]:.0%} right with sinusoids. A linear "
        f"map explains {step:.0%} of a step in a learned table, all of it in sinusoids. A word put "
        f"in front moves {moved:.0%} of the weight.",
        method=_describe(sizes[1], trained_to, letters),
        findings=(
            Finding(ORDER_SAYS, judge_order(worst, ordered)),
            Finding(LENGTH_SAYS, judge_lengths(by_length, trained_to)),
            Finding(MATRIX_SAYS, judge_matrix(max(errors.values()), learned, waves)),
            Finding(DISTANCE_SAYS, judge_distance(order)),
        ),
        tables=tabulate_positions(
            worst,
            order,
            lengths,
            trained_to,
            errors=errors,
            learned=learned,
            waves=waves,
            told=told,
        ),
        plot=draw_positions(lengths, trained_to, learned=learned, waves=waves, order=order),
        notes=(
            "The look-ahead mask shows a decoder how many words stand before each row. Its first "
            "layer still averages them without order; from its second layer on, order shows.",
            "The tiny encoder has one layer: without positions its scores depend on the two words "
            "only, and a word in front moves nothing. In deeper layers it also speaks through the "
            "other words.",
            f"The copying model ends at a loss of {write([one['loss'] for one in learned])} nats.",
        ),
        to_try=("pellucid attend positions", "pellucid why mask"),
        seed=setting.seed,
        size=setting.size,
    )


def judge_matrix(
    error: float, learned: Sequence[dict[str, Any]], waves: Sequence[float]
) -> Verdict:
    """Judge by the error of M for sinusoids and the fit of maps in learned tables.

    Args:
        error: the largest of M, in float64.
        learned: fits of trained tables, for each seed.
        waves: fits of sinusoids by the same method.
    """
    fits = [fit for one in learned for side in ("encoder", "decoder") for fit in one[side]]
    rule = (
        f"exact is an error below {EXACT:g}; holds if M is exact for sinusoids and a map fits "
        f"every learned table with R² ≥ {FITS}, fails if M is not exact"
    ).replace("e-", "e−")
    numbers = (
        f"error of M {error:.1e}; R² of learned tables {min(fits):.2f} to {max(fits):.2f}, of "
        f"sinusoids {min(waves):.2f} or more"
    ).replace("e-", "e−")
    if error >= EXACT:
        return Verdict("fails", "", rule, numbers)
    if min(fits) >= FITS:
        return Verdict("holds", "", rule, numbers)
    return Verdict("holds only if", "the encodings are sinusoids, not learned", rule, numbers)


def judge_distance(order: By) -> Verdict:
    """Judge by how far the attention maps of trained models move with a word in front."""
    found = {
        kind: (mean([one["moved_by_word"] for one in order[kind]]),
               mean([one["moved_by_place"] for one in order[kind]]))
        for kind in KINDS
    }  # fmt: skip
    by_word, by_place = found["sinusoidal"]
    rule = (
        f"holds if the maps of a sinusoidal model differ by less than {EQUAL:.0%} over the shared "
        "words; fails if they are closer to those of the same places than to those of the same "
        "words"
    )
    numbers = "; ".join(
        f"{kind}: same words {word:.0%}, same places {place:.0%}"
        for kind, (word, place) in found.items()
    )
    if by_word < EQUAL:
        return Verdict("holds", "", rule, numbers)
    if by_word >= by_place:
        return Verdict("fails", "", rule, numbers)
    condition = f"it is about encodings; the maps themselves move {by_word:.0%} of their weight"
    return Verdict("holds only if", condition, rule, numbers)


def _describe(steps: int, trained_to: int, letters: tuple[int, int, int, int]) -> str:
    return (
        "Tiny models with sinusoidal, learned and no positions learn a tiny language in "
        f"{steps} updates: statements, half of them with “then” in front, and lists of 1 to "
        f"{trained_to} animals. A model with learned positions copies lines of 1 to {letters[1]} "
        f"letters (d = {letters[2]}, {letters[3]} updates); R² is that of positions that the map "
        "was not fitted on. Maps are compared over the words that both sentences have, rows "
        "summing to 1 again: 0 if equal, 100 % if they share no weight."
    )


def _shuffling(seed: int, setting: Setting) -> tuple[float, float, float, float]:
    def make() -> list[float]:
        pairs = draw_statements(setting.choose(64, 5), seed=seed, part="train")
        found = measure_shuffling(pairs, replace(setting, seed=seed))
        return [found.encoder, found.decoder_first, found.decoder_deep, found.encoder_with]

    first, second, third, fourth = setting.cell(
        f"words turned around, untrained, seed {seed}", make
    )
    return first, second, third, fourth


def _order(kind: str, sizes: tuple[int, int], seed: int, setting: Setting) -> dict[str, Any]:
    count, steps = sizes

    def make() -> dict[str, Any]:
        train = draw_statements(count, seed=seed, part="train")
        test = draw_statements(setting.choose(200, 7), seed=seed, part="test")
        # Every other sentence has a word in front, so that the model knows it.
        mixed = [
            (f"then {english}", f"puis {french}") if index % 2 else (english, french)
            for index, (english, french) in enumerate(train)
        ]
        tiny = make_tiny([*mixed, *test], seed=seed, positions=kind, **_LENGTHS)
        tiny = train_tiny(tiny, mixed, steps=steps, seed=seed)
        by_word, by_place = movement_of_tiny(tiny, [pair[0] for pair in test], "then")
        return {
            "exact": count_exact(tiny, test),
            "same": share_of_same(tiny, test),
            "moved_by_word": by_word,
            "moved_by_place": by_place,
        }

    found: dict[str, Any] = setting.cell(
        f"statements, half with then, positions {kind}, {steps} updates, seed {seed}", make
    )
    return found


def _lengths(
    kind: str, sizes: tuple[int, int], trained_to: int, longest: int, seed: int, setting: Setting
) -> list[float]:
    count, steps = sizes

    def make() -> list[float]:
        phrases = range(1, trained_to + 1)
        train = draw_lists(count, phrases=phrases, seed=seed, part="train")
        tiny = make_tiny(train, seed=seed, positions=kind, **_LENGTHS)
        tiny = train_tiny(tiny, train, steps=steps, seed=seed)
        found = []
        for size in range(1, longest + 1):
            # A list of one animal has only a few dozen forms.
            number = setting.choose(8 if size == 1 else 100, 3)
            test = draw_lists(number, phrases=(size,), seed=seed, part="test")
            found.append(count_exact(tiny, test))
        return found

    found: list[float] = setting.cell(
        f"lists of up to {trained_to}, tested to {longest}, positions {kind}, {steps} updates, "
        f"seed {seed}",
        make,
    )
    return found


_LENGTHS = {"max_source_length": 64, "max_target_length": 64}


def _learned(letters: tuple[int, int, int, int], seed: int, setting: Setting) -> dict[str, Any]:
    count, longest, d_model, steps = letters
    found: dict[str, Any] = setting.cell(
        f"learned positions, copying up to {longest} letters, d {d_model}, {steps} updates, "
        f"seed {seed}",
        lambda: fits_of_learned(
            OFFSETS, count=count, longest=longest, d_model=d_model, steps=steps, seed=seed
        ),
    )
    return found


def _told(seed: int, setting: Setting) -> dict[str, Any]:
    count = setting.choose(4000, 600)
    found: dict[str, Any] = setting.cell(
        f"packaged model, then in front, of {count} sentences, seed {seed}",
        lambda: movement_of_packaged(count, seed=seed),
    )
    return found


def _sum_up(kind: str, found: Sequence[dict[str, Any]]) -> Ordered:
    exact, same = (mean([one[what] for one in found]) for what in ("exact", "same"))
    return Ordered(kind, exact, same)
