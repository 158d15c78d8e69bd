"""``positions``: angles, the matrix of an offset, the two bank sentences, far positions.

Source:
    Notes "Transformers", section 3.2, equations 2 to 6.
"""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor

from pellucid.attention.positions import offset_matrix, sinusoidal_positions
from pellucid.by_hand.example_numbers import read_matrix
from pellucid.by_hand.printed import (
    SHOW_ME_THE_MONEY_TOKENS,
    find_numbers,
)
from pellucid.by_hand.sheet import (
    NamedMatrix,
    Part,
    WorkedExample,
    attend_by_hand,
    make_given,
    make_step,
    matrix,
    named_matrix,
    write_example,
    write_number,
    write_part,
)
from pellucid.by_hand.written_stages import (
    Product,
    bracket,
    make_product_step,
    stage_steps,
    write_added,
)
from pellucid.errors import InputError

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


def positions() -> WorkedExample:
    """Work out encodings, offsets between them, and a head that looks three words ahead."""
    return write_example(
        "positions",
        _angles_part(),
        _speed_part(),
        _sum_part(),
        _move_part(),
        _offset_part(),
        *(_ahead_part(index) for index in range(len(BANK_SENTENCES))),
        _far_part(),
    )


def fit_move(num_positions: int = NUM_TRAINED) -> Tensor:
    """Fit by least squares the matrix that moves the first encodings by `OFFSET`."""
    encoded_LD = _encode(num_positions)
    start_LD = encoded_LD[:-OFFSET]
    end_LD = encoded_LD[OFFSET:]
    # gelsd bears with columns that are nearly constant.
    fitted_DD: Tensor = torch.linalg.lstsq(start_LD, end_LD, driver="gelsd").solution
    return fitted_DD.T


def _encode(count: int, first: int = 0) -> Tensor:
    return sinusoidal_positions(count, _WIDTH, offset=first, dtype=torch.float64)


def _write_angle(place: int, feature: int) -> str:
    """Write one entry as the notes do: ``PE₁,₀ = sin(1 ÷ 10000^(0÷4)) = sin(1) = 0.841471``."""
    function = ("sin", "cos")[feature % 2]
    power = feature - feature % 2
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
        named_matrix(SHOW_ME_THE_MONEY_TOKENS, encoded_LD, "p"),
        lines=(line for row in arithmetic for line in row),
        arithmetic=arithmetic,
        printed=find_numbers("PE"),
    )
    return write_part("positions.angles", step)


