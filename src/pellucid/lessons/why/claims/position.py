"""Positions: what a model knows of order without them, and what each kind makes of distance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from pellucid.lessons.why.cells import (
    PERCENT,
    Cells,
    Column,
    decide,
    judge_seeds,
    measure_cells,
    write_small,
)
from pellucid.lessons.why.claims.parts.distances import add_distances, movement_of_tiny
from pellucid.lessons.why.result import Found, Panel, ResultTable, Verdict
from pellucid.lessons.why.setting import MeasurementSetting
from pellucid.lessons.why.tiny.learn import (
    START,
    Pair,
    Tiny,
    count_exact,
    make_tiny,
    train_tiny,
    translate_tiny,
)
from pellucid.lessons.why.tiny.tiny_language import draw_lists, draw_statements, swap_animals

ROUNDING = 1e-4
STAYS = 0.5

KINDS = ("sinusoidal", "learned", "none", "rotary", "alibi", "relative")
SHUFFLED = {
    "encoder": "encoder, each word, without positions",
    "decoder_first": "decoder of one layer, last row, without",
    "decoder_deep": "decoder of two layers, last row, without",
    "encoder_with": "encoder, each word, with positions",
}
"""Changes when words are reversed: what is compared."""
_LENGTHS = {"max_source_length": 64, "max_target_length": 64}
_REACH = {"relative": {"max_relative_distance": 8}}


def measure(setting: MeasurementSetting) -> Found:
    """Shuffle words, train with kinds of positions, and test longer lists than were trained."""
    trained_to, longest = setting.choose((3, 6), (2, 3))
    steps = setting.choose(350, 4, 300)
    shuffled, order, lengths = _measure_models(setting, steps, trained_to, longest)
    same = {kind: order.mean("same", kind=kind) for kind in ("none", "sinusoidal")}
    example = draw_statements(1, seed=setting.seed, part="test")[0][0]
    found = Found(
        f"in “{example}” only the order says who does what to whom. Tiny translators read such "
        "sentences, and again with the two animals exchanged. Without positions, a translator "
        f"writes the same in {same['none']:.0%} of the cases. With positions it does in "
        f"{same['sinusoidal']:.0%}. In a decoder the look-ahead mask gives the order away: each "
        "word sees one word more than the one before. Do positions help with longer sentences "
        f"than those of training? {_say_beyond(lengths, trained_to)}",
        "First an untrained model of random weights reads sentences whose words are "
        "reversed, and each word's vector is compared. Then tiny models learn sentences such as "
        f"“{example}”, with and without positions, in {steps} updates. Last models with each kind "
        f"of positions learn lists of 1 to {trained_to} animals and translate longer ones.",
        verdicts={
            "order": judge_seeds(judge_shuffling, shuffled, order),
            "absolute": judge_seeds(
                lambda one: judge_lengths(_right_by_length(one), trained_to), lengths
            ),
        },
        tables=(
            ResultTable(
                "Largest relative change when the words are reversed, untrained, of all seeds",
                ("", "change"),
                ("", ".1e"),
                tuple((said, max(shuffled.all(name))) for name, said in SHUFFLED.items()),
            ),
            _order_table(order),
            _length_table(lengths, trained_to),
        ),
        panels=(
            _order_panel(order),
            lengths.panel(
                f"Lists, trained on up to {trained_to} animals",
                ("animals in the list", "% right"),
                lengths.each("kind"),
                "size",
                "right",
                scale=100,
                y_range=PERCENT,
            ),
        ),
    )
    return add_distances(setting, found, order) if setting.is_long else found


def _measure_models(
    setting: MeasurementSetting, steps: int, trained_to: int, longest: int
) -> tuple[Cells, Cells, Cells]:
    """Measure shuffled words, models of statements, and models of lists."""
    # Only the long form asks what a word in front moves.
    has_then = setting.is_long
    count = setting.choose(6000, 60)
    num_tests, num_lists, num_shuffled = setting.choose((200, 60, 64), (11, 5, 5), (200, 100, 64))
    shuffled = measure_cells(
        setting,
        "words turned around, untrained",
        lambda seed: measure_shuffling(
            draw_statements(num_shuffled, seed=seed, part="train"), seed=seed
        ),
        read=lambda found: dict(zip(SHUFFLED, found, strict=True)),
    )
    order = measure_cells(
        setting,
        f"statements, {'half with then, ' if has_then else ''}positions {{kind}}, {steps} updates",
        lambda kind, seed: _learn_statements(
            kind, (count, num_tests, steps), seed, has_then=has_then
        ),
        kind=setting.choose(("sinusoidal", "none"), ("sinusoidal", "none"), KINDS),
    )
    lengths = measure_cells(
        setting,
        f"lists of up to {trained_to}, tested to {longest}, positions {{kind}}, {steps} updates",
        lambda kind, seed: _learn_lists(kind, (count, num_lists, steps), trained_to, longest, seed),
        read=lambda found: [
            {"size": size, "right": share} for size, share in enumerate(found, start=1)
        ],
        kind=KINDS,
    )
    return shuffled, order, lengths


@torch.no_grad()
def measure_shuffling(pairs: Sequence[Pair], *, seed: int) -> list[float]:
    """Turn sentences around, and compare the vectors of untrained models, in float64.

    Returns:
        For each of `SHUFFLED` the largest change of a vector, as a share of the spread of its
        numbers.
    """
    found = {}
    for kind, depth in (("none", 1), ("none", 2), ("sinusoidal", 2)):
        tiny = make_tiny(
            pairs, seed=seed, positions=kind, num_decoder_layers=depth, num_encoder_layers=2
        )
        found[kind, depth] = _change_of(tiny, pairs)
    return [
        found["none", 2][0],
        found["none", 1][1],
        found["none", 2][1],
        found["sinusoidal", 2][0],
    ]


def judge_shuffling(shuffled: Cells, order: Cells) -> Verdict:
    """Judge by what shuffling changes without positions, in encoder and decoder.

    Args:
        shuffled: changes of untrained models.
        order: models trained with positions and without.
    """
    encoder = max(shuffled.all("encoder"))
    first = max(shuffled.all("decoder_first"))
    deep = max(shuffled.all("decoder_deep"))
    without = order.mean("exact", kind="none")
    with_ = order.mean("exact", kind="sinusoidal")
    gives_order_away = max(first, deep) >= ROUNDING
    return decide(
        f"a relative change below {ROUNDING} is rounding; holds if reversing the words changes "
        "nothing without positions, in the encoder and in the decoder; fails if it changes the "
        "encoder, or if a trained model without positions is as good as one with them",
        f"largest change: encoder {encoder:.0e}, decoder of one layer {first:.0e}, of two layers "
        f"{deep:.0e}; right {without:.0%} without and {with_:.0%} with positions".replace(
            "e-", "e−"
        ),
        "If the words of a sentence are reversed, the vectors of an encoder without positions "
        f"change by at most {write_small(encoder)} times their usual size. In a decoder with the "
        f"mask they change by up to {write_small(max(first, deep))} times. Up to {ROUNDING} is "
        "rounding. Besides, trained translators must be better with positions. With them "
        f"{with_:.0%} of new sentences are right. Without them it is {without:.0%}.",
        fails=encoder >= ROUNDING or without >= with_,
        unless={
            # The mask of a decoder gives the order away.
            "there is no look-ahead mask, as in an encoder": gives_order_away
        },
    )


def _say_beyond(lengths: Cells, trained_to: int) -> str:
    """Say how lists of one animal more than in training fare with each kind of positions."""
    inside = lengths.mean("right", kind="sinusoidal", size=trained_to)
    beyond = {kind: lengths.mean("right", kind=kind, size=trained_to + 1) for kind in KINDS}
    # The answer follows from all kinds, the verdict from the paper's.
    fails = max(beyond.values()) < STAYS * inside
    others = max(beyond[kind] for kind in KINDS[1:])
    but = "No kind of positions reaches" if fails else "Not all positions reach"
    return (
        f"{but} beyond the lengths of training. Trained on lists of up to {trained_to} animals, a "
        f"model with the paper's positions (sines and cosines) translates {inside:.0%} of new "
        f"lists of {trained_to} correctly. Of lists of {trained_to + 1} it translates "
        f"{beyond['sinusoidal']:.0%} correctly. With learned, rotary, ALiBi or relative positions, "
        f"or none, it is {others:.0%} at most"
    )


def _right_by_length(lengths: Cells) -> dict[int, float]:
    here = lengths.where(kind="sinusoidal")
    return {size: here.mean("right", size=size) for size in here.values("size")}


def judge_lengths(lengths: Mapping[int, float], trained_to: int) -> Verdict:
    """Judge by how many lists are right that are longer than in training.

    Args:
        lengths: the share that is right, by the number of animals.
        trained_to: the longest list of training.
    """
    inside = min(share for size, share in lengths.items() if size <= trained_to)
    longer = {size: share for size, share in lengths.items() if size > trained_to}
    beyond = list(longer.values())
    return decide(
        f"holds if, at every length beyond training, at least {STAYS:.0%} as many lists are right "
        f"as within, only for lengths of training if not, fails if fewer than {STAYS:.0%} of those "
        "are right",
        f"right within training {inside:.0%} or more, beyond "
        + ", ".join(f"{share:.0%}" for share in beyond),
        "If the encoding of each place is unique, a network may use it in longer sentences than "
        "those of training, too. This was tested with lists. (Longer lists may also fail for other "
        f"reasons.) Of lists of up to {trained_to} animals, as in training, at least {inside:.0%} "
        f"are right at each length. Of longer lists, with {', '.join(map(str, longer))} "
        f"animals, {', '.join(f'{share:.0%}' for share in beyond)} are right. To hold, it must be "
        "half as many as in training, or more, at each length.",
        fails=inside < STAYS,
        unless={"training had sentences of that length": min(beyond) < STAYS * inside},
    )


def _change_of(tiny: Tiny, pairs: Sequence[Pair]) -> tuple[float, float]:
    """Turn the words of each sentence around: changes in the encoder and of the last row."""
    # In float64, so that rounding cannot be taken for order.
    model = tiny.model.double().eval()
    in_encoder = [0.0]
    in_decoder = [0.0]
    for source, target in pairs:
        ids = torch.tensor([tiny.source.encode(source)])
        memory_1SD = model.encode(ids)
        turned_1SD = model.encode(ids.flip(1))
        spread = float(memory_1SD.std())
        in_encoder.append(float((turned_1SD.flip(1) - memory_1SD).abs().max()) / spread)
        words = tiny.target.encode(target)[:-1]
        # The last word stays in its place, since its own row is compared.
        rows = [[START, *words], [START, *words[-2::-1], words[-1]]]
        first_1TD, second_1TD = (model.decode(torch.tensor([row]), memory_1SD) for row in rows)
        spread = float(first_1TD.std())
        in_decoder.append(float((first_1TD - second_1TD)[:, -1].abs().max()) / spread)
    return max(in_encoder), max(in_decoder)


def share_of_same(tiny: Tiny, pairs: Sequence[Pair]) -> float:
    """Exchange the animals, and compute the share of equal translations."""
    # Two animals described alike change nothing when exchanged.
    swapped = [(pair[0], other[0]) for pair in pairs if (other := swap_animals(pair))]
    first = translate_tiny(tiny, [pair[0] for pair in swapped])
    second = translate_tiny(tiny, [pair[1] for pair in swapped])
    return sum(a == b for a, b in zip(first, second, strict=True)) / len(swapped)


def _learn_statements(
    kind: str, sizes: tuple[int, int, int], seed: int, *, has_then: bool
) -> dict[str, Any]:
    """Train on statements; with *then* compare the maps of sentences with it in front and without.

    Returns:
        The share of new statements translated exactly, and the share that gets the ``same``
        translation when the animals are exchanged, although that reverses who does what.
    """
    count, num_tests, steps = sizes
    train = draw_statements(count, seed=seed, part="train")
    test = draw_statements(num_tests, seed=seed, part="test")
    # Every other sentence has a word in front, so that the model knows it.
    mixed = [
        (f"then {english}", f"puis {french}") if has_then and index % 2 else (english, french)
        for index, (english, french) in enumerate(train)
    ]
    tiny = make_tiny([*mixed, *test], seed=seed, positions=kind, **_LENGTHS, **_REACH.get(kind, {}))
    tiny = train_tiny(tiny, mixed, steps=steps, seed=seed)
    found = {"exact": count_exact(tiny, test), "same": share_of_same(tiny, test)}
    if not has_then:
        return found
    by_word, by_place = movement_of_tiny(tiny, [pair[0] for pair in test], "then")
    return found | {"moved_by_word": by_word, "moved_by_place": by_place}


def _learn_lists(
    kind: str, sizes: tuple[int, int, int], trained_to: int, longest: int, seed: int
) -> list[float]:
    count, num_tests, steps = sizes
    train = draw_lists(count, phrases=range(1, trained_to + 1), seed=seed, part="train")
    tiny = make_tiny(train, seed=seed, positions=kind, **_LENGTHS, **_REACH.get(kind, {}))
    tiny = train_tiny(tiny, train, steps=steps, seed=seed)
    found = []
    for size in range(1, longest + 1):
        # A list of one animal has only a few dozen forms.
        number = min(8, num_tests) if size == 1 else num_tests
        test = draw_lists(number, phrases=(size,), seed=seed, part="test")
        found.append(count_exact(tiny, test))
    return found


def _order_table(cells: Cells) -> ResultTable:
    columns = (
        Column("right, %", "exact", ".0f", 100),
        Column("alike when exchanged, %", "same", ".0f", 100),
    )
    return cells.table("Statements after training", "kind", columns, head="positions")


def _length_table(cells: Cells, trained_to: int) -> ResultTable:
    cells = cells.add(when=lambda row: "in training" if row["size"] <= trained_to else "longer")
    columns = cells.columns("kind", "right", ".0f", scale=100)
    when = Column("", "when", "", over_seeds="first")
    title = "Lists of animals by length, % right"
    return cells.table(title, "size", [*columns, when], head="animals")


def _order_panel(order: Cells) -> Panel:
    return order.add(shares=lambda row: (row["exact"], row["same"])).panel(
        "Statements of two animals",
        ("", "%"),
        {"without positions": {"kind": "none"}, "with positions": {"kind": "sinusoidal"}},
        (0.0, 1.0),
        "shares",
        scale=100,
        kind="bars",
        names=("right", "alike when exchanged"),
        y_range=PERCENT,
    )
