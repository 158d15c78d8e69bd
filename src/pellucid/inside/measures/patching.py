r"""Patching: put one vector of one sentence into another sentence, and see which answer comes.

Two sentences A and B, with one beginning of the translation, are answered by different tokens
$a$ and $b$. How much the model prefers A's answer is the difference of two logits,

$$d(x) = \ell_a(x) - \ell_b(x),$$

which is the difference of their log-probabilities. One array of A's run, at one position, replaces
that of B's run, everything after it is computed again, and the number is the share of the
difference between the two sentences that this restores:

$$r = \frac{d(\text{B patched}) - d(\text{B})}{d(\text{A}) - d(\text{B})}$$

It is 1 if B is answered as A is, 0 if nothing changes, and may be below 0 or above 1. Shares of
several vectors need not add up.

Source:
    Vig et al. 2020, "Investigating Gender Bias in Language Models Using Causal Mediation Analysis",
    section 3; Meng et al. 2022, "Locating and Editing Factual Associations in GPT", section 2.1.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from pellucid.arguments import checked, list_some
from pellucid.config.head_address import Part
from pellucid.errors import InputError, not_together, suggestion
from pellucid.inside.ask import arrays_of, check_number
from pellucid.inside.measures.contrast import find_contrast
from pellucid.inside.measures.maps import Map
from pellucid.inside.pair import Keeper, PairData, states_of

NAME = "patching"
SOURCE = "Vig et al. 2020, section 3; Meng et al. 2022, section 2.1"

EVERYTHING = "(all)"
"""The last column: all positions at once."""

FEWEST_NATS = 1e-6
"""Two sentences whose preferences differ by less have no difference to restore."""


Metric = Callable[[Tensor], Any]
"""A number of the logits of one row, ``logits_V``."""


@dataclass(frozen=True, eq=False)
class Patching:
    """Two sentences to patch between, each with its translation.

    Attributes:
        a: the sentence whose vectors are taken.
        b: the sentence that gets them.
        asked_row: the decoder row whose answers are compared; the first in which the translations
            differ unless given.
        metric: a number of the logits of that row, in the place of the difference of two of them.
    """

    a: PairData
    b: PairData
    asked_row: int | None = None
    metric: Metric | None = None

    @cached_property
    def row(self) -> int:
        """The decoder row that is asked about.

        Raises:
            InputError: it does not exist, or the translations do not differ there.
        """
        if self.asked_row is not None:
            # A metric needs no second answer.
            sides = [self.a] if self.metric is not None else [self.a, self.b]
            count = min(len(pair.target_ids) for pair in sides)
            advice = "Name one that exists, or a word."
            check_number("row", self.asked_row, count, "the translations", advice=advice)
            if self.metric is None and len({pair.target_ids[self.asked_row] for pair in sides}) < 2:
                raise InputError(
                    f"Row {self.asked_row} must predict different tokens in the two translations, "
                    f"but predicts {self.a.predicted_tokens[self.asked_row]} in both. Name another "
                    "row, or a word."
                )
            return self.asked_row
        pairs = zip(self.a.target_ids, self.b.target_ids, strict=False)
        for row, (first, second) in enumerate(pairs):
            if first != second:
                return row
        if self.metric is not None:
            return len(self.a.target_ids) - 1
        raise InputError(
            "The two sentences must have different translations, so that there is a difference to "
            "restore, but both are translated the same. Change a word that decides another one."
        )

    @property
    def asked(self) -> str:
        """Name what a number is about, for captions."""
        if self.metric is None:
            return " against ".join(self.answers)
        return getattr(self.metric, "__name__", "metric").strip("<>")

    @property
    def answers(self) -> tuple[str, str]:
        """The token that A has at that row, and the one that B has."""
        return self.a.predicted_tokens[self.row], self.b.predicted_tokens[self.row]

    @cached_property
    def sources(self) -> dict[int, int]:
        """The position of B's source for which each position of A's stands, as far as they align.

        Raises:
            InputError: none does, except the end of the sentence.
        """
        found = dict(_align(self.a.source_tokens, self.b.source_tokens))
        # The end of the sentence always aligns, so it does not count.
        if len(found) < min(2, len(self.b.source_ids)):
            raise InputError(
                "The two sentences must share words, so that their positions can be aligned, but "
                "share none. Change one word of the first."
            )
        return {second: first for first, second in found.items()}

    @cached_property
    def preferences(self) -> tuple[float, float]:
        """How much A and B each prefer A's answer to B's, in nats.

        Raises:
            InputError: they are equal.
        """
        first, second = (self._preference(pair, Keeper(())) for pair in (self.a, self.b))
        # Shares divide by this difference.
        if abs(first - second) < FEWEST_NATS:
            what = f"in their {self.asked}" if self.metric is not None else "in what they prefer"
            both = "have the same" if self.metric is not None else f"weigh {self.asked} equally"
            raise InputError(
                f"The two sentences must differ {what}, but both {both}. Take other sentences, or "
                "ask about other words."
            )
        return first, second

    def share(self, vectors: Mapping[str, Tensor], places: Mapping[str, _Index]) -> float:
        """Return the share that putting arrays of A into B restores.

        Args:
            vectors: arrays of A by name.
            places: for each name, where in A's and in B's array.
        """
        first, second = self.preferences
        changed = self._preference(self.b, _Put(vectors, places))
        return (changed - second) / (first - second)

    def positions(self, length: str) -> list[tuple[int, int]]:
        """Pair the positions of A with those of B: of the source (S), or of decoder rows (T)."""
        if length == "S":
            return sorted((first, second) for second, first in self.sources.items())
        return [(row, row) for row in range(self.row + 1)]

    def _preference(self, pair: PairData, probe: object) -> float:
        """Run a source with the beginning that both translations share."""
        # Both sentences read A's beginning, which is that of B up to this row.
        read = replace(pair, target_ids=self.a.target_ids[: self.row + 1])
        # Logits suffice: the logarithm of their sum cancels in the difference.
        logits_V = read.logits(probe=probe)[-1]  # type: ignore[arg-type]
        if self.metric is not None:
            return _number_of(self.metric, logits_V)
        ids = self.a.target_ids[self.row], self.b.target_ids[self.row]
        return float(logits_V[ids[0]] - logits_V[ids[1]])


def _number_of(metric: Metric, logits_V: Tensor) -> float:
    """Compute a metric of the user's.

    Raises:
        InputError: it is not a finite number.
    """
    found = metric(logits_V)
    try:
        number = float(found)
    except (TypeError, ValueError, RuntimeError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(
            f"A metric must make one finite number of the logits of a row, but made {found!r}. "
            "Return a number, such as logits[7] - logits[9]."
        )
    return number


_Index = tuple[tuple[object, ...], tuple[object, ...]]


class _Put:
    """A probe that replaces parts of arrays."""

    def __init__(self, vectors: Mapping[str, Tensor], places: Mapping[str, _Index]) -> None:
        self._vectors = vectors
        self._places = places

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        name = f"{site}.{stage}"
        if name not in self._places:
            return None
        source, target = self._places[name]
        changed = tensor.clone()
        # There is one sentence in the batch.
        changed[0][target] = self._vectors[name][source]  # type: ignore[index]
        return changed


@checked
@torch.inference_mode()
def patch(
    pair_a: PairData,
    pair_b: PairData,
    sites: str | Iterable[str] | None = None,
    positions: Iterable[int] | None = None,
    *,
    why: str | int | None = None,
    other: str | None = None,
    row: int | None = None,
    metric: Metric | None = None,
) -> Map:
    """Patch every vector of some arrays, one position at a time, and all positions together.

    Args:
        pair_a: a source with its translation, whose vectors are taken.
        pair_b: another source with its translation, which gets them. The first token in which the
            translations differ is the answer unless one of the following names another.
        sites: names of arrays as in a trace, such as ``encoder.0.self.value``, or of one head,
            ``encoder.0.self.3.value``, without a stage its context; ``encoder.0`` means the result
            of that layer, ``encoder`` the results of all. By default ``encoder``.
        positions: of B's source, or decoder rows; by default all that align with one of A's.
        why: a word of A's translation to ask about, or its number; B then reads what is before it.
        other: the word of the second answer; by default as for `Pair.why`.
        row: the decoder row to ask about.
        metric: a number of that row's logits, ``logits_V``, in the place of the difference of two
            of them; the row is then the last of A's translation if both are the same.

    Returns:
        A map: a row for each array (and head), a column for each of these positions and one for
        all of them together.

    Raises:
        InputError: an array, a position or a head does not exist, the sentences do not align, or
            the answers do not differ.
    """
    places = expand_sites(pair_b, list_sites(sites))
    pair_b = ask_about(pair_a, pair_b, why, other, row)
    task = Patching(pair_a, pair_b, row, metric)
    if pair_a.model is not pair_b.model:
        raise InputError("Both sentences must be read by one model, but there are two.")
    task.preferences  # noqa: B018 - refuses pairs without a difference before anything is run
    if why is None and row is None and metric is None:
        _warn_of_others(task)
    names = [name for name, _ in places]
    axes = {wanted.name: wanted.axes for wanted in arrays_of(pair_b.model.config)}
    length = length_of(axes, names)
    tokens = pair_b.source_tokens if length == "S" else pair_b.read_tokens[: task.row + 1]
    aligned = [second for _, second in task.positions(length)]
    columns = aligned if positions is None else list(positions)
    if not columns:
        raise InputError("No position was given. Name one, or leave positions out for all.")
    for column in columns:
        check_number("position", column, len(tokens), "the second sentence")
        if column not in aligned:
            raise InputError(
                f"Position {column} ({tokens[column]}) aligns with no position of the first "
                "sentence, so nothing can take its place. Choose another."
            )
    vectors = record_vectors(task, names)
    # Each position alone, then all together.
    groups = [*([column] for column in columns), columns]
    rows = []
    labels = []
    for name, head in places:
        rows.append(shares_of(task, vectors, name, axes[name], head, groups))
        labels.append(label_of(name, head))
    part = cast(Part, names[0].split(".")[0])
    return Map(
        name=NAME,
        source=SOURCE,
        part=part,
        kind="whole",
        layer=None,
        head=None,
        matrix=np.array(rows),
        row_tokens=tuple(labels),
        predicted_tokens=None,
        column_tokens=(*(tokens[column] for column in columns), EVERYTHING),
        num_source_columns=len(columns) if length == "S" else 0,
        is_signed=True,
        note=task.asked,
    )


def ask_about(
    pair_a: PairData, pair_b: PairData, why: str | int | None, other: str | None, row: int | None
) -> PairData:
    """Give B the translation of A with another word, if a word of A's is asked about.

    Raises:
        InputError: there is no such word, or the arguments contradict each other.
    """
    if why is None:
        if other is not None:
            raise InputError("other needs why: the word of the first answer. Give it, too.")
        return pair_b
    if row is not None:
        raise not_together("why", "row", "a word has its row")
    text = pair_a.tokenizer.decode_target(pair_a.target_ids)
    contrast = find_contrast(pair_a, text, str(why), other)
    return replace(pair_b, target_ids=contrast.other.target_ids)


def list_sites(sites: str | Iterable[str] | None) -> list[str]:
    """List sites that are given as one, as several, or not at all.

    Raises:
        InputError: the list is empty.
    """
    return ["encoder"] if sites is None else list_some("site", sites, "encoder.0")


def _warn_of_others(task: Patching) -> None:
    """Say that a map is about the first of several words in which translations differ."""
    first, second = (pair.target_ids for pair in (task.a, task.b))
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    count = sum(kind != "equal" for kind, *_ in matcher.get_opcodes())
    if count > 1:
        warnings.warn(
            f"The translations differ in {count} places, and the map is about the first: "
            f"{task.asked}. Name another one with why and other, or with row.",
            stacklevel=4,
        )


_OF_HEAD = re.compile(
    r"((?:encoder|decoder)\.\d+\.(?:self|cross))\.(\d{1,18}|\*)(\.\w+)?", re.ASCII
)


def expand_sites(pair: PairData, sites: Sequence[str]) -> list[tuple[str, int | None]]:
    """Name the arrays that sites mean: ``encoder`` and ``encoder.0`` are results of layers.

    Returns:
        The name of each array, and the head that is meant; None for all heads together.

    Raises:
        InputError: one does not exist.
    """
    known = [wanted.name for wanted in arrays_of(pair.model.config)]
    parts: tuple[Part, Part] = ("encoder", "decoder")
    states = {part: states_of(pair.model, part) for part in parts}
    short = {part: list(names) for part, names in states.items()} | {
        f"{part}.{layer}": [names[1 + layer]]
        for part, names in states.items()
        for layer in range(len(names) - 1)
    }
    found: list[tuple[str, int | None]] = []
    for site in sites:
        heads: Sequence[int | None] = [None]
        name = site
        if of_head := _OF_HEAD.fullmatch(site):
            # What a head hands on is its context.
            name = of_head[1] + (of_head[3] or ".context")
            is_one = of_head[2] != "*"
            heads = [int(of_head[2])] if is_one else range(pair.model.config.num_heads)
        if name not in short and name not in known:
            raise InputError(
                f"A site must be a layer such as encoder.0, or an array such as "
                f"encoder.0.self.value, but is {site!r}. {suggestion(site, [*short, *known])}"
            )
        found += [(each, head) for each in short.get(name, [name]) for head in heads]
    return found


def label_of(name: str, head: int | None) -> str:
    """Write an array, or one head of it: ``encoder.0.self.3.value``."""
    site, _, stage = name.rpartition(".")
    return name if head is None else f"{site}.{head}.{stage}"


def length_of(axes: Mapping[str, str], names: Sequence[str]) -> str:
    """Return the axis of positions that arrays have: of the source (S), or decoder rows (T).

    Raises:
        InputError: some have the one, some the other.
    """
    lengths = {axes[name].removeprefix("H")[0] for name in names}
    if len(lengths) > 1:
        raise InputError(
            "A map must be of source positions or of decoder rows, but the sites have both. Ask "
            "for them one after the other."
        )
    return lengths.pop()


def record_vectors(task: Patching, names: Sequence[str]) -> dict[str, Tensor]:
    """Run A with the common beginning of the translations, and keep arrays."""
    a = task.a
    pair = replace(a, target_ids=a.target_ids[: task.row + 1])
    places = [name.rpartition(".") for name in names]
    return pair.see({stage for *_, stage in places}, sites={site for site, *_ in places})


def shares_of(
    task: Patching,
    vectors: Mapping[str, Tensor],
    name: str,
    axes: str,
    head: int | None,
    groups: Iterable[Sequence[int]],
) -> list[float]:
    """Return the share that each group of positions restores.

    Args:
        task: the two sentences.
        vectors: arrays of A by name.
        name: of the array to patch.
        axes: its axes.
        head: patch only this head.
        groups: positions of B, each of which aligns with one of A.

    Raises:
        InputError: the array has no heads or not that one, or its columns do not align.
    """
    # A position of B, and the one of A that takes its place.
    pairs = {second: first for first, second in task.positions(axes.removeprefix("H")[0])}
    if head is not None:
        if not axes.startswith("H"):
            raise InputError(
                f"{name} has no heads, but {label_of(name, head)} was asked for. Leave it out."
            )
        check_number("head", head, task.b.model.config.num_heads, "this model")
    # Such an array has a column for each key, whose numbers mean nothing in another order.
    if len(axes) == 3 and axes[2] in "ST":
        lengths = len(task.a.source_ids), len(task.b.source_ids)
        if axes[2] == "S" and (lengths[0] != lengths[1] or len(task.sources) < lengths[1]):
            raise InputError(
                f"{name} has a column for each word, so it can be patched only between sentences "
                f"whose words all align, but these have {lengths[0]} and {lengths[1]} tokens. "
                "Patch query, key, value or context instead."
            )

    def index(places: Sequence[int]) -> tuple[object, ...]:
        if not axes.startswith("H"):
            return (list(places),)
        return (slice(None) if head is None else head, list(places))

    def share(places: Sequence[int]) -> float:
        return task.share(vectors, {name: (index([pairs[p] for p in places]), index(places))})

    return [share(group) for group in groups]


def _align(first: Sequence[str], second: Sequence[str]) -> Iterable[tuple[int, int]]:
    """Pair equal tokens in order, and tokens that stand in the place of each other.

    Where one stretch of tokens replaces another, tokens are paired from its end: the last pieces
    of two words, or of two phrases, stand at the same place.
    """
    # Without the heuristic for long texts, which ignores frequent tokens.
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    for kind, start, end, other_start, other_end in matcher.get_opcodes():
        if kind in ("equal", "replace"):
            count = min(end - start, other_end - other_start)
            ours = range(end - count, end)
            others = range(other_end - count, other_end)
            yield from zip(ours, others, strict=True)