def _speed_part() -> Part:
    pairs = range(_WIDTH // 2)
    speeds = [10000 ** (-2 * pair / _WIDTH) for pair in pairs]
    values_LX = matrix([[speed, 2 * math.pi / speed] for speed in speeds])
    names = tuple(f"j = {pair}" for pair in pairs)
    encoded_LD = _encode(100)
    # The diagonal is moved out of the way: no position is its own neighbor.
    apart_LM = torch.cdist(encoded_LD, encoded_LD) + torch.eye(100, dtype=torch.float64) * 9
    least = float(apart_LM.min())
    place = int(apart_LM.argmin())
    offset = place % 100 - place // 100
    # Every pair stands twice in the table.
    num_nearest = int((apart_LM < least + 1e-9).sum()) // 2
    lines = (
        f"largest and smallest number: {write_number(float(encoded_LD.max()))} and "
        f"{write_number(float(encoded_LD.min()))}",
        f"nearest: all {num_nearest} pairs {offset} positions apart, such as 0 and {offset}: "
        f"{write_number(least)}",
    )
    return write_part(
        "positions.speed",
        make_step(
            "ω",
            "1 ÷ 10000^(2j÷d), radians a position; positions a turn: 2π ÷ ω",
            NamedMatrix(names, ("ω", "positions a turn"), values_LX),
        ),
        make_step("all different", "the first 100 positions", lines=lines),
    )


def _sum_part() -> Part:
    words = SHOW_ME_THE_MONEY_TOKENS
    embeddings_LD = read_matrix("show-me-the-money.embeddings")
    encoded_LD = _encode(len(words))
    arithmetic = write_added(words, embeddings_LD, encoded_LD, "x")
    return write_part(
        "positions.sum",
        make_given("X′", named_matrix(words, embeddings_LD, "e"), "the embeddings of the notes"),
        make_step(
            "X",
            "X′ + P",
            named_matrix(words, embeddings_LD + encoded_LD, "x"),
            lines=arithmetic[-1],
            arithmetic=arithmetic,
            printed=find_numbers("equation 5, “money”"),
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
    moved_LD = started @ move_DD.T
    expected_LD = _encode(2, 1 + OFFSET)
    apart = write_number(float((moved_LD - expected_LD).abs().max()))
    rows = tuple(f"PE{place} → PE{place + OFFSET}".translate(_SUBSCRIPTS) for place in (1, 2))
    product = make_product_step("M · PE", "for i = 1 and i = 2", rows, started, move_DD.T, "p")
    expected = NamedMatrix(
        tuple(f"PE{1 + OFFSET + place}".translate(_SUBSCRIPTS) for place in range(2)),
        names,
        expected_LD,
    )
    check = make_step(
        "PE", "from the sines themselves", expected, note=f"Largest difference: {apart}."
    )
    given = make_step("M", f"for δ = {OFFSET}", NamedMatrix(names, names, move_DD), lines=lines)
    return write_part("positions.move", given, product, check, offset=OFFSET)


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
            sine = b_sin * a_cos - b_cos * a_sin
            cosine = b_cos * a_cos + b_sin * a_sin
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
        encodings = named_matrix(names, torch.stack([bank_D, man_D]), "p")
        steps.append(make_step(f"sentence {index}", f"“{sentence}”", encodings, lines=lines))
    known = named_matrix((f"PE{OFFSET}".translate(_SUBSCRIPTS),), _encode(1, OFFSET), "p")
    check = make_step("compare", "the encoding of position 3 itself", known)
    return write_part("positions.offset", *steps, check)


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
    place = "second" if index else "first"
    return write_part(f"positions.{place}", *stages, attention=attention, offset=OFFSET)


def _far_part() -> Part:
    fitted_DD = fit_move()
    rows = []
    values = []
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
    return write_part(
        "positions.far",
        make_step(
            "largest error of a fitted M",
            f"least squares on positions 0 to {last}",
            NamedMatrix(tuple(rows), ("error",), matrix(values)),
        ),
        make_step("products", f"of encodings {OFFSET} apart", lines=lines),
        make_step(
            "absolute position",
            f"read by a linear map fitted on positions 0 to {last}",
            NamedMatrix(tuple(f"PE{i}" for i in (last, *FAR)), ("true", "read"), matrix(guesses)),
        ),
    )


def recover_offset(encoding_i_D: Tensor, encoding_j_D: Tensor, *, max_offset: int = 5000) -> int:
    r"""Find the offset δ from position i to position j, given only their interleaved encodings.

    Turning each pair of the second encoding back by the angle of the same pair in the first gives
    $\sin(\delta\omega_j)$ and $\cos(\delta\omega_j)$: the encoding of position δ itself. One pair
    leaves δ open by whole turns; only one integer fits all pairs. The best fit up to ``max_offset``
    in either direction is returned; keep that small for a narrow encoding, which has few pairs.
    ("The offset δ can be determined", say the notes in section 3.2.)

    Raises:
        InputError: the encodings are not vectors of one even width, or max_offset is negative.
    """
    if encoding_i_D.dim() != 1 or encoding_i_D.shape != encoding_j_D.shape:
        raise InputError(
            "Two encodings must be vectors of one width, but have the shapes "
            f"{tuple(encoding_i_D.shape)} and {tuple(encoding_j_D.shape)}."
        )
    if max_offset < 0:
        raise InputError(f"max_offset must be 0 or more, but is {max_offset}.")
    d_model = encoding_i_D.shape[0]
    candidates_LD = _encodings_around_zero(max_offset, d_model)
    first = encoding_i_D.double().cpu()
    second = encoding_j_D.double().cpu()
    turned_D = torch.empty(d_model, dtype=torch.float64)
    # sin(b − a) = sin b cos a − cos b sin a; cos(b − a) = cos b cos a + sin b sin a
    turned_D[0::2] = second[0::2] * first[1::2] - second[1::2] * first[0::2]
    turned_D[1::2] = second[1::2] * first[1::2] + second[0::2] * first[0::2]
    misfit_L = (candidates_LD - turned_D).square().sum(dim=-1)
    return int(misfit_L.argmin()) - max_offset


@functools.lru_cache(maxsize=1)  # the same table serves every pair of positions of one width
def _encodings_around_zero(farthest: int, d_model: int) -> Tensor:
    return sinusoidal_positions(2 * farthest + 1, d_model, offset=-farthest, dtype=torch.float64)
