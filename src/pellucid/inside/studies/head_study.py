"""A study of every head over a corpus: tables with named axes, computed in parts that are kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pellucid.arguments import checked, list_some, list_texts
from pellucid.attention.probe import Probe
from pellucid.bundle import Bundle, HasBundle, bundle_of
from pellucid.config.head_address import find_heads
from pellucid.decode.decoder import make_decoder
from pellucid.errors import InputError
from pellucid.evaluation.word_links import GoldLinks, error_of_counts
from pellucid.inside.ask import require_attention
from pellucid.inside.changes.cutting import change_model
from pellucid.inside.changes.given_changes import (
    BY_A_PROBE,
    GivenChanges,
    describe_probe,
    read_changes,
)
from pellucid.inside.changes.place import Place, all_heads
from pellucid.inside.heads.weight_figures import WEIGHT_FIGURES
from pellucid.inside.studies.kept_steps import Steps
from pellucid.inside.studies.line_figures import (
    RULES,
    measure_line,
    measures_of,
    weights_and_lens,
)
from pellucid.inside.studies.study_lines import (
    MOST_TELLING,
    Bleu,
    CutLines,
    Searcher,
    StudyLine,
    prepare_study_lines,
)
from pellucid.languages.codes import direction
from pellucid.shapes import Brief
from pellucid.terminal.grid import decimals_of, write_fixed
from pellucid.text.language_tokens import with_codes
from pellucid.text.link_choices import CONVENTIONS

CHUNK = 1000
"""Lines that are studied together; an interruption loses one head of so many."""

ERRORS = tuple(f"error_{convention}" for convention in CONVENTIONS)
CUTS = ("cut_log_probability", "cut_bleu", "cut_lines")
FIGURES = (*WEIGHT_FIGURES, *ERRORS, *CUTS)
"""The figures of a head: of its weights; the alignment error of its links by either convention;
and what its cut does to the log-probability of a line's target, to BLEU, and to how many lines."""

MEASURE_FIGURES = (*(f"error_{rule}" for rule in RULES), "occlusion", "milliseconds")


@dataclass(frozen=True, eq=False, repr=False)
class StudyTable(Brief):
    """Numbers with two named axes; NaN marks a missing one.

    Attributes:
        name: of the table.
        axes: the names of the rows' and the columns' axis.
        rows: the labels of the rows.
        columns: the labels of the columns.
        values: ``(rows, columns)``.
    """

    name: str
    axes: tuple[str, str]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: np.ndarray

    def _repr_html_(self) -> str:
        from pellucid.inside.show.static import static_table

        is_colored = self.axes[1] == "part"
        return static_table(
            self.values, self.rows, self.columns, f"{self.name}.", is_colored=is_colored
        )

    def column(self, label: str) -> np.ndarray:
        """Return the numbers of one column."""
        found: np.ndarray = self.values[:, self.columns.index(label)]
        return found

    def order(self, label: str) -> list[int]:
        """Return the numbers of the rows by one column, the smallest first."""
        order: list[int] = self.column(label).argsort(kind="stable").tolist()
        return order

    def cells(self, order: Sequence[int] | None = None) -> list[list[str]]:
        """Return the table to read, its heading first.

        Args:
            order: the numbers of the rows to take; all as they are unless given.
        """
        found = [[self.axes[0], *self.columns]]
        decimals = [decimals_of(column, 3) for column in self.values.T.tolist()]
        for index in range(len(self.rows)) if order is None else order:
            numbers = map(write_figure, self.values[index].tolist(), decimals)
            found.append([self.rows[index], *numbers])
        return found

    def records(self) -> list[dict[str, Any]]:
        """Return a dictionary for each row; None marks a missing number."""
        return [
            {self.axes[0]: row, **name_figures(self.columns, values)}
            for row, values in zip(self.rows, self.values, strict=True)
        ]


def name_figures(names: Sequence[str], values: np.ndarray) -> dict[str, float | None]:
    """Put names to a row of figures; None marks a missing one, which JSON has no number for."""
    numbers = [None if np.isnan(value) else value for value in values.tolist()]
    return dict(zip(names, numbers, strict=True))


def write_figure(value: float, decimals: int = 3) -> str:
    """Write a figure for a reader: a dash for a missing one."""
    return "–" if np.isnan(value) else write_fixed(value, decimals)


