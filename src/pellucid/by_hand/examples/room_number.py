"""``room-number``: a table of names and rooms, and a query for a name that is not in it.

Three similarities answer it, each softly and hard, and so does a database.

Source:
    Slides "Self-Attention"; notes "Transformers", section 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from pellucid.attention.similarity import (
    attention_pooling,
    compare_strings,
    edit_similarity,
    exact_match,
)
from pellucid.by_hand.printed import ROOM_NUMBERS, WorkedNumber
from pellucid.by_hand.sheet import (
    AttentionByHand,
    NamedMatrix,
    Part,
    WorkedExample,
    make_given,
    make_step,
    matrix,
    write_example,
    write_number,
    write_part,
)
from pellucid.by_hand.written_stages import stage_steps
from pellucid.errors import InputError

_TEXT = 'Slides "Self-Attention"'
_NAME = "Summeth"
_NAMES = tuple(ROOM_NUMBERS)
_PRINTED = "200"

Similarity = Callable[[Sequence[str], Sequence[str]], Tensor]


def room_number() -> WorkedExample:
    """Look up Summeth by spelling, by pairs of letters and by sound."""
    rooms = NamedMatrix(_NAMES, ("room",), matrix(_rooms()))
    return write_example(
        "room-number",
        write_part("room-number.table", make_given("keys and values", rooms)),
        _edits_part(),
        *_parts(
            "edit distance",
            "minus the fewest letters to put in, take out or change",
            edit_similarity,
            (),
            f"by writing, Smith is the farthest from {_NAME}",
        ),
        *_parts(
            "shared pairs of letters",
            "2 × shared pairs ÷ all pairs of both words",
            ngram_similarity,
            tuple(f"{name}: {' '.join(ngrams(name))}" for name in (_NAME, *_NAMES)),
            "Smith shares the fewest pairs of letters",
        ),
        *_parts(
            "sound",
            "minus the places where the Soundex codes differ",
            sound_similarity,
            tuple(f"{name}: {soundex(name)}" for name in (_NAME, *_NAMES)),
            f"Smith has the same code, {soundex('Smith')}, and so has Smeeth",
        ),
        _first_match_part(),
        _database_part(),
    )


def _parts(
    name: str, formula: str, similarity: Similarity, lines: tuple[str, ...], cause: str
) -> tuple[Part, Part]:
    scores_LM = similarity([_NAME], _NAMES)
    temperature = "the temperature, 1"
    soft = AttentionByHand((_NAME,), _NAMES, scores_LM, 1.0, temperature, value_ME=matrix(_rooms()))
    pooled = attention_pooling([_NAME], _NAMES, _rooms(), similarity)
    stages = stage_steps(
        soft,
        formulas={"scores": formula},
        notes={"scores": ""},
        printed={"context": [_answer(f"soft, by {name}", pooled.context, cause)]},
    )
    if lines:
        step = make_step("letters" if "letters" in name else "codes", lines=lines)
        stages = (step, *stages)
    # At temperature 0 the softmax takes the largest score only: a look-up.
    hard = attention_pooling([_NAME], _NAMES, _rooms(), similarity, temperature=0)
    found = NamedMatrix((_NAME,), ("room",), hard.context)
    answer = _answer(f"hard, by {name}", hard.context, cause)
    steps = (
        make_step("weights", "1 for the most alike, shared if several tie", _row(hard.weights)),
        make_step("context", "weights · V", found, printed=[answer]),
    )
    title = name[0].upper() + name[1:]
    return (
        write_part("room-number.soft", *stages, attention=soft, title=title),
        write_part("room-number.hard", *steps, title=title),
    )


def _edits_part() -> Part:
    """Show how each edit distance comes about."""
    letters = ("–", *_NAME)
    steps = []
    for name in _NAMES:
        distances_LM = edit_table(_NAME, name)
        # Letters that stay cost nothing, and would hide the others.
        path = [change for change in edit_path(_NAME, name) if not change.startswith("keep")]
        line = f"{_NAME} → {name}: {', '.join(path)}: {write_number(float(distances_LM[-1, -1]))}"
        values = NamedMatrix(letters, ("–", *name), distances_LM)
        steps.append(
            make_step(f"to {name}", "the last number is the distance", values, lines=[line])
        )
    return write_part("room-number.edits", *steps)


def _first_match_part() -> Part:
    scores_LM = sound_similarity([_NAME], _NAMES)
    # Of those that tie, the first in the table.
    found = _NAMES[int(scores_LM.argmax())]
    number = WorkedNumber(
        _TEXT,
        "the first of those that sound most alike",
        (_PRINTED,),
        (ROOM_NUMBERS[found],),
        "by sound, and with the tie decided by the order of the table",
    )
    line = f"{found}, {soundex(found)}, room {write_number(ROOM_NUMBERS[found])}"
    return write_part(
        "room-number.first_match", make_step("first match by sound", lines=[line], printed=[number])
    )


def _database_part() -> Part:
    unknown = attention_pooling([_NAME], _NAMES, _rooms(), exact_match)
    known = attention_pooling(["Smith"], _NAMES, _rooms(), exact_match)
    smith = NamedMatrix(("Smith",), _NAMES, known.weights)
    line = f"room {write_number(float(known.context))}"
    return write_part(
        "room-number.database",
        make_step("weights", f"for {_NAME}, who is not in the table", _row(unknown.weights)),
        make_step("weights", "for Smith", smith, lines=[line]),
    )


def _answer(place: str, context_LE: Tensor, cause: str) -> WorkedNumber:
    room = float(context_LE)
    return WorkedNumber(_TEXT, f"room of {_NAME}, {place}", (_PRINTED,), (room,), cause)


def _row(weights_LM: Tensor) -> NamedMatrix:
    return NamedMatrix((_NAME,), _NAMES, weights_LM)


def _rooms() -> list[list[float]]:
    return [[room] for room in ROOM_NUMBERS.values()]


_DIGITS = {
    letter: digit
    for digit, letters in {
        "1": "bfpv",
        "2": "cgjkqsxz",
        "3": "dt",
        "4": "l",
        "5": "mn",
        "6": "r",
    }.items()
    for letter in letters
}


def edit_table(word: str, other: str) -> Tensor:
    """Fill the table of edit distances between the beginnings of two words.

    An entry is the least of three: above + 1 (drop a letter), left + 1 (put one in), and above
    left, + 1 if the letters differ (change it).

    Returns:
        Distances, with a row for each beginning of the word and a column for each of the other,
        both starting with the empty one. The last entry is the distance of the words.

    Source:
        Wagner and Fischer 1974.
    """
    rows = [[float(column) for column in range(len(other) + 1)]]
    for index, letter in enumerate(word, start=1):
        row = [float(index)]
        for column, known in enumerate(other, start=1):
            # True counts as 1.
            changed = rows[-1][column - 1] + (letter != known)
            row.append(min(rows[-1][column] + 1, row[-1] + 1, changed))
        rows.append(row)
    return torch.tensor(rows, dtype=torch.float64)


def edit_path(word: str, other: str) -> tuple[str, ...]:
    """List the changes that make one word the other, as few as possible, from left to right."""
    distances = edit_table(word, other).tolist()
    row = len(word)
    column = len(other)
    path: list[str] = []
    # From the end back to the start: each step undoes the choice of the table.
    while row or column:
        here = distances[row][column]
        if (
            row
            and column
            # Keeping or changing a letter is preferred to a drop and an insertion of the same cost.
            and here == distances[row - 1][column - 1] + (word[row - 1] != other[column - 1])
        ):
            row = row - 1
            column = column - 1
            old = word[row]
            new = other[column]
            path.append(f"keep {old}" if old == new else f"change {old} to {new}")
        elif row and here == distances[row - 1][column] + 1:
            row -= 1
            path.append(f"drop {word[row]}")
        else:
            column -= 1
            path.append(f"put in {other[column]}")
    return tuple(reversed(path))


def ngrams(word: str, length: int = 2) -> tuple[str, ...]:
    """List all stretches of some letters in a word, in order and in lower case."""
    small = word.lower()
    return tuple(small[start : start + length] for start in range(len(small) - length + 1))


def ngram_similarity(queries: Sequence[str], keys: Sequence[str], length: int = 2) -> Tensor:
    r"""Measure the share of common stretches of letters: ``similarities_LM`` from 0 to 1.

    $$2\,|A \cap B| / (|A| + |B|)$$

    Source:
        Dice 1945, on bigrams.
    """

    def share(query: str, key: str) -> float:
        # Counted, since a stretch that occurs twice in both words is common twice.
        first = Counter(ngrams(query, length))
        second = Counter(ngrams(key, length))
        total = first.total() + second.total()
        return 2 * (first & second).total() / total if total else 0.0

    return compare_strings(queries, keys, share)


def soundex(word: str) -> str:
    """Write the sound of an English name as a letter and three digits.

    Vowels, *h*, *w* and *y* are left out; neighbors of one class count once, also across *h* and
    *w*. Characters other than a to z are skipped.

    Raises:
        InputError: the word has no letter from a to z.

    Source:
        Russell and Odell 1918, as the United States archives code census names.
    """
    letters = [letter for letter in word.lower() if "a" <= letter <= "z"]
    if not letters:
        raise InputError(f"A name must have a letter from a to z, but is {word!r}. Spell it so.")
    code = letters[0].upper()
    # The first letter is kept as a letter, but its class still swallows a neighbor's digit.
    last = _DIGITS.get(letters[0], "")
    for letter in letters[1:]:
        digit = _DIGITS.get(letter, "")
        if digit and digit != last:
            code += digit
        # A vowel ends a run of one class; h and w do not.
        if letter not in "hw":
            last = digit
    return code[:4].ljust(4, "0")


def sound_similarity(queries: Sequence[str], keys: Sequence[str]) -> Tensor:
    """Measure similarity of sound, as minus the places at which two codes differ: −4 to 0."""

    def compare(query: str, key: str) -> float:
        return -float(sum(a != b for a, b in zip(soundex(query), soundex(key), strict=True)))

    return compare_strings(queries, keys, compare)
