"""``positions``: angles, the matrix of an offset, the two bank sentences, far positions.

Source:
    Notes "Transformers", section 3.2, equations 2 to 6.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pellucid.attention.positions import offset_matrix, recover_offset, sinusoidal_positions
from pellucid.by_hand.printed import find_numbers
from pellucid.by_hand.sheet import (
    Example,
    Part,
    Table,
    attend_by_hand,
    make_step,
    matrix,
    table,
    write_number,
)
from pellucid.by_hand.stages import Product, stage_steps
from pellucid.by_hand.sums import bracket, make_product_step, write_added
from pellucid.by_hand.texts import SHOW_ME_THE_MONEY_EMBEDDINGS, SHOW_ME_THE_MONEY_TOKENS

BANK_SENTENCES = (
    "the bank told the man he was bankrupt",
    "then the bank told the man he was bankrupt",
)
OFFSET = 3
NUM_TRAINED = 8
"""Positions from which the move is fitted."""
FAR = (8, 100, 5000)

_WIDTH = 4
_SHARPNESS = 16
_SUBSCRIPTS = str.maketrans("0123456789,", "₀₁₂₃₄₅₆₇₈₉,")


def positions() -> Example:
    """Work out encodings, offsets between them, and a head that looks three words ahead."""
    return Example(
        name="positions",
        title="Positions as angles: where a word stands",
        text='Notes "Transformers", section 3.2',
        note="The sentences, the embeddings and the width d = 4 are those of the notes. The head "
        "that looks ahead is ours.",
        parts=(
            _angles_part(),
            _speed_part(),
            _sum_part(),
            _move_part(),
            _offset_part(),
            *(_ahead_part(index) for index in range(len(BANK_SENTENCES))),
            _far_part(),
        ),
    )


def fit_move(num_positions: int = NUM_TRAINED) -> Tensor:
    """Fit by least squares the matrix that moves the first encodings by `OFFSET`."""
    encoded_LD = _encode(num_positions)
    start_LD, end_LD = encoded_LD[:-OFFSET], encoded_LD[OFFSET:]
    # gelsd bears with columns that are nearly constant.
    fitted_DD: Tensor = torch.linalg.lstsq(start_LD, end_LD, driver="gelsd").solution
    return fitted_DD.T


def _encode(count: int, first: int = 0) -> Tensor:
    return sinusoidal_positions(count, _WIDTH, offset=first, dtype=torch.float64)


def _write_angle(place: int, feature: int) -> str:
    """Write one entry as the notes do: ``PE₁,₀ = sin(1 ÷ 10000^(0÷4)) = sin(1) = 0.841471``."""
    function, power = ("sin", "cos")[feature % 2], feature - feature % 2
    angle = place / 10000 ** (power / _WIDTH)
    value = math.sin(angle) if feature % 2 == 0 else math.cos(angle)
    name = f"PE{place},{feature}".translate(_SUBSCRIPTS)
    return (
        f"{name} = {function}({place} ÷ 10000^({power}÷{_WIDTH})) = "
        f"{function}({write_number(angle)}) = {write_number(value)}"
    )


def _angles_part() -> Part:
    encoded_LD = _encode(len(SHOW_ME_THE_MONEY_TOKENS))
    arithmetic = tuple(
        tuple(_write_angle(place, feature) for feature in range(_WIDTH))
        for place in range(len(encoded_LD))
    )
    step = make_step(
        "P",
        "sin(i ÷ 10000^(2j÷d)), cos(i ÷ 10000^(2j÷d)) for the pairs j = 0, 1",
        table(SHOW_ME_THE_MONEY_TOKENS, encoded_LD, "p"),
        lines=(line for row in arithmetic for line in row),
        arithmetic=arithmetic,
        printed=find_numbers("PE"),
    )
    return Part("The angles", _ANGLES_NOTE, (step,), corrections=(_ANGLES_CORRECTION,))


def _speed_part() -> Part:
    pairs = range(_WIDTH // 2)
    speeds = [10000 ** (-2 * pair / _WIDTH) for pair in pairs]
    values_LX = matrix([[speed, 2 * math.pi / speed] for speed in speeds])
    names = tuple(f"j = {pair}" for pair in pairs)
    encoded_LD = _encode(100)
    apart_LM = torch.cdist(encoded_LD, encoded_LD) + torch.eye(100, dtype=torch.float64) * 9
    nearest = int(apart_LM.argmin())
    first, second = divmod(nearest, 100)
    lines = (
        f"largest and smallest number: {write_number(float(encoded_LD.max()))} and "
        f"{write_number(float(encoded_LD.min()))}",
        f"nearest two: positions {first} and {second}, {write_number(float(apart_LM.min()))} apart",
    )
    return Part(
        "Fast pairs and slow pairs",
        _SPEED_NOTE,
        (
            make_step(
                "ω",
                "1 ÷ 10000^(2j÷d), radians a position; positions a turn: 2π ÷ ω",
                Table(names, ("ω", "positions a turn"), values_LX),
            ),
            make_step("all different", "the first 100 positions", lines=lines),
        ),
        corrections=(
            "The notes say that the frequency rises “as i gets smaller”. i is the position; it "
            "rises as j, the number of the pair, gets smaller.",
        ),
    )


def _sum_part() -> Part:
    words = SHOW_ME_THE_MONEY_TOKENS
    embeddings_LD, encoded_LD = matrix(SHOW_ME_THE_MONEY_EMBEDDINGS), _encode(len(words))
    arithmetic = write_added(words, embeddings_LD, encoded_LD, "x")
    return Part(
        "Into the model: X = X′ + P",
        _SUM_NOTE,
        (
            make_step(
                "X′", "the embeddings of the notes", table(words, embeddings_LD, "e"), is_given=True
            ),
            make_step(
                "X",
                "X′ + P",
                table(words, embeddings_LD + encoded_LD, "x"),
                lines=arithmetic[-1],
                arithmetic=arithmetic,
                printed=find_numbers("equation 5, “money”"),
            ),
        ),
    )


def _move_part() -> Part:
    move_DD = offset_matrix(OFFSET, _WIDTH, dtype=torch.float64)
    speeds = [10000 ** (-2 * pair / _WIDTH) for pair in range(_WIDTH // 2)]
    lines = [
        f"pair {pair}: cos({OFFSET}·{write_number(speed)}) = "
        f"{write_number(math.cos(OFFSET * speed))}, sin({OFFSET}·{write_number(speed)}) = "
        f"{write_number(math.sin(OFFSET * speed))}"
        for pair, speed in enumerate(speeds)
    ]
    names = tuple(f"p{index}" for index in range(_WIDTH))
    started = _encode(2, 1)
    moved_LD, expected_LD = started @ move_DD.T, _encode(2, 1 + OFFSET)
    apart = write_number(float((moved_LD - expected_LD).abs().max()))
    rows = tuple(f"PE{place} → PE{place + OFFSET}".translate(_SUBSCRIPTS) for place in (1, 2))
    product = make_product_step("M · PE", "for i = 1 and i = 2", rows, started, move_DD.T, "p")
    expected = Table(
        tuple(f"PE{1 + OFFSET + place}".translate(_SUBSCRIPTS) for place in range(2)),
        names,
        expected_LD,
    )
    check = make_step(
        "PE", "from the sines themselves", expected, note=f"Largest difference: {apart}."
    )
    given = make_step("M", f"for δ = {OFFSET}", Table(names, names, move_DD), lines=lines)
    return Part(f"The matrix M that moves by δ = {OFFSET}", _MOVE_NOTE, (given, product, check))


def _offset_part() -> Part:
    steps = []
    for index, sentence in enumerate(BANK_SENTENCES, start=1):
        words = sentence.split()
        places = [words.index(word) for word in ("bank", "man")]
        bank_D, man_D = (_encode(1, place)[0] for place in places)
        lines = []
        for pair in range(_WIDTH // 2):
            a_sin, a_cos = bank_D[2 * pair : 2 * pair + 2].tolist()
            b_sin, b_cos = man_D[2 * pair : 2 * pair + 2].tolist()
            sine, cosine = b_sin * a_cos - b_cos * a_sin, b_cos * a_cos + b_sin * a_sin
            lines += [
                f"sin(δω) = {bracket(b_sin)}·{bracket(a_cos)} − {bracket(b_cos)}·"
                f"{bracket(a_sin)} = {write_number(sine)}",
                f"cos(δω) = {bracket(b_cos)}·{bracket(a_cos)} + {bracket(b_sin)}·"
                f"{bracket(a_sin)} = {write_number(cosine)}",
            ]
        lines.append(f"offset found: {recover_offset(bank_D, man_D, max_offset=50)}")
        names = tuple(
            f"{word} ({place})" for word, place in zip(("bank", "man"), places, strict=True)
        )
        encodings = table(names, torch.stack([bank_D, man_D]), "p")
        steps.append(make_step(f"sentence {index}", f"“{sentence}”", encodings, lines=lines))
    known = table((f"PE{OFFSET}".translate(_SUBSCRIPTS),), _encode(1, OFFSET), "p")
    check = make_step("compare", "the encoding of position 3 itself", known)
    return Part("The two bank sentences", _OFFSET_NOTE, (*steps, check))


def _ahead_part(index: int) -> Part:
    words = tuple(BANK_SENTENCES[index].split())
    names = tuple(f"{word} {place}" for place, word in enumerate(words))
    encoded_LD = _encode(len(words))
    weight_DK = _SHARPNESS * offset_matrix(OFFSET, _WIDTH, dtype=torch.float64).T
    bank = words.index("bank")
    own_LD = encoded_LD[bank : bank + 1]
    attention = attend_by_hand(
        own_LD @ weight_DK,
        encoded_LD,
        encoded_LD,
        query_names=names[bank : bank + 1],
        key_names=names,
    )
    stages = stage_steps(
        attention,
        products={"query": Product(names[bank : bank + 1], own_LD, weight_DK)},
        formulas={
            "query": f"PE · W^q with W^q = {_SHARPNESS}·Mᵀ",
            "key = value": "the encodings themselves",
        },
    )
    place = "first" if index == 0 else "second"
    return Part(
        f"A head that looks {OFFSET} words ahead, {place} sentence",
        _AHEAD_NOTES[index],
        stages,
        attention,
    )


def _far_part() -> Part:
    fitted_DD = fit_move()
    rows, values = [], []
    for place in FAR:
        moved_D = fitted_DD @ _encode(1, place)[0]
        true_D = _encode(1, place + OFFSET)[0]
        rows.append(f"from {place} to {place + OFFSET}")
        values.append([float((moved_D - true_D).abs().max())])
    lines = [
        f"PE{i} · PE{i + OFFSET}: ".translate(_SUBSCRIPTS)
        + write_number(float(_encode(1, i)[0] @ _encode(1, i + OFFSET)[0]))
        for i in (0, *FAR)
    ]
    last = NUM_TRAINED - 1
    places = matrix(range(NUM_TRAINED))[:, None]
    straight = torch.linalg.lstsq(_encode(NUM_TRAINED), places, driver="gelsd").solution
    guesses = [[i, float((_encode(1, i) @ straight).item())] for i in (last, *FAR)]
    return Part(
        "Beyond the lengths of training",
        _FAR_NOTE,
        (
            make_step(
                "largest error of a fitted M",
                f"least squares on positions 0 to {last}",
                Table(tuple(rows), ("error",), matrix(values)),
            ),
            make_step("products", f"of encodings {OFFSET} apart", lines=lines),
            make_step(
                "absolute position",
                f"read by a linear map fitted on positions 0 to {last}",
                Table(tuple(f"PE{i}" for i in (last, *FAR)), ("true", "read"), matrix(guesses)),
            ),
        ),
        corrections=(
            "The notes say that relative positioning performs well on longer sequences than those "
            "seen. The encodings make it possible, as here; a model that learned absolute "
            "positions does not get it as a gift.",
        ),
    )


_ANGLES_NOTE = (
    "Attention does not see order, so each position adds a vector. Every pair of features is the "
    "sine and the cosine of one angle. The angle grows with the position i, in radians: quickly "
    "in the first pair, 100 times more slowly in the second."
)
_ANGLES_CORRECTION = (
    "Positions 1 to 3 are printed as 0.02 1 0 1 and so on: the notes took the sines of degrees."
)
_SPEED_NOTE = (
    "A pair is the hand of a clock. The first turns once in 6.28 positions and tells neighbors "
    "apart; the second turns once in 628 and tells far from near. Together no two positions look "
    "the same, and no number leaves [−1, 1]."
)
_SUM_NOTE = (
    "The encoding is added to the embedding, feature by feature. From here on the same word is "
    "another vector in another place."
)
_MOVE_NOTE = (
    "A step of δ positions turns every clock hand by δω. That is one matrix, with a rotation for "
    "each pair, and the same one from every position (equation 4)."
)
_OFFSET_NOTE = (
    "“bank” stands at 1 in the first sentence and at 2 in the second, so its encoding changes. "
    "Turning the hand of “man” back by that of “bank” gives the hand of the distance: the same "
    "in both sentences."
)
_AHEAD_NOTES = (
    "If the query matrix contains M, a query is the encoding three places ahead, and the word "
    "that stands there fits best. Queries, keys and values are positions only. (A position six "
    "away looks almost as good: the fast hand turns once in 6.28. Wider vectors have more hands.)",
    "The same matrix finds the same word, although both stand one place farther.",
)
_FAR_NOTE = (
    "The formula has an encoding for every position, also for those that no training text "
    "reached; a learned table has not. A move that is fitted on eight positions holds far away, "
    "and products depend only on the distance. A map that reads the absolute position does not "
    "hold."
)
