"""Heads through a training: the figures of their weights at every model that a run kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pellucid.arguments import checked
from pellucid.bundle import Bundle, load_bundle
from pellucid.corpora.example import Pronoun
from pellucid.decode.decoder import make_decoder
from pellucid.errors import DataError, InputError, InputFileNotFoundError
from pellucid.evaluation.word_links import GoldLinks, error_of_counts
from pellucid.inside.align.linked_units import words_of_pair
from pellucid.inside.heads.weight_figures import WEIGHT_FIGURES
from pellucid.inside.studies.head_study import ERRORS, StudyTable, choose_heads, name_figures
from pellucid.inside.studies.line_figures import PRONOUN_FIGURES, Spots, weights_and_lens
from pellucid.inside.studies.study_lines import Searcher, StudyLine, prepare_study_lines
from pellucid.inside.studies.study_page import MEANINGS as STUDIED
from pellucid.machine.devices import device_in_use
from pellucid.shapes import Brief
from pellucid.text.link_choices import CONVENTIONS

MEANINGS = {
    **STUDIED,
    "pronoun": "Weight of a pronoun's row on its antecedent.",
    "clause": "Largest weight on the antecedent of a row after the pronoun's.",
}
"""The meaning of each figure."""
SHOWN_STEPS = 7
"""Steps that a table to read has at most."""
LEAST_SHARE = 0.1
"""A head that changes less than this share of the most changing one has no middle of its change."""


@dataclass(frozen=True, eq=False, repr=False)
class HeadHistory(Brief):
    """Figures of heads through a training.

    Attributes:
        steps: of the models, from the first to the last; 0 is the untrained one.
        heads: their names.
        figures: those of a study that rest on weights; with gold links the alignment errors; with
            antecedents `PRONOUN_FIGURES`.
        values: ``(steps, heads, figures)``; NaN for a figure that a head cannot have.
        num_lines: the number of lines.
        left_out: a sentence about each other line.
    """

    steps: tuple[int, ...]
    heads: tuple[str, ...]
    figures: tuple[str, ...]
    values: np.ndarray
    num_lines: int
    left_out: tuple[str, ...]

    def table(self, figure: str) -> StudyTable:
        """Return one figure, a row for each head and a column for each step."""
        values = self.values[:, :, self.figures.index(figure)].T
        steps = tuple(map(str, self.steps))
        return StudyTable(figure, ("head", "step"), self.heads, steps, values)

    def half_steps(self, figure: str) -> list[int | None]:
        """Find the step from which each head's figure stays nearer its last value than its first.

        None for a head that hardly changes, compared with the others.
        """
        values = self.table(figure).values
        change = np.abs(values[:, -1] - values[:, 0])
        most = np.nanmax(change, initial=0.0)
        is_early = np.abs(values - values[:, :1]) < np.abs(values - values[:, -1:])
        # The last step that was still nearer to the beginning; from the next one on it stays.
        last = [int(row.nonzero()[0].max(initial=-1)) for row in is_early]
        return [
            self.steps[one + 1] if most and share >= LEAST_SHARE * most else None
            for one, share in zip(last, change, strict=True)
        ]

    def cells(self, figure: str) -> list[list[str]]:
        """Return one figure as a table to read: some steps, the highest last number first."""
        table = self.table(figure)
        half = self.half_steps(figure)
        last = len(self.steps) - 1
        # The first and the last step, and others at equal distances.
        places = sorted({round(last * one / (SHOWN_STEPS - 1)) for one in range(SHOWN_STEPS)})
        rows = [["head", *(f"step {self.steps[one]:,}" for one in places), "half of the change by"]]
        for row in np.argsort(-table.values[:, -1], kind="stable"):
            numbers = ["–" if np.isnan(one) else f"{one:.3f}" for one in table.values[row, places]]
            step = half[row]
            rows.append([self.heads[row], *numbers, "–" if step is None else f"{step:,}"])
        return rows

    def record(self) -> dict[str, Any]:
        """Return everything as it is written in JSON."""
        left_out = list(self.left_out)
        return {"lines": self.num_lines, "history": self.records(), "left_out": left_out}

    def records(self) -> list[dict[str, Any]]:
        """Return a dictionary for each step and head; None marks a missing figure."""
        found = []
        for step, rows in zip(self.steps, self.values, strict=True):
            for head, values in zip(self.heads, rows, strict=True):
                found.append({"step": step, "head": head, **name_figures(self.figures, values)})
        return found


def find_models(run: Path) -> list[tuple[int, Path]]:
    """Find the models that a run folder keeps, by step, the untrained one first.

    Raises:
        InputFileNotFoundError: there are fewer than two.
    """
    names = (path for part in ("checkpoints", "history") for path in (run / part).glob("step-*"))
    numbers = {path: path.name.removeprefix("step-") for path in names}
    found = {int(number): path for path, number in numbers.items() if number.isdecimal()}
    if (run / "untrained").is_dir():
        # A checkpoint of step 0 would be the same model.
        found.setdefault(0, run / "untrained")
    if len(found) < 2:
        raise InputFileNotFoundError(
            f"A history needs the models of two steps or more, but {run} keeps "
            f"{'only that of step ' + str(*found) if found else 'no models'}. Name the folder "
            "of another run, or train with --keep-every 100."
        )
    return sorted(found.items())


@checked
def follow_heads(
    run: str | Path,
    sources: Sequence[str],
    targets: Sequence[str] | None = None,
    *,
    golds: Sequence[GoldLinks] | None = None,
    antecedents: Sequence[Sequence[Pronoun]] | None = None,
    heads: Sequence[str] | None = None,
    on_step: Callable[[int, int], None] | None = None,
) -> HeadHistory:
    """Follow the heads through a run: the figures of their weights at every kept model.

    Args:
        run: a run folder with models of several steps.
        sources: the lines.
        targets: their translations; those of the last model unless given.
        golds: the right links of each pair.
        antecedents: the pronouns of each pair, by words between spaces.
        heads: such as ``encoder.*.self.*``; all unless given.
        on_step: called with the number of models done, and of all.

    Raises:
        InputFileNotFoundError: the folder keeps fewer than two models.
        InputError: the models differ in shape or vocabulary, or have no attention or not such a
            head; or no line can be studied.
        DataError: the texts differ in length.
        BundleError: a model is damaged.
    """
    models = find_models(Path(run))
    # The last model writes the targets and cuts the lines, for all.
    last = load_bundle(models[-1][1], device_in_use())
    chosen = choose_heads(last, heads)
    decoder = make_decoder([last.model], last.tokenizer)
    lines, left_out = prepare_study_lines(last, Searcher(last), decoder, sources, targets, golds)
    spots = None
    if antecedents is not None:
        if targets is None or len(antecedents) != len(sources):
            raise DataError(
                "There must be a target and a list of pronouns for each source, but there are "
                f"{len(targets or ())} targets and {len(antecedents)} lists for {len(sources)} "
                "sources. Give them line by line."
            )
        spots = [_find_spots(last, line, antecedents[line.number]) for line in lines]
    rows = []
    for done, (_, path) in enumerate(models):
        if on_step is not None:
            on_step(done, len(models))
        bundle = load_bundle(path, device_in_use())
        _check_same(bundle, last, lines, (path, models[-1][1]))
        found = weights_and_lens(bundle, chosen, lines, spots=spots)
        sums = np.array(found["sums"])
        counts = np.array(found["counts"])
        figures = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
        if golds is not None:
            # Self-attention has no links, and so no error.
            errors = np.full((len(chosen), len(CONVENTIONS)), np.nan)
            errors[[one.kind == "cross" for one in chosen]] = error_of_counts(found["links"])
            figures = np.hstack([figures, errors])
        rows.append(figures)
    names = (*WEIGHT_FIGURES, *(PRONOUN_FIGURES if spots else ()), *(ERRORS if golds else ()))
    steps = tuple(step for step, _ in models)
    return HeadHistory(
        steps, tuple(map(str, chosen)), names, np.stack(rows), len(lines), tuple(left_out)
    )


def _check_same(
    bundle: Bundle, last: Bundle, lines: Sequence[StudyLine], paths: tuple[Path, Path]
) -> None:
    """Make sure that two models read the lines as the same tokens, in the same shape."""
    # Two runs may lie in one folder, whose figures would not be of one model.
    is_same = bundle.config.model == last.config.model and all(
        bundle.tokenizer.encode_source(line.source) == line.ids[0]
        and bundle.tokenizer.decode_target(line.ids[1]) == last.tokenizer.decode_target(line.ids[1])
        for line in lines
    )
    if not is_same:
        raise InputError(
            "The models of a history must have one shape and one vocabulary, but {} and {} do not. "
            "Take the one that belongs to another run out of the folder.".format(*paths)
        )


def _find_spots(bundle: Bundle, line: StudyLine, pronouns: Sequence[Pronoun]) -> list[Spots]:
    """Find the rows of each pronoun of a line, and the positions of its antecedent."""
    words = words_of_pair(bundle.tokenizer, (line.source, line.target), line.ids, "spaces")
    source = words.source
    target = words.target

    def at(words: Sequence[range], word: int) -> list[int]:
        found = [place for place, owners in enumerate(words) if word in owners]
        if not found:
            raise DataError(
                f"Pronouns must be words of their line, but line {line.number + 1} has no word "
                f"{word}. Words count from 0."
            )
        return found

    return [
        {
            "encoder.self": (at(source, one.source), at(source, one.source_antecedent)),
            "decoder.cross": (at(target, one.target), at(source, one.source_antecedent)),
            # The decoder reads the start token first, so a token that was read is one further on.
            "decoder.self": (
                at(target, one.target),
                [place + 1 for place in at(target, one.target_antecedent)],
            ),
        }
        for one in pronouns
    ]
