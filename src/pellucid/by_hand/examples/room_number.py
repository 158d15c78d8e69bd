"""``room-number``: a table of names and rooms, and a query for a name that is not in it.

Three similarities answer it, each softly and hard, and so does a database.

Source:
    Slides "Self-Attention"; notes "Transformers", section 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from pellucid.attention.similarity import attention_pooling, edit_similarity, exact_match
from pellucid.by_hand.examples.likeness import (
    edit_path,
    edit_table,
    ngram_similarity,
    ngrams,
    sound_similarity,
    soundex,
)
from pellucid.by_hand.printed import WorkedNumber
from pellucid.by_hand.sheet import (
    AttentionByHand,
    Example,
    Part,
    Table,
    make_step,
    matrix,
    write_number,
)
from pellucid.by_hand.stages import stage_steps
from pellucid.by_hand.texts import ROOM_NUMBERS

_TEXT = 'Slides "Self-Attention"'
_NAME = "Summeth"
_NAMES = tuple(ROOM_NUMBERS)
_PRINTED = "200"

Similarity = Callable[[Sequence[str], Sequence[str]], Tensor]


def room_number() -> Example:
    """Look up Summeth by spelling, by pairs of letters and by sound."""
    rooms = Table(_NAMES, ("room",), matrix(_rooms()))
    return Example(
        name="room-number",
        title="Which room does Summeth have?",
        text=_TEXT,
        note="The slides look Summeth up among Smith, Summer and Smeeth and answer 200, the room "
        "of Smith. They do not say by which similarity; three are tried here. Softly, every "
        "room counts with its weight; hard, only the most alike does, and those that tie share. "
        "An average of room numbers is not a room: softness helps where values are vectors that "
        "can be mixed.",
        parts=(
            Part(
                "The table",
                "Names are keys, rooms are values. A query is a name, in the table or not. "
                "Nothing is multiplied by a matrix here: names are compared letter by letter.",
                (make_step("keys and values", "", rooms, is_given=True),),
            ),
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
        ),
    )


def _parts(
    name: str, formula: str, similarity: Similarity, lines: tuple[str, ...], cause: str
) -> tuple[Part, Part]:
    scores_LM, temperature = similarity([_NAME], _NAMES), "the temperature, 1"
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
    hard = attention_pooling([_NAME], _NAMES, _rooms(), similarity, temperature=0)
    found = Table((_NAME,), ("room",), hard.context)
    answer = _answer(f"hard, by {name}", hard.context, cause)
    steps = (
        make_step("weights", "1 for the most alike, shared if several tie", _row(hard.weights)),
        make_step("context", "weights · V", found, printed=[answer]),
    )
    title = name[0].upper() + name[1:]
    return (
        Part(
            f"{title}, soft",
            "Every similarity becomes a weight, and the answer is a mixture of all rooms.",
            stages,
            soft,
        ),
        Part(
            f"{title}, hard",
            "Only the most alike counts, as if the softmax were infinitely sharp.",
            steps,
        ),
    )


def _edits_part() -> Part:
    """Show how each edit distance comes about."""
    letters = ("–", *_NAME)
    steps = []
    for name in _NAMES:
        distances_LM = edit_table(_NAME, name)
        path = [change for change in edit_path(_NAME, name) if not change.startswith("keep")]
        line = f"{_NAME} → {name}: {', '.join(path)}: {write_number(float(distances_LM[-1, -1]))}"
        values = Table(letters, ("–", *name), distances_LM)
        steps.append(
            make_step(f"to {name}", "the last number is the distance", values, lines=[line])
        )
    return Part(
        "Edit distances, letter by letter",
        "A row is a beginning of Summeth, a column one of the other name. Each number is the least "
        "of three: the one above + 1 (drop a letter), the one to the left + 1 (put one in), the "
        "one above left, + 1 if the letters differ (change it).",
        tuple(steps),
    )


def _first_match_part() -> Part:
    scores_LM = sound_similarity([_NAME], _NAMES)
    found = _NAMES[int(scores_LM.argmax())]
    number = WorkedNumber(
        _TEXT,
        "the first of those that sound most alike",
        (_PRINTED,),
        (ROOM_NUMBERS[found],),
        "by sound, and with the tie decided by the order of the table",
    )
    line = f"{found}, {soundex(found)}, room {write_number(ROOM_NUMBERS[found])}"
    return Part(
        "How 200 comes about",
        "A table that stops at the first of several equal rows needs no weights.",
        (make_step("first match by sound", lines=[line], printed=[number]),),
    )


def _database_part() -> Part:
    unknown = attention_pooling([_NAME], _NAMES, _rooms(), exact_match)
    known = attention_pooling(["Smith"], _NAMES, _rooms(), exact_match)
    smith = Table(("Smith",), _NAMES, known.weights)
    line = f"room {write_number(float(known.context))}"
    return Part(
        "As a database",
        "A query for equality gives one row all the weight, or none any.",
        (
            make_step("weights", f"for {_NAME}, who is not in the table", _row(unknown.weights)),
            make_step("weights", "for Smith", smith, lines=[line]),
        ),
    )


def _answer(place: str, context_LE: Tensor, cause: str) -> WorkedNumber:
    room = float(context_LE)
    return WorkedNumber(_TEXT, f"room of {_NAME}, {place}", (_PRINTED,), (room,), cause)


def _row(weights_LM: Tensor) -> Table:
    return Table((_NAME,), _NAMES, weights_LM)


def _rooms() -> list[list[float]]:
    return [[room] for room in ROOM_NUMBERS.values()]
