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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import cast

import numpy as np
import torch
from torch import Tensor

from pellucid.arguments import checked, warn_caller
from pellucid.config.head_address import Part
from pellucid.errors import InputError, not_together
from pellucid.inside.ask import arrays_of, check_number
from pellucid.inside.measures.contrast import find_contrast
from pellucid.inside.measures.maps import Map
from pellucid.inside.pair import PairData
from pellucid.inside.patches.patched_places import (
    PatchedPlace,
    expand_sites,
    length_of,
    list_sites,
    way_of,
)
from pellucid.inside.patches.two_runs import Metric, Patching

SOURCES = {
    "patching": "Vig et al. 2020, section 3; Meng et al. 2022, section 2.1",
    "path-patching": "Wang et al. 2023, section 3.1 and appendix B; Goldowsky-Dill et al. 2023",
    "attribution-patching": "Nanda 2023; Syed et al. 2023, section 3",
    "causal-tracing": "Meng et al. 2022, section 2.1",
}
"""What a patch is called, with its papers."""

EVERYTHING = "(all)"
"""The last column: all positions at once."""


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
    by_gradient: bool = False,
) -> Map:
    """Patch every vector of some arrays, one position at a time, and all positions together.

    Args:
        pair_a: a source with its translation, whose vectors are taken.
        pair_b: another source with its translation, which gets them. The first token in which the
            translations differ is the answer unless one of the following names another.
        sites: names of arrays as in a trace, such as ``encoder.0.self.value``, or of one head,
            ``encoder.0.self.3.value``, without a stage its context; ``encoder.0`` means the result
            of that layer, ``encoder`` the results of all, and ``*`` stands for all of a number. By
            default ``encoder``. With ``>`` a path: ``encoder.0.self.3 > decoder.*.cross.value``
            changes only what these readers read of the head.
        positions: of B's source, or decoder rows; by default all that align with one of A's.
        why: a word of A's translation to ask about, or its number; B then reads what is before it.
        other: the word of the second answer; by default as for `Pair.why`.
        row: the decoder row to ask about.
        metric: a number of that row's logits, ``logits_V``, in the place of the difference of two
            of them; the row is then the last of A's translation if both are the same.
        by_gradient: approximate each share by a gradient (attribution patching): two runs for
            each array instead of one for each vector.

    Returns:
        A map: a row for each array (and head), a column for each of these positions and one for
        all of them together.

    Raises:
        InputError: an array, a position or a head does not exist, the sentences do not align, or
            the answers do not differ.
    """
    # Names are looked up before anything is run.
    places = find_places(Patching(pair_a, pair_b, by_gradient=by_gradient), sites)
    pair_b = ask_about(pair_a, pair_b, why, other, row)
    task = Patching(pair_a, pair_b, row, metric, by_gradient)
    if pair_a.model is not pair_b.model:
        raise InputError("Both sentences must be read by one model, but there are two.")
    task.preferences  # noqa: B018 - refuses pairs without a difference before anything is run
    if why is None and row is None and metric is None:
        _warn_of_others(task)
    return patched_map(task, places, positions)


def find_places(task: Patching, sites: str | Iterable[str] | None) -> list[PatchedPlace]:
    """Look up the places to patch.

    Raises:
        InputError: one does not exist, or a path is to be approximated by a gradient.
    """
    places = expand_sites(task.b, list_sites(sites))
    if task.by_gradient and any(place.readers for place in places):
        raise not_together("by_gradient", "a path", "a gradient goes every way at once")
    return places


def patched_map(
    task: Patching, places: Sequence[PatchedPlace], positions: Iterable[int] | None
) -> Map:
    """Patch each place at each position, and at all together.

    Raises:
        InputError: a position does not exist or aligns with none, or places do not go together.
    """
    pair_b = task.b
    axes = {wanted.name: wanted.axes for wanted in arrays_of(pair_b.model.config)}
    length = length_of(axes, places)
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
    vectors = record_vectors(task, places)
    # Each position alone, then all together.
    groups = [*([column] for column in columns), columns]
    rows = [shares_of(task, vectors, place, axes[place.array.name], groups) for place in places]
    name = name_of_way(task, places)
    way = way_of(places)
    # A title has the readers that are the same in every row.
    labels = [str(place.array if way else place) for place in places]
    return Map(
        name=name,
        source=SOURCES[name],
        part=cast(Part, places[0].array.name.split(".")[0]),
        kind="whole",
        layer=None,
        head=None,
        matrix=np.array(rows),
        row_tokens=tuple(labels),
        predicted_tokens=None,
        column_tokens=(*(tokens[column] for column in columns), EVERYTHING),
        num_source_columns=len(columns) if length == "S" else 0,
        is_signed=True,
        note=f"{task.asked}{way}",
    )


def name_of_way(task: Patching, places: Sequence[PatchedPlace]) -> str:
    """Name the way to patch, as in `SOURCES`."""
    if any(place.readers for place in places):
        return "path-patching"
    return "attribution-patching" if task.by_gradient else "patching"


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


def _warn_of_others(task: Patching) -> None:
    """Say that a map is about the first of several words in which translations differ."""
    first, second = (pair.target_ids for pair in (task.a, task.b))
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    count = sum(kind != "equal" for kind, *_ in matcher.get_opcodes())
    if count > 1:
        warn_caller(
            f"The translations differ in {count} places, and the map is about the first: "
            f"{task.asked}. Ask about another word or row, too."
        )


def record_vectors(task: Patching, patched: Sequence[PatchedPlace]) -> dict[str, Tensor]:
    """Run A with the common beginning of the translations, and keep arrays."""
    a = task.a
    pair = replace(a, target_ids=a.target_ids[: task.row + 1])
    places = [place.array.name.rpartition(".") for place in patched]
    return pair.see({stage for *_, stage in places}, sites={site for site, *_ in places})


def shares_of(
    task: Patching,
    vectors: Mapping[str, Tensor],
    place: PatchedPlace,
    axes: str,
    groups: Iterable[Sequence[int]],
) -> list[float]:
    """Return the share that each group of positions restores.

    Args:
        task: the two sentences.
        vectors: arrays of A by name.
        place: what to patch.
        axes: those of its array.
        groups: positions of B, each of which aligns with one of A.

    Raises:
        InputError: the array has no heads or not that one, or its columns do not align.
    """
    name, head = place.array
    # A position of B, and the one of A that takes its place.
    pairs = {second: first for first, second in task.positions(axes.removeprefix("H")[0])}
    if head is not None:
        if not axes.startswith("H"):
            raise InputError(f"{name} has no heads, but {place.array} was asked for. Leave it out.")
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

    where = [{name: (index([pairs[one] for one in some]), index(some))} for some in groups]
    if place.readers:
        return [task.share(vectors, one, place.readers) for one in where]
    return task.shares(vectors, where)
