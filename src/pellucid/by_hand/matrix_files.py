"""Matrices in a user's file, TOML or CSV, checked before they are worked out.

TOML has either ``x`` with any of ``w_query``, ``w_key`` and ``w_value`` (a missing one is the
identity) or a table ``[[heads]]`` for each head, or ``query``, ``key`` and ``value`` as they are.
CSV has one matrix, which is queries, keys and values at once; its first line may name the tokens.
"""

from __future__ import annotations

import csv
import dataclasses
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError
from torch import Tensor

from pellucid.by_hand.sheet import AttentionByHand, Part, PartWords, Step, matrix
from pellucid.config.base import Strict
from pellucid.config.parsing import ExcessError, read_toml_text
from pellucid.errors import DataError, suggestion
from pellucid.files import endings
from pellucid.text.reading.lines import read_lines
from pellucid.wording.value_rules import word_rule

MAX_NUMBERS = 4096
"""The most numbers in one matrix, scores included, that can be followed by hand."""

LARGEST_NUMBER = 1e50
"""Larger numbers could overflow when multiplied."""

_FIELD = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.I | re.A)
_TABLE = re.compile(r"\s*(\[\[?)\s*(?!true|false|nan|inf)([A-Za-z_][\w.-]*)\s*\]")

Row = list[Annotated[float, Field(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)]]
Rows = list[Row]


def _named(value: Any) -> Any:
    """Write true and false as the words that they stand for."""
    return value if not isinstance(value, bool) else "sinusoidal" if value else "none"


def _place(value: Any) -> Any:
    """Write the place of a layer norm as the table that it stands for."""
    if isinstance(value, bool):
        value = "post" if value else "none"
    return value if isinstance(value, dict) else {"place": value}


def _divisor(value: Any) -> Any:
    return value if not isinstance(value, bool) else None if value else 1.0


class _Parts(Strict):
    """The parts of a user's example."""

    input: PartWords = PartWords()
    positions: PartWords = PartWords()
    norm: PartWords = PartWords()
    given: PartWords = PartWords()
    attention: PartWords = PartWords()
    joined: PartWords = PartWords()
    after_attention: PartWords = PartWords()
    feed_forward: PartWords = PartWords()
    after_feed_forward: PartWords = PartWords()


class Head(Strict):
    """A head and its matrices."""

    title: str = ""
    note: str = ""
    w_query: Rows
    w_key: Rows
    w_value: Rows


class _Norm(Strict):
    place: Literal["post", "pre", "none"] = "post"
    epsilon: float = Field(default=1e-5, gt=0, le=1)
    gain: Row | None = None
    bias: Row | None = None


class Network(Strict):
    """The two layers of a feed-forward network."""

    inner: Rows
    inner_bias: Row | None = None
    outer: Rows
    outer_bias: Row | None = None


_MATRIX = Field(None, description="rows of numbers such as [[1, 2], [3, 4]]")
_NAMES = Field(None, description='a list of texts such as ["a", "b"]')


class OwnFile(Strict):
    """The content of a user's file; a field's description says what it must be."""

    title: str = "Attention with your own matrices"
    text: str = ""
    note: str = ""
    origin: str = ""
    parts: _Parts = _Parts()

    x: Rows | None = _MATRIX
    w_query: Rows | None = _MATRIX
    w_key: Rows | None = _MATRIX
    w_value: Rows | None = _MATRIX
    query: Rows | None = _MATRIX
    key: Rows | None = _MATRIX
    value: Rows | None = _MATRIX
    tokens: list[str] | None = _NAMES
    key_tokens: list[str] | None = _NAMES
    features: list[str] | None = _NAMES
    mask: Literal["causal"] | list[list[bool]] | None = Field(
        None, description='"causal" or rows of true or false (true = may attend)'
    )
    scale: Annotated[float | None, BeforeValidator(_divisor)] = Field(
        None,
        ge=1 / LARGEST_NUMBER,
        le=LARGEST_NUMBER,
        description="true (scores are divided by √d_k), false (by nothing) or a positive number "
        "to divide by",
    )
    heads: Annotated[int, Field(ge=1)] | list[Head] = Field(
        1, description="a whole number of 1 or more, or a table [[heads]] for each"
    )
    w_output: Rows | None = _MATRIX
    positions: Annotated[Literal["sinusoidal", "none"] | Rows, BeforeValidator(_named)] = Field(
        "none", description='"sinusoidal", "none" or rows of numbers to add to x'
    )
    norm: Annotated[_Norm, BeforeValidator(_place)] = _Norm(place="none")
    feed_forward: Network | None = Field(
        None, description="a table with inner, inner_bias, outer and outer_bias"
    )


