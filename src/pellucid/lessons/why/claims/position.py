"""Positions: what a model knows of order without them, and beyond the lengths of its training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch

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
from pellucid.lessons.why.tiny.learn import Tiny, count_exact, make_tiny, train_tiny, translate_tiny
from pellucid.lessons.why.tiny.sentences import draw_lists, draw_statements, swap_animals
from pellucid.lessons.why.tiny.words import START, Pair

ROUNDING = 1e-4
STAYS = 0.5

ORDER_SAYS = Statement(
    NOTES, "section 3.2", "transformers have no awareness of the order of the tokens in the input"
)
LENGTH_SAYS = Statement(
    NOTES,
    "section 3.2",
    "unique positional encodings … permitting absolute positions to be determined",
)


@dataclass(frozen=True)
class Shuffled:
    """The change of an untrained model's result when earlier words change places.

    Attributes:
        encoder: the largest change of a word's vector in the encoder, as a share of the spread of
            its numbers, without positions.
        decoder_first: the same for the last row of a decoder of one layer.
        decoder_deep: the same for a decoder of two layers.
        encoder_with: as `encoder`, with positions.
    """

    encoder: float
    decoder_first: float
    decoder_deep: float
    encoder_with: float


@dataclass(frozen=True)
class Ordered:
    """A trained model's translations.

    Attributes:
        name: with or without positions.
        exact: the share of new statements translated exactly.
        same: the share of statements that get the same translation when their animals are
            exchanged, although that reverses who does what.
    """

    name: str
    exact: float
    same: float


def measure(setting: Setting) -> Measurement:
    """Shuffle words, train with and without positions, and test longer lists than were trained."""
    count, steps = setting.choose((6000, 350), (60, 4))
    train = draw_statements(count, seed=setting.seed, part="train")
    test = draw_statements(setting.choose(200, 11), seed=setting.seed, part="test")
    shuffled = measure_shuffling(train[: setting.choose(64, 5)], setting)
    ordered = []
    for kind, name in (("sinusoidal", "with positions"), ("none", "without positions")):
        setting.say(f"training {name}")
        tiny = make_tiny([*train, *test], seed=setting.seed, positions=kind)
        tiny = train_tiny(tiny, train, steps=steps, seed=setting.seed)
        ordered.append(Ordered(name, count_exact(tiny, test), share_of_same(tiny, test)))
    trained_to = setting.choose(3, 2)
    setting.say(f"training on lists of up to {trained_to} animals")
    lengths = _measure_lengths(setting, trained_to)
    return Measurement(
        claim="position",
        question="Is there no order without positions?",
        number=f"Without positions {ordered[1].same:.0%} of the sentences are translated "
        f"alike when the two animals change places, with positions {ordered[0].same:.0%}. "
        f"Lists one longer than in training: {lengths[trained_to + 1]:.0%} right, as long as "
        f"in training {lengths[trained_to]:.0%}.",
        method="First an untrained model of random weights reads sentences whose words are turned "
        "around, and each word's vector is compared. Then tiny models learn sentences such as "
        f"“{test[0][0]}”, with and without positions, in {steps} updates. Last a model with "
        f"positions learns lists of 1 to {trained_to} animals and translates longer ones.",
        findings=(
            Finding(ORDER_SAYS, judge_order(shuffled, ordered)),
            Finding(LENGTH_SAYS, judge_lengths(lengths, trained_to)),
        ),
        tables=(_shuffling(shuffled), _order(ordered), _by_length(lengths, trained_to)),
        plot=_plot(ordered, lengths, trained_to),
        notes=(
            "The look-ahead mask shows a decoder how many words stand before each row. Its first "
            "layer still averages them without order; from its second layer on, order shows.",
            "The encoding of every position exists and is unique, but a model learns to use only "
            "those that it has met.",
        ),
        to_try=("pellucid attend show-me-the-money", "pellucid why mask"),
        seed=setting.seed,
        size=setting.size,
    )


@torch.no_grad()
def measure_shuffling(pairs: Sequence[Pair], setting: Setting) -> Shuffled:
    """Turn sentences around, and compare the vectors of untrained models, in float64."""
    found = {}
    for kind, depth in (("none", 1), ("none", 2), ("sinusoidal", 2)):
        tiny = make_tiny(
            pairs, seed=setting.seed, positions=kind, num_decoder_layers=depth,
            num_encoder_layers=2,
        )  # fmt: skip
        found[kind, depth] = _change_of(tiny, pairs)
    return Shuffled(
        found["none", 2][0], found["none", 1][1], found["none", 2][1], found["sinusoidal", 2][0]
    )


def judge_order(shuffled: Shuffled, ordered: Sequence[Ordered]) -> Verdict:
    """Judge by what shuffling changes without positions, in encoder and decoder.

    Args:
        shuffled: of the untrained models.
        ordered: the trained models, with positions and without.
    """
    with_, without = ordered
    rule = (
        f"a relative change below {ROUNDING} is rounding; holds if turning words around changes "
        "nothing without positions, in the encoder and in the decoder; fails if it changes the "
        "encoder, or if a trained model without positions is as good as one with them"
    )
    numbers = (
        f"largest change: encoder {shuffled.encoder:.0e}, decoder of one layer "
        f"{shuffled.decoder_first:.0e}, of two layers {shuffled.decoder_deep:.0e}; right "
        f"{without.exact:.0%} without and {with_.exact:.0%} with positions"
    ).replace("e-", "e−")
    if shuffled.encoder >= ROUNDING or without.exact >= with_.exact:
        return Verdict("fails", "", rule, numbers)
    if max(shuffled.decoder_first, shuffled.decoder_deep) >= ROUNDING:
        condition = "no look-ahead mask gives the order away, as in the encoder"
        return Verdict("holds only if", condition, rule, numbers)
    return Verdict("holds", "", rule, numbers)


def judge_lengths(lengths: dict[int, float], trained_to: int) -> Verdict:
    """Judge by how many lists are right that are longer than in training.

    Args:
        lengths: the share that is right, by the number of animals.
        trained_to: the longest list of training.
    """
    inside = min(share for size, share in lengths.items() if size <= trained_to)
    beyond = [share for size, share in lengths.items() if size > trained_to]
    rule = (
        f"holds if at least {STAYS:.0%} of the lists at every length beyond training are as right "
        "as those within, only for lengths of training if not, fails if those are not right either"
    )
    numbers = f"right within training {inside:.0%} or more, beyond " + ", ".join(
        f"{share:.0%}" for share in beyond
    )
    if inside < STAYS:
        return Verdict("fails", "", rule, numbers)
    if min(beyond) >= STAYS * inside:
        return Verdict("holds", "", rule, numbers)
    return Verdict("holds only if", "training had sentences of that length", rule, numbers)


def _change_of(tiny: Tiny, pairs: Sequence[Pair]) -> tuple[float, float]:
    """Turn the words of each sentence around: changes in the encoder and of the last row."""
    model = tiny.model.double().eval()
    in_encoder, in_decoder = [0.0], [0.0]
    for source, target in pairs:
        ids = torch.tensor([tiny.source.encode(source)])
        memory_1SD, turned_1SD = model.encode(ids), model.encode(ids.flip(1))
        spread = float(memory_1SD.std())
        in_encoder.append(float((turned_1SD.flip(1) - memory_1SD).abs().max()) / spread)
        words = tiny.target.encode(target)[:-1]
        rows = [[START, *words], [START, *words[-2::-1], words[-1]]]
        first_1TD, second_1TD = (model.decode(torch.tensor([row]), memory_1SD) for row in rows)
        spread = float(first_1TD.std())
        in_decoder.append(float((first_1TD - second_1TD)[:, -1].abs().max()) / spread)
    return max(in_encoder), max(in_decoder)


def share_of_same(tiny: Tiny, pairs: Sequence[Pair]) -> float:
    """Exchange the animals, and compute the share of equal translations."""
    swapped = [(pair[0], other[0]) for pair in pairs if (other := swap_animals(pair))]
    first = translate_tiny(tiny, [pair[0] for pair in swapped])
    second = translate_tiny(tiny, [pair[1] for pair in swapped])
    return sum(a == b for a, b in zip(first, second, strict=True)) / len(swapped)


def _measure_lengths(setting: Setting, trained_to: int) -> dict[int, float]:
    count, steps = setting.choose((6000, 350), (60, 4))
    sizes = range(1, trained_to + 1)
    train = draw_lists(count, phrases=sizes, seed=setting.seed, part="train")
    tiny = make_tiny(train, seed=setting.seed)
    tiny = train_tiny(tiny, train, steps=steps, seed=setting.seed)
    found = {}
    for size in range(1, trained_to + setting.choose(4, 2)):
        # A list of one animal has only a few dozen forms.
        number = setting.choose(8 if size == 1 else 60, 5)
        test = draw_lists(number, phrases=(size,), seed=setting.seed, part="test")
        found[size] = count_exact(tiny, test)
    return found


def _shuffling(shuffled: Shuffled) -> Table:
    return Table(
        "Largest relative change when the words are turned around, untrained",
        ("", "change"),
        ("", ".1e"),
        (
            ("encoder, each word, without positions", shuffled.encoder),
            ("decoder of one layer, last row, without", shuffled.decoder_first),
            ("decoder of two layers, last row, without", shuffled.decoder_deep),
            ("encoder, each word, with positions", shuffled.encoder_with),
        ),
    )


def _order(ordered: Sequence[Ordered]) -> Table:
    return Table(
        "After training",
        ("", "right, %", "alike when exchanged, %"),
        ("", ".0f", ".0f"),
        tuple((one.name, 100 * one.exact, 100 * one.same) for one in ordered),
    )


def _by_length(lengths: dict[int, float], trained_to: int) -> Table:
    return Table(
        "Lists of animals by length, with positions",
        ("animals", "right, %", ""),
        ("d", ".0f", ""),
        tuple(
            (size, 100 * share, "in training" if size <= trained_to else "longer")
            for size, share in lengths.items()
        ),
    )


def _plot(ordered: Sequence[Ordered], lengths: dict[int, float], trained_to: int) -> Plot:
    order = Panel(
        "Statements of two animals", "", "%",
        tuple(
            Series(one.name, (0.0, 1.0), (100 * one.exact, 100 * one.same),
                   "plain" if one.name == "with positions" else "accent")
            for one in ordered
        ),
        kind="bars", names=("right", "alike when exchanged"), y_range=(0, 100),
    )  # fmt: skip
    inside = [(float(size), 100 * share) for size, share in lengths.items() if size <= trained_to]
    beyond = [(float(size), 100 * share) for size, share in lengths.items() if size >= trained_to]
    by_length = Panel(
        "Lists, with positions", "animals in the list", "% right",
        (
            _line("longer than in training", beyond, "accent"),
            _line("as long as in training", inside, "plain"),
        ),
        y_range=(0, 105),
    )  # fmt: skip
    return Plot((order, by_length))


def _line(
    name: str, points: Sequence[tuple[float, float]], role: Literal["accent", "plain"]
) -> Series:
    return Series(name, tuple(x for x, _ in points), tuple(y for _, y in points), role)