@dataclass(frozen=True, eq=False, repr=False)
class Study(Brief):
    """The result of a study.

    Attributes:
        heads: a row for each head, a column for each of `FIGURES`.
        lens: a row for each number of decoder layers that have run, with the share of target
            tokens that are the likeliest then; no rows for a recurrent model.
        measures: a row for each measure: the alignment error of its links by two rules, Kendall's
            correlation with occlusion, and the time for a line; no rows unless asked for.
        changed: for each head the lines, from 0, whose greedy translation changes without it.
        telling: for each head the lines whose target becomes least likely without it.
        bleu: of the unchanged model's greedy translations against the targets.
        num_lines: the number of lines studied.
        left_out: a sentence about each other line.
        notes: what this model does not have.
    """

    heads: StudyTable
    lens: StudyTable
    measures: StudyTable
    changed: Mapping[str, tuple[int, ...]]
    telling: Mapping[str, tuple[Mapping[str, Any], ...]]
    bleu: float
    num_lines: int
    left_out: tuple[str, ...]
    notes: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """Return everything as it is written in JSON."""
        more = {
            head: {"changed": list(self.changed[head]), "telling": list(self.telling[head])}
            for head in self.heads.rows
        }
        return {
            "lines": self.num_lines,
            "bleu": self.bleu,
            "heads": [one | more[one["head"]] for one in self.heads.records()],
            "lens": self.lens.records(),
            "measures": self.measures.records(),
            "left_out": list(self.left_out),
            "notes": list(self.notes),
        }


@checked
def study(
    model: Bundle | HasBundle,
    sources: Iterable[str],
    targets: Iterable[str] | None = None,
    *,
    golds: Iterable[GoldLinks] | None = None,
    heads: str | Iterable[str] | None = None,
    num_measured: int = 0,
    kept: Path | None = None,
    changes: GivenChanges | None = None,
    on_step: Callable[[str, int, int], None] | None = None,
    source_language: str | None = None,
    to: str | None = None,
) -> Study:
    """Study every head of a model over a corpus.

    Args:
        model: a translator, or its bundle.
        sources: the lines.
        targets: their translations; the model's own greedy ones unless given.
        golds: the right links of each pair of source and target.
        heads: such as ``decoder.1.cross.0`` or ``encoder.*.self.*``; all unless given.
        num_measured: the number of lines to measure with all measures, spread over the corpus.
        kept: a file that keeps what is done, so that the same call continues.
        changes: of the model, for all lines, as for `Translator.changed`. A head is then cut after
            them; measures that do not take them are left out.
        on_step: called with what comes next, the number of steps done, and of all steps.
        source_language: the language of the lines, for a model that must be told.
        to: the language of their translations, for a model that has several.

    Raises:
        InputError: the model has no attention or not such a head, no line can be studied, measures
            are asked for without gold links, a change cannot be made, or there is too little
            memory.
        DataError: the texts differ in length.
    """
    bundle = bundle_of(model)
    if num_measured and golds is None:
        raise InputError("Measures are compared with gold links, but these are missing. Give them.")
    chosen = choose_heads(bundle, heads)
    sources = list_texts("sources", sources)
    targets = None if targets is None else list_texts("targets", targets)
    golds = None if golds is None else list(golds)
    probe = None if changes is None else read_changes(changes, bundle.config.model)
    changed, under = change_model(bundle.model, bundle.tokenizer, probe)
    notes = _notes(bundle, probe)
    if kept is not None and BY_A_PROBE in " ".join(notes):
        raise InputError(
            "A file that keeps a study needs changes as text, so that the same ones continue it, "
            "but they are of a probe. Leave kept out."
        )
    bundle = replace(bundle, given=changed)
    if (language := direction(source_language, to)) is not None:
        sources = with_codes(bundle.tokenizer, language, sources)
    searcher = Searcher(bundle)
    decoder = make_decoder([bundle.model], bundle.tokenizer)
    if under is not None:
        decoder = decoder.under(under)
    lines, left_out = prepare_study_lines(bundle, searcher, decoder, sources, targets, golds)
    bleu = Bleu(bundle, lines)
    starts = range(0, len(lines), CHUNK)
    # Measures take long, so only some lines are measured, spread over the corpus.
    spread = np.linspace(0, len(lines) - 1, min(num_measured, len(lines))).astype(int).tolist()
    total = len(starts) * (1 + len(chosen)) + len(spread)
    steps = Steps(kept, _identify(bundle, lines, notes), total, on_step)
    parts = []
    for start in starts:
        places = range(start, min(start + CHUNK, len(lines)))
        cut_lines = CutLines(bundle, searcher, decoder, bleu, lines, places)
        some = [lines[place] for place in places]
        part = steps.take(
            # Weights are kept together for the heads that were asked for.
            f"{start} weights of {' '.join(map(str, chosen))}",
            partial(weights_and_lens, bundle, chosen, some, under=under),
        )
        cuts = {
            one: steps.take(f"{start} cut {one}", partial(cut_lines.cut, one)) for one in chosen
        }
        parts.append(part | {"cuts": cuts, "plain": cut_lines.counts.sum(axis=0)})
    measured = [
        steps.take(f"{place} measures", partial(measure_line, bundle, lines[place], under))
        for place in spread
    ]
    return Study(
        heads=_table_of_heads(chosen, parts, bleu, len(lines)),
        lens=_table_of_lens(parts),
        measures=_table_of_measures(measured),
        changed={
            str(head): tuple(number for part in parts for number in part["cuts"][head]["changed"])
            for head in chosen
        },
        telling={str(head): _most_telling(parts, head) for head in chosen},
        bleu=bleu.score(sum(part["plain"] for part in parts)),
        num_lines=len(lines),
        left_out=tuple(left_out),
        notes=notes,
    )


