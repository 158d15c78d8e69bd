r"""Attention written out: every stage of it as tables and lines, to be followed by hand.

An `WorkedExample` has parts, a part has steps, and a step has tables, lines of arithmetic and the
numbers that a text prints for it. Everything here is data. No result is copied: a `WorkedNumber`
holds the printed numbers next to those computed, in float64.

The stages are those of `pellucid.attention.stages`, with the softmax taken apart:

$$e_{ij} = \exp(F_{ij} - \max_k F_{ik}) \qquad S_{ij} = e_{ij} / \sum_k e_{ik}$$

Subtracting the largest number of a row changes no weight, since it cancels, and keeps the
exponentials from overflowing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from pellucid.attention.masks import apply_mask
from pellucid.attention.stages import mix, score, weigh
from pellucid.by_hand.example_numbers import read_example_file
from pellucid.by_hand.printed import WorkedNumber
from pellucid.config.base import Strict

# Properties that are tensors end in axis capitals, as variables do.
# ruff: noqa: N802


Arithmetic = tuple[tuple[str, ...], ...]
"""Lines of arithmetic, one group for each row."""

_MOST_LINES = 12
_FIRST_ROW = "The other rows: --row N."


@dataclass(frozen=True, eq=False)
class NamedMatrix:
    """A matrix whose rows and columns have names."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values_LX: Tensor
    title: str = ""


@dataclass(frozen=True, eq=False)
class Step:
    """One computation.

    Attributes:
        name: such as ``scores``.
        formula: how it is computed.
        note: a remark.
        tables: the result.
        lines: arithmetic that is written out.
        printed: the numbers that a text prints here, next to the same computed.
        arithmetic: the sums and products of each row of the table, for following one row.
        is_given: True if nothing is computed here.
    """

    name: str
    formula: str = ""
    note: str = ""
    tables: tuple[NamedMatrix, ...] = ()
    lines: tuple[str, ...] = ()
    printed: tuple[WorkedNumber, ...] = ()
    arithmetic: Arithmetic = ()
    is_given: bool = False


@dataclass(frozen=True, eq=False)
class AttentionByHand:
    r"""One attention with every number that is written down when computing it.

    Attributes:
        query_names: one for each query.
        key_names: one for each key.
        scores_LM: float64, as all matrices here.
        divisor: the number that divides the scores, normally $\sqrt{d_k}$.
        divisor_words: its derivation, such as ``√4 = 2``.
        mask_LM: True = may attend; None if all may.
        query_LK, key_MK, value_ME: None if only scores are known.
        added_LE: vectors that are added to the context unchanged.
    """

    query_names: tuple[str, ...]
    key_names: tuple[str, ...]
    scores_LM: Tensor
    divisor: float
    divisor_words: str
    mask_LM: Tensor | None = None
    value_ME: Tensor | None = None
    query_LK: Tensor | None = None
    key_MK: Tensor | None = None
    added_LE: Tensor | None = None

    @property
    def scaled_LM(self) -> Tensor:
        """The scores over the divisor."""
        return self.scores_LM / self.divisor

    @property
    def masked_LM(self) -> Tensor:
        """The scaled scores, −∞ for keys that a query may not attend to."""
        return apply_mask(self.scaled_LM, self.mask_LM)

    @property
    def exponentials_LM(self) -> Tensor:
        """The exponentials of the masked scores minus the largest of their row."""
        largest_L1 = self.masked_LM.amax(dim=-1, keepdim=True)
        return (self.masked_LM - largest_L1.masked_fill(largest_L1 == -math.inf, 0.0)).exp()

    @property
    def sums_L1(self) -> Tensor:
        """The sum of each row of exponentials."""
        return self.exponentials_LM.sum(dim=-1, keepdim=True)

    @property
    def weights_LM(self) -> Tensor:
        """The softmax of the masked scores."""
        return weigh(self.masked_LM)

    @property
    def context_LE(self) -> Tensor | None:
        """The weighted sum of the values, plus the added vectors; None without values."""
        if self.value_ME is None:
            return None
        context_LE = mix(self.weights_LM, self.value_ME)
        return context_LE if self.added_LE is None else self.added_LE + context_LE


@dataclass(frozen=True, eq=False)
class Part:
    """Some steps that belong together; those of an attention can be followed row by row.

    Attributes:
        title: one line.
        note: an explanation, shown before the steps.
        steps: in the order of computing.
        attention: the attention that the steps write down, if they do.
        corrections: sentences about errors of the text, shown after the steps.
    """

    title: str
    note: str = ""
    steps: tuple[Step, ...] = ()
    attention: AttentionByHand | None = None
    corrections: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class WorkedExample:
    """A worked example from beginning to end.

    Attributes:
        name: as the user types it.
        title: one line.
        text: the title of its source; empty for a user's own matrices.
        note: the numbers that are given, and those that are ours.
        parts: in the order of computing.
    """

    name: str
    title: str
    text: str
    note: str
    parts: tuple[Part, ...]


