r"""Patching over a corpus of minimal pairs: where the difference of two sentences is, on average.

The columns of one pair are its words. Those of a corpus are parts that every pair has: the words
that differ, words with a name such as *it*, all others, and everything together. The number of a
part is the restored difference of all pairs as a share of their whole difference,

$$\frac{\sum_i s_i\,(d_i(\text{B patched}) - d_i(\text{B}))}
{\sum_i |d_i(\text{A}) - d_i(\text{B})|}$$

with $s_i$ the sign of $d_i(\text{A}) - d_i(\text{B})$: the mean of the pairs' shares, each weighted
by its difference, so that pairs that hardly differ do not decide. Its interval holds 95 % of 1,000
bootstrap samples of pairs.

Source:
    `pellucid.inside.patches.patching`; Efron and Tibshirani 1993, "An Introduction to the
    Bootstrap", chapter 13.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from pellucid.arguments import checked, list_texts
from pellucid.bundle import Bundle, HasBundle, bundle_of
from pellucid.decode.decoder import make_decoder
from pellucid.errors import DataError, InputError
from pellucid.evaluation.resampling import draw_resamples
from pellucid.inside.ask import arrays_of
from pellucid.inside.changes.written_changes import MARKS
from pellucid.inside.pair import PairData
from pellucid.inside.patches.patched_places import PatchedPlace, length_of, list_sites
from pellucid.inside.patches.patching import (
    EVERYTHING,
    ask_about,
    find_places,
    name_of_way,
    record_vectors,
    shares_of,
)
from pellucid.inside.patches.two_runs import Metric, Patching
from pellucid.inside.studies.head_study import StudyTable
from pellucid.inside.studies.study_lines import Searcher, prepare_study_lines
from pellucid.shapes import Brief
from pellucid.terminal.grid import write_fixed
from pellucid.text.token_words import is_punctuation, source_pieces, words_of_tokens

CHANGED = "(changed)"
OTHERS = "(others)"
LAST_ROW = "(last row)"
EARLIER = "(earlier rows)"
RESAMPLES = 1000


@dataclass(frozen=True, eq=False, repr=False)
class PatchedCorpus(Brief):
    """Shares over pairs of sentences, each with its interval.

    Attributes:
        name: the way to patch, as that of a map: ``attribution-patching``.
        shares: a row for each array (and head), a column for each part of the sentences; not a
            number for a part that no pair has.
        low: the lower ends of the intervals.
        high: their upper ends.
        counts: the pairs that have each part, in the order of the columns.
        num_pairs: the number of pairs.
        left_out: a sentence about each other pair.
    """

    name: str
    shares: StudyTable
    low: StudyTable
    high: StudyTable
    counts: tuple[int, ...]
    num_pairs: int
    left_out: tuple[str, ...]

    def records(self) -> list[dict[str, Any]]:
        """Return a dictionary for each number."""
        tables = {"share": self.shares.values, "low": self.low.values, "high": self.high.values}
        found = []
        for row, site in enumerate(self.shares.rows):
            for column, part in enumerate(self.shares.columns):
                count = self.counts[column]
                record: dict[str, Any] = {"site": site, "part": part, "pairs": count}
                for name, values in tables.items():
                    record[name] = float(values[row, column]) if count else None
                found.append(record)
        return found

    def record(self) -> dict[str, Any]:
        """Return everything as it is written in JSON."""
        left_out = list(self.left_out)
        return {
            "name": self.name,
            "pairs": self.num_pairs,
            "shares": self.records(),
            "left_out": left_out,
        }

    def cells(self) -> list[list[str]]:
        """Return a table to read."""
        found = iter(self.records())
        rows = [["", *self.shares.columns]]
        for site in self.shares.rows:
            cells = [site]
            for _ in self.shares.columns:
                one = next(found)
                if not one["pairs"]:
                    cells.append("–")
                    continue
                share, low, high = (write_fixed(one[name], 2) for name in ("share", "low", "high"))
                cells.append(f"{share} [{low}, {high}]")
            rows.append(cells)
        return rows


@checked
@torch.inference_mode()
def patch_corpus(
    model: Bundle | HasBundle,
    sources: Iterable[str],
    targets: Iterable[str] | None = None,
    *,
    sites: str | Iterable[str] | None = None,
    words: str | Iterable[str] = (),
    why: str | int | Iterable[str | int] | None = None,
    other: str | Iterable[str] | None = None,
    row: int | None = None,
    metric: Metric | None = None,
    by_gradient: bool = False,
    seed: int = 1,
    on_step: Callable[[int, int], None] | None = None,
) -> PatchedCorpus:
    """Patch the second sentence of each pair with vectors of the first.

    Args:
        model: a translator, or its bundle.
        sources: lines 2i and 2i + 1, from 0, are a pair.
        targets: their translations, which decide the two answers; the model's own unless given.
        sites: as for `patch`, all of the source or all of decoder rows; by default ``encoder``.
        words: words of the source that each get a column, for all words of that spelling.
        why: a word of each first translation to ask about, as for `patch`: one for all pairs, or
            one for each.
        other: the word of the second answer, likewise.
        row: the decoder row to ask about.
        metric: a number of its logits, as for `patch`.
        by_gradient: approximate each share by a gradient, as for `patch`.
        seed: of the bootstrap.
        on_step: called with the number of pairs done, and of all.

    Raises:
        InputError: an array or a head does not exist, or no pair can be patched.
        DataError: a line is without partner, or the texts differ in length.
    """
    bundle = bundle_of(model)
    sources = list_texts("sources", sources)
    targets = None if targets is None else list_texts("targets", targets)
    words = [words] if isinstance(words, str) else list(words)
    asked_sites = list_sites(sites)
    if len(sources) % 2:
        raise DataError(
            f"Lines to patch must come in pairs, but there are {len(sources)}. Add the missing one."
        )
    num_pairs = len(sources) // 2
    whys = _of_each("why", why, num_pairs)
    others = _of_each("other", other, num_pairs)
    decoder = make_decoder([bundle.model], bundle.tokenizer)
    lines, faults = prepare_study_lines(bundle, Searcher(bundle), decoder, sources, targets, None)
    usable = {line.number: line for line in lines}
    axes = {wanted.name: wanted.axes for wanted in arrays_of(bundle.config.model)}
    found: list[_PatchedPair] = []
    left_out = list(faults)
    for pair in range(num_pairs):
        if on_step is not None:
            on_step(pair, num_pairs)
        number = 2 * pair
        # The fault of either line is in the list already.
        if not {number, number + 1} <= usable.keys():
            continue
        # In double precision: shares divide by small differences.
        a, b = (
            PairData(bundle.exact_model, bundle.tokenizer, tuple(source), tuple(target))
            for source, target in (usable[one].ids for one in (number, number + 1))
        )
        places = find_places(Patching(a, b, by_gradient=by_gradient), asked_sites)
        try:
            b = ask_about(a, b, whys[pair], others[pair], row)
            task = Patching(a, b, row, metric, by_gradient)
            first, second = task.preferences
            length = length_of(axes, places)
            parts = _parts(task, bundle, sources[number + 1], words, length)
        # Such a pair, whose answers do not differ for instance, does not end the study.
        except InputError as error:
            left_out.append(f"lines {number + 1} and {number + 2}: {error}")
            continue
        shares = _shares(task, axes, places, parts)
        labels = tuple(map(str, places))
        name = name_of_way(task, places)
        found.append(_PatchedPair(name, shares, abs(first - second), labels, tuple(parts)))
    return _summarize(found, left_out, seed)


class _PatchedPair(NamedTuple):
    """The shares of one pair.

    Attributes:
        name: the way to patch, the same for all pairs.
        shares: a row for each array (and head), a column for each part of the sentence.
        weight: a pair whose sentences hardly differ in their preferences says little about shares.
        rows: the names of the arrays, which all pairs have.
        columns: those of the parts, likewise.
    """

    name: str
    shares: np.ndarray
    weight: float
    rows: tuple[str, ...]
    columns: tuple[str, ...]


def _shares(
    task: Patching,
    axes: Mapping[str, str],
    places: Sequence[PatchedPlace],
    parts: Mapping[str, Sequence[int]],
) -> np.ndarray:
    """Compute the share that each part restores in each array (and head)."""
    vectors = record_vectors(task, places)
    found = np.full((len(places), len(parts)), np.nan)
    # A pair without such a part has no number there, rather than 0.
    has_part = [bool(positions) for positions in parts.values()]
    groups = [positions for positions in parts.values() if positions]
    for shares, place in zip(found, places, strict=True):
        shares[has_part] = shares_of(task, vectors, place, axes[place.array.name], groups)
    return found


def _summarize(pairs: Sequence[_PatchedPair], left_out: Sequence[str], seed: int) -> PatchedCorpus:
    """Join the pairs in one table of shares, with their intervals.

    Raises:
        InputError: there are none.
    """
    if not pairs:
        raise InputError(
            f"No pair can be patched; {left_out[0] if left_out else 'it has no lines.'}"
        )
    shares = np.stack([one.shares for one in pairs])
    estimates = _estimate(shares, np.array([one.weight for one in pairs]), seed)
    shown, low, high = (
        StudyTable(name, ("site", "part"), pairs[-1].rows, pairs[-1].columns, values)
        for name, values in zip(("shares", "low", "high"), estimates, strict=True)
    )
    counts = (~np.isnan(shares[:, 0])).sum(axis=0).tolist()
    return PatchedCorpus(
        pairs[-1].name, shown, low, high, tuple(counts), len(pairs), tuple(left_out)
    )


def _of_each(name: str, given: Any, count: int) -> list[Any]:
    """Repeat what is given for all pairs, or list what is given for each.

    Raises:
        DataError: they are not as many as pairs.
    """
    if given is None or isinstance(given, str | int):
        return [given] * count
    found = list(given)
    if len(found) != count:
        raise DataError(
            f"{name} must be one for each of {count} pairs, but there are {len(found)}. Give one "
            "for all, or as many."
        )
    return found


def _parts(
    task: Patching, bundle: Bundle, text: str, words: Sequence[str], length: str
) -> dict[str, list[int]]:
    """Name the parts of the second sentence, each with its positions that align with the first's.

    Raises:
        InputError: words are named for decoder rows.
    """
    aligned = task.positions(length)
    if length == "T":
        if words:
            raise InputError("Words of the source have no decoder rows. Leave the words out.")
        *earlier, last = [second for _, second in aligned]
        return {LAST_ROW: [last], EARLIER: earlier, EVERYTHING: [*earlier, last]}
    tokens = task.a.source_tokens, task.b.source_tokens
    changed = [j for i, j in aligned if tokens[0][i] != tokens[1][j]]
    owners = words_of_tokens(bundle.tokenizer, "source", text, task.b.source_ids)
    pieces = [piece.strip(MARKS) for piece in source_pieces(bundle.tokenizer, text)]
    left = [j for _, j in aligned if j not in changed]
    named = [
        # A mark belongs to the word before it only for links.
        set() if is_punctuation(token) else {pieces[owner] for owner in words_of_token}
        for token, words_of_token in zip(tokens[1], [*owners, range(0)], strict=True)
    ]
    parts = {CHANGED: changed}
    for word in words:
        parts[word] = [j for j in left if word in named[j]]
        left = [j for j in left if j not in parts[word]]
    return {**parts, OTHERS: left, EVERYTHING: [j for _, j in aligned]}


def _estimate(
    shares: np.ndarray, weights: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute weighted means over pairs, and the ends of their intervals.

    Args:
        shares: ``(pairs, rows, columns)``; NaN if a pair lacks the part.
        weights: of the pairs.
        seed: of the bootstrap.
    """
    is_there = ~np.isnan(shares)
    whole = weights[:, None, None] * is_there
    # The weight of a missing share is 0 already.
    restored = whole * np.nan_to_num(shares)

    def mean(counts: np.ndarray) -> np.ndarray:
        total = np.tensordot(counts, whole, 1)
        found: np.ndarray = np.divide(
            np.tensordot(counts, restored, 1),
            total,
            out=np.full_like(total, np.nan),
            where=total > 0,
        )
        return found

    samples = np.stack([mean(drawn) for drawn in draw_resamples(len(weights), RESAMPLES, seed)])
    has_any = is_there.any(axis=0)
    ends = np.full((2, *has_any.shape), np.nan)
    ends[:, has_any] = np.nanpercentile(samples[:, has_any], (2.5, 97.5), axis=0)
    return mean(np.ones(len(weights))), ends[0], ends[1]