def _identify(bundle: Bundle, lines: Sequence[StudyLine], notes: Sequence[str]) -> str:
    """Hash everything that results depend on, apart from the heads."""
    # Not the heads: their results are kept one by one, so that others can be added.
    texts = [(one.source, one.ids, one.own, repr(one.gold)) for one in lines]
    # The changes are among the notes.
    about = [bundle.model_hash, CHUNK, texts, *notes]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def choose_heads(bundle: Bundle, heads: str | Iterable[str] | None) -> list[Place]:
    """List the heads to study, in the order of the model.

    Raises:
        InputError: the list is empty, or the model has no attention or not such a head.
    """
    config = bundle.config.model
    require_attention(config)
    asked = () if heads is None else list_some("head", heads, "decoder.1.cross.0")
    chosen = set(map(str, find_heads(asked, config)))
    return [head for head in all_heads(config) if str(head) in chosen]


def _table_of_heads(
    heads: Sequence[Place], parts: Sequence[Mapping[str, Any]], bleu: Bleu, num_lines: int
) -> StudyTable:
    values = np.full((len(heads), len(FIGURES)), np.nan)
    sums, counts, links = (
        np.sum([np.array(part[name], float) for part in parts], axis=0)
        for name in ("sums", "counts", "links")
    )
    # A figure that a head cannot have stays not a number.
    np.divide(sums, counts, out=values[:, : len(WEIGHT_FIGURES)], where=counts > 0)
    if links.size:
        is_cross = [head.kind == "cross" for head in heads]
        values[is_cross, len(WEIGHT_FIGURES) : -len(CUTS)] = error_of_counts(links)
    # Scores of sums of counts, since BLEU is not a mean over lines.
    plain = bleu.score(sum(part["plain"] for part in parts))
    for row, head in zip(values, heads, strict=True):
        cuts = [part["cuts"][head] for part in parts]
        row[-len(CUTS) :] = (
            sum(one["effect"] for one in cuts) / num_lines,
            bleu.score(np.sum([one["counts"] for one in cuts], axis=0)) - plain,
            sum(len(one["changed"]) for one in cuts),
        )
    return StudyTable("heads", ("head", "figure"), tuple(map(str, heads)), FIGURES, values)


def _table_of_lens(parts: Sequence[Mapping[str, Any]]) -> StudyTable:
    first = np.sum([part["first"] for part in parts], axis=0, dtype=float)
    tokens = sum(part["tokens"] for part in parts)
    rows = tuple(str(depth) for depth in range(len(first)))
    values = (first / tokens).reshape(-1, 1)
    return StudyTable("lens", ("layers", "figure"), rows, ("share_first",), values)


def _table_of_measures(measured: Sequence[Mapping[str, Any]]) -> StudyTable:
    names = list(measured[0]) if measured else []
    values = np.full((len(names), len(MEASURE_FIGURES)), np.nan)
    for row, name in zip(values, names, strict=True):
        ours = [one[name] for one in measured]
        row[: len(RULES)] = [
            error_of_counts(np.sum([one[rule] for one in ours], axis=0)) for rule in RULES
        ]
        orders = [one["order"] for one in ours if not np.isnan(one["order"])]
        row[-2:] = (
            np.mean(orders) if orders else np.nan,
            1000 * np.mean([one["seconds"] for one in ours]),
        )
    return StudyTable("measures", ("measure", "figure"), tuple(names), MEASURE_FIGURES, values)


def _most_telling(parts: Sequence[Mapping[str, Any]], head: Place) -> tuple[Mapping[str, Any], ...]:
    telling = [one for part in parts for one in part["cuts"][head]["telling"]]
    return tuple(sorted(telling, key=lambda one: one["effect"])[:MOST_TELLING])


def _notes(bundle: Bundle, probe: Probe | None) -> tuple[str, ...]:
    notes = [] if probe is None else [f"The model is changed: {describe_probe(probe)}."]
    if bundle.config.model.is_recurrent:
        notes.append(
            "A recurrent model has one head, and no layers that a lens could end it at; of the "
            f"measures it has {', '.join(measures_of(bundle))}."
        )
    return tuple(notes)