def attend_by_hand(
    query_LK: Tensor,
    key_MK: Tensor,
    value_ME: Tensor,
    *,
    query_names: Sequence[str],
    key_names: Sequence[str] | None = None,
    mask_LM: Tensor | None = None,
    divisor: float | None = None,
    added_LE: Tensor | None = None,
) -> AttentionByHand:
    r"""Let queries attend to keys and values, all float64.

    By default keys have the names of the queries, and the scores are divided by $\sqrt{d_k}$. See
    `AttentionByHand` for the rest.
    """
    width = query_LK.shape[-1]
    return AttentionByHand(
        tuple(query_names),
        tuple(query_names if key_names is None else key_names),
        score(query_LK, key_MK),
        divisor=math.sqrt(width) if divisor is None else divisor,
        divisor_words=write_root(width) if divisor is None else "",
        mask_LM=mask_LM,
        value_ME=value_ME,
        query_LK=query_LK,
        key_MK=key_MK,
        added_LE=added_LE,
    )


def make_step(
    name: str,
    formula: str = "",
    *tables: NamedMatrix,
    note: str = "",
    lines: Iterable[str] = (),
    printed: Iterable[WorkedNumber] = (),
    arithmetic: Arithmetic = (),
    is_given: bool = False,
) -> Step:
    """Make a step from whatever it has; its lines are some of its arithmetic by default."""
    lines = tuple(lines) or shown_lines(arithmetic)
    return Step(name, formula, note, tables, lines, tuple(printed), arithmetic, is_given)


def make_given(name: str, shown: NamedMatrix, formula: str = "", note: str = "") -> Step:
    """Make a step that shows what is given."""
    return Step(name, formula, note, (shown,), is_given=True)


def shown_lines(arithmetic: Arithmetic) -> tuple[str, ...]:
    """Choose what a whole example shows: all lines if they are few, otherwise the first row's."""
    if not arithmetic:
        return ()
    if sum(map(len, arithmetic)) <= _MOST_LINES:
        return tuple(line for row in arithmetic for line in row)
    first = arithmetic[0]
    return (*first, _FIRST_ROW) if len(arithmetic) > 1 else first


def make_weight_step(name: str, weight: Any, formula: str = "", note: str = "") -> Step:
    """Make a step that shows a matrix of weights, one row for each feature of x."""
    return make_given(
        name, named_matrix(name_columns("x", len(weight)), matrix(weight), ""), formula, note
    )


def named_matrix(
    rows: Sequence[str], values_LX: Tensor, letter: str, title: str = ""
) -> NamedMatrix:
    """Make a table of vectors, one per row, whose features are numbered from 0."""
    return NamedMatrix(tuple(rows), name_columns(letter, values_LX.shape[-1]), values_LX, title)


def name_columns(letter: str, count: int) -> tuple[str, ...]:
    """Name features by a letter and a number: ``v0``, ``v1`` and so on."""
    return tuple(f"{letter}{index}" for index in range(count))


def matrix(rows: Any) -> Tensor:
    """Turn nested numbers into a float64 tensor."""
    # Numbers written by people are decimal: float64 shows six digits of them without rounding
    # errors.
    return torch.as_tensor(rows, dtype=torch.float64)


def write_number(value: float) -> str:
    """Write a number as a person would: up to six decimals, no trailing zeros."""
    if math.isinf(value):
        return "−∞" if value < 0 else "∞"
    if value == 0:
        return "0"
    if abs(value) < 5e-7 or abs(value) >= 1e9:
        return f"{value:.6g}".replace("-", "−")
    return f"{value:.6f}".rstrip("0").rstrip(".").replace("-", "−")


def write_root(width: int) -> str:
    """Write a square root with its value: ``√4 = 2``."""
    return f"√{width} = {write_number(math.sqrt(width))}"


class PartWords(Strict):
    """The words of one part of an example."""

    title: str = ""
    note: str = ""
    corrections: list[str] = Field(default_factory=list)


class _Words(Strict):
    """The file of an example: its words, those of its parts by their names, and its numbers."""

    title: str
    text: str = ""
    note: str
    parts: dict[str, PartWords]
    numbers: dict[str, list[Any]] = Field(default_factory=dict)


def write_part(
    name: str,
    *steps: Step,
    attention: AttentionByHand | None = None,
    **values: object,
) -> Part:
    """Make a part of an example with its words.

    Args:
        name: of the example and of the part: ``pizza.given``.
        steps: what it computes.
        attention: the attention that the steps write down, if they do.
        values: what the names in braces of the words stand for.
    """
    example, _, part = name.partition(".")
    words = _read_words(example).parts[part]
    return Part(
        words.title.format(**values),
        words.note.format(**values),
        steps,
        attention,
        tuple(text.format(**values) for text in words.corrections),
    )


def write_example(name: str, *parts: Part, **values: object) -> WorkedExample:
    """Make an example with its title, source and note; values stand for names in braces."""
    words = _read_words(name)
    title = words.title.format(**values)
    note = words.note.format(**values)
    return WorkedExample(name, title, words.text, note, parts)


@cache
def _read_words(name: str) -> _Words:
    return _Words.model_validate(read_example_file(name))