@dataclass(frozen=True)
class MatrixFile:
    """A checked file: its values, the line of each key, and the names of the parts made of it."""

    file: OwnFile
    lines: Mapping[str, int]
    path: Path
    made: set[str] = dataclasses.field(default_factory=set)

    def where(self, key: str) -> str:
        """Write the place of a value: ``file.toml:3, query[2][0]``."""
        return _where(self.path, self.lines, key)

    def check(self, is_right: bool, key: str, fault: str) -> None:
        """Raise an error about a value unless it is right; ``@`` in the text becomes its place.

        Raises:
            DataError: it is wrong.
        """
        if not is_right:
            raise DataError(fault.replace("@", self.where(key), 1))

    def vector(self, key: str, row: Row | None, width: int, of: str) -> Tensor | None:
        """Turn a row of numbers into a tensor, None if it is missing.

        Raises:
            DataError: it has another length.
        """
        if row is None:
            return None
        self.check(
            len(row) == width,
            key,
            f"{key} must be a list of {width} numbers, one for each column of {of}, but has "
            f"{len(row)} (@). Give as many.",
        )
        return matrix(row)

    def matrix(self, key: str, rows: Rows | None, count: int | None = None, of: str = "") -> Tensor:
        """Turn rows of numbers into a matrix.

        Args:
            key: its name in the file.
            rows: the numbers.
            count: the number of rows that it must have, if any number will not do.
            of: what each row is for.

        Raises:
            DataError: rows differ in length, or there are too many or the wrong number of them.
        """
        widths = [len(row) for row in rows or []]
        # Point at the first empty row, or at the whole matrix if it has no rows.
        place = next((f"{key}[{index}]" for index, width in enumerate(widths) if not width), key)
        self.check(
            bool(widths) and min(widths) > 0,
            place,
            f"{key} must be rows of numbers such as [[1, 2], [3, 4]], but is empty (@). Fill it.",
        )
        for index, width in enumerate(widths):
            self.check(
                width == widths[0],
                f"{key}[{index}]",
                f"All rows of a matrix must have the same length, but this row has {width} numbers "
                f"and the first has {widths[0]} (@). Make them equally long.",
            )
        self.check(
            len(widths) * widths[0] <= MAX_NUMBERS,
            key,
            f"A matrix must have at most {MAX_NUMBERS} numbers to be followed by hand, but has "
            f"{len(widths)} × {widths[0]} (@). For more use pellucid.attend in Python.",
        )
        self.check(
            count is None or len(widths) == count,
            key,
            f"{key} must have one row for each of the {count} {of}, but has {len(widths)} (@). If "
            "it is stored the other way round, transpose it.",
        )
        return matrix(rows)

    def part(
        self,
        name: str,
        title: str,
        note: str,
        steps: Sequence[Step],
        attention: AttentionByHand | None = None,
    ) -> Part:
        """Make a part, with the file's words for it if there are any."""
        self.made.add(name)
        words: PartWords = getattr(self.file.parts, name)
        corrections = tuple(words.corrections)
        return Part(words.title or title, words.note or note, tuple(steps), attention, corrections)


def read_matrix_file(path: Path) -> MatrixFile:
    """Read a TOML or a CSV file, and check the types and ranges of its values.

    Raises:
        DataError: one sentence about what is wrong, with file, line and key.
    """
    is_csv = endings(path).kind == ".csv"
    values, lines = _read_csv(path) if is_csv else _read_toml(path)
    try:
        return MatrixFile(OwnFile.model_validate(values), lines, path)
    except ValidationError as error:
        # A wrong key may be why another is missing. Of a key that may be several things, the error
        # that came farthest says most.
        first = error.errors()[0]["loc"][0]
        problem = max(
            error.errors(),
            key=lambda one: (
                one["type"] == "extra_forbidden",
                one["loc"][0] == first,
                len(one["loc"]),
            ),
        )
        raise DataError(_sentence(dict(problem), values, path, lines)) from None


def _sentence(
    problem: Mapping[str, Any], values: Mapping[str, Any], path: Path, lines: Mapping[str, int]
) -> str:
    """Word one of pydantic's errors."""
    names = [str(problem["loc"][0])]
    key = names[0]
    for part in problem["loc"][1:]:
        if isinstance(part, int):
            key += f"[{part}]"
        # The place of an error in a union names the alternative that was tried, which is not a key.
        elif part.isidentifier() and part not in ("Head", "bool", "int"):
            key += f".{part}"
            names.append(part)
    where = _where(path, lines, key)
    value = problem["input"]
    if problem["type"] == "extra_forbidden":
        known = _known_keys(problem["loc"])
        return f"Every key must be known, but {key!r} is not ({where}). " + suggestion(
            names[-1], known
        )
    if problem["type"] == "missing":
        return f"{key} must be given, but is missing ({where}). Add it."
    # Pydantic's sentence becomes the second half of ours.
    rule = word_rule(problem)
    # A limit on one number of a matrix stands for both signs.
    if problem["type"].endswith("than_equal") and key.endswith("]"):
        rule = f"at most {LARGEST_NUMBER:g} in size"
    described = OwnFile.model_fields[names[0]].description
    if described and key == names[0]:
        rule = described
        # The whole value, not the alternative's part of it.
        value = values[key]
    hint = "Write it so." if rule == described else "Change it."
    # A rule that lists words has one that was meant.
    if isinstance(value, str) and (words := re.findall(r"['\"](\w+)['\"]", rule)):
        hint = suggestion(value, words)
    return f"{key} must be {rule}, but is {_quote(value)} ({where}). {hint}"


def _known_keys(place: Sequence[Any]) -> list[str]:
    """List the keys of the table in which a key stands."""
    tables: dict[str, type[Strict]] = {
        "norm": _Norm,
        "feed_forward": Network,
        "heads": Head,
        "parts": _Parts,
    }
    if len(place) == 1:
        return list(OwnFile.model_fields)
    is_part = place[0] == "parts" and len(place) == 3
    return list((PartWords if is_part else tables[place[0]]).model_fields)


def _where(path: Path, lines: Mapping[str, int], key: str) -> str:
    name = key
    # A number has no line to itself: go up to the row, the matrix, the table.
    while name and name not in lines:
        name = re.sub(r"(\[\d+\]|\.?[^.\[\]]+)$", "", name)
    return f"{path}{f':{lines[name]}' if name else ''}, {key}"


def _quote(value: Any) -> str:
    """Quote a value for a message, and cut it if it is long."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _read_toml(path: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """Read a TOML file, and find the line of each key."""
    try:
        text = "\n".join(read_lines(path))
        values = read_toml_text(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        # The parser names no line if the text ends too early.
        number = line[1] if line else text.rstrip().count("\n") + 1  # at the end of the file
        raise DataError(
            f"The file must be TOML, but is not: {error} ({path}:{number}). Correct it there."
        ) from None
    except ExcessError as error:
        raise DataError(
            f"The file must hold matrices and settings, but {error} ({path}). Correct it."
        ) from None
    found: dict[str, int] = {}
    prefix = ""
    for number, line_text in enumerate(text.split("\n"), start=1):
        if opened := _TABLE.match(line_text):
            name = opened[2]
            # The first of several lines counts; a repeated key is an error that the parser has
            # reported.
            found.setdefault(name, number)
            # Each table of an array gets a number, as pydantic counts them.
            if opened[1] == "[[":
                count = sum(re.fullmatch(rf"{name}\[\d+\]", key) is not None for key in found)
                name = f"{name}[{count}]"
                found[name] = number
            prefix = f"{name}."
        elif named := re.match(r"""\s*["']?([\w-]+)["']?\s*=""", line_text):
            found.setdefault(prefix + named[1], number)
    return values, found


def _read_csv(path: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """Read one matrix from CSV as ``x``, with ``tokens`` if the first line has names."""
    rows: list[tuple[int, list[str]]] = []  # the number of each line, and its fields
    reader = csv.reader(read_lines(path), strict=True, skipinitialspace=True)
    try:
        for row in reader:
            fields = [field.strip() for field in row]
            if any(fields):
                rows.append((reader.line_num, fields))
    except csv.Error as error:
        raise DataError(
            f"The file must be CSV, but is not: {error} ({path}:{reader.line_num}). Correct it."
        ) from None
    values: dict[str, Any] = {}
    # A first line without a single number has names.
    if rows and not any(_FIELD.fullmatch(field) for field in rows[0][1]):
        values["tokens"] = rows.pop(0)[1]
    if not rows:
        raise DataError(f"The file must hold a matrix, but has no numbers ({path}). Write some.")
    values["x"] = [_read_row(fields, f"{path}:{number}") for number, fields in rows]
    # Empty lines are skipped, so that a row's number is not its line's.
    lines = {f"x[{index}]": number for index, (number, _) in enumerate(rows)}
    return values, {"tokens": 1, **lines}


def _read_row(row: Sequence[str], where: str) -> list[float]:
    for column, field in enumerate(row, start=1):
        if not _FIELD.fullmatch(field):
            raise DataError(
                f"Each field must be a number such as 0.5, but is {_quote(field)} ({where}, "
                f"field {column}). Names of tokens go into the first line, one for each row of the "
                "matrix."
            )
    return [float(field) for field in row]
