"""The lines of a study: translated and scored by the whole model, and without each head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pellucid.attention.probe import Probe
from pellucid.bundle import Bundle
from pellucid.decode.constraints.build_request import RequestBuilder
from pellucid.decode.constraints.request import Constraints
from pellucid.decode.decoder import Decoder, make_decoder
from pellucid.errors import DataError, InputError
from pellucid.evaluation.form import Form
from pellucid.evaluation.statistics import Scoring, corpus_score, count_statistics
from pellucid.evaluation.word_links import GoldLinks
from pellucid.inside.align.alignment_maps import BATCH_TOKENS, groups_of
from pellucid.inside.changes.change import Change, CutHead
from pellucid.inside.changes.cutting import change_model
from pellucid.inside.changes.place import Place
from pellucid.inside.pair import check_memory, problem_of
from pellucid.text.language_tokens import code_problem
from pellucid.text.reading.lines import not_a_line
from pellucid.text.token_words import mark_unknown


@dataclass(frozen=True)
class StudyLine:
    """A line that can run through the model.

    Attributes:
        number: from 0.
        source: its text.
        target: the given translation, or the model's own.
        ids: of both, ending in ``</s>``.
        own: the model's own greedy translation.
        gold: the right links, if they are known.
    """

    number: int
    source: str
    target: str
    ids: tuple[list[int], list[int]]
    own: str
    gold: GoldLinks | None


class Searcher:
    """Translates and scores lines of one model, whatever decodes.

    Args:
        bundle: the model, with the lengths that its translations may have.
    """

    def __init__(self, bundle: Bundle) -> None:
        self._tokenizer = bundle.tokenizer
        # Greedy, so that a changed translation is due to the head and not to the beam.
        self._config = bundle.config.decoding.greedy()
        self._builder = RequestBuilder(bundle.tokenizer, [bundle.config.model])

    def translate(
        self, decoder: Decoder, sources: Sequence[tuple[str, list[int]]]
    ) -> list[tuple[str, list[int]]]:
        """Translate lines greedily: texts and ids."""
        requests = [
            self._builder.build(text, ids, Constraints(), self._config) for text, ids in sources
        ]
        # Under a change another precision may have to compute.
        precision = decoder.computes(self._config.precision)
        config = self._config.model_copy(update={"precision": precision})
        found = decoder.decode(requests, config, batch_tokens=BATCH_TOKENS)
        ids_of = [list(answer[0].ids) if answer else [] for answer in found]
        return [(self._tokenizer.decode_target(ids), ids) for ids in ids_of]

    def score(self, decoder: Decoder, lines: Sequence[StudyLine]) -> list[np.ndarray]:
        """Compute the log-probability of each target token of each line."""
        found: list[np.ndarray] = [np.zeros(0)] * len(lines)
        for group in groups_of([line.ids for line in lines]):
            pairs = [lines[index].ids for index in group]
            logs = decoder.score([one for one, _ in pairs], [other for _, other in pairs])
            for index, one in zip(group, logs, strict=True):
                found[index] = np.array(one)
        return found


def prepare_study_lines(
    bundle: Bundle,
    searcher: Searcher,
    decoder: Decoder,
    sources: Sequence[str],
    targets: Sequence[str] | None,
    golds: Sequence[GoldLinks] | None,
) -> tuple[list[StudyLine], list[str]]:
    """Cut lines into tokens, and translate them.

    Returns:
        The lines that can be studied, and a sentence about each of the others.

    Raises:
        DataError: texts differ in length.
        InputError: there are gold links without targets, no line can be studied, or there is too
            little memory.
    """
    if golds is not None and targets is None:
        raise InputError("Gold links need the targets whose words they join. Give the targets.")
    for name, given in (("targets", targets), ("gold links", golds)):
        if given is not None and len(given) != len(sources):
            raise DataError(
                f"There must be {name} for each of {len(sources)} sources, but there are "
                f"{len(given)}."
            )
    tokenizer = bundle.tokenizer
    problems = dict[int, str | None]()
    pairs: list[tuple[list[int], list[int]]] = []
    texts: list[tuple[str, str]] = []
    for number, source in enumerate(sources):
        target = "" if targets is None else targets[number]
        fault = not_a_line(source) or not_a_line(target)
        is_blank = not source.strip() or (targets is not None and not target.strip())
        if fault is None and is_blank:
            fault = "The line is empty. Write a sentence in it."
        source, target = tokenizer.masked_pair(source, target, words_only=golds is not None)
        source_ids: list[int] = []
        target_ids: list[int] = []
        if fault is None:
            source_ids = tokenizer.encode_source(source)
            target_ids = tokenizer.encode_translation(source, mark_unknown(tokenizer, target))
        fault = fault or code_problem(tokenizer, source)
        problems[number] = fault or problem_of(bundle.model, source_ids, target_ids)
        pairs.append((source_ids, target_ids))
        texts.append((source, target))
    usable = [number for number, problem in problems.items() if problem is None]
    # Before the first run, which may take minutes.
    _check_memory(bundle, [pairs[number] for number in usable])
    own = searcher.translate(decoder, [(texts[one][0], pairs[one][0]) for one in usable])
    lines = []
    for number, (text, own_ids) in zip(usable, own, strict=True):
        target_ids = own_ids if targets is None else pairs[number][1]
        # An empty answer has no token to score.
        if not target_ids:
            problems[number] = "The model writes nothing for it."
            continue
        target = text if targets is None else texts[number][1]
        gold = None if golds is None else golds[number]
        both = (pairs[number][0], target_ids)
        lines.append(StudyLine(number, texts[number][0], target, both, text, gold))
    left_out = [f"line {number + 1}: {why}" for number, why in problems.items() if why]
    if not lines:
        raise InputError(
            f"No line can be studied; {left_out[0] if left_out else 'no line was given.'}"
        )
    return lines, left_out


def _check_memory(bundle: Bundle, pairs: Sequence[tuple[list[int], list[int]]]) -> None:
    """Refuse lines whose weights do not fit into memory, before anything is computed."""
    config = bundle.config.model
    longest = max((len(ids) for pair in pairs for ids in pair), default=1)
    rows = max(1, min(len(pairs), BATCH_TOKENS // longest))
    # Stages of one attention in float32, and their figures in float64.
    stages = rows * config.num_heads * longest**2 * (5 * 4 + 4 * 8)
    weights = 3 * 4 * sum(one.numel() for one in bundle.model.parameters())
    check_memory("A study", stages + weights, "Leave out the longest lines.")


class Bleu:
    """BLEU of lines against their targets, from counts that add up over lines.

    Args:
        bundle: decides language and form.
        lines: all lines, whose targets decide how words are cut.
    """

    def __init__(self, bundle: Bundle, lines: Sequence[StudyLine]) -> None:
        self._form = Form.of_model(bundle.config.tokenizer)
        self._targets = self._form.apply([line.target for line in lines])
        scoring = Scoring(language=bundle.config.languages.target)
        self._metric = scoring.bleu(self._targets)

    def count(self, texts: Sequence[str], places: Sequence[int]) -> np.ndarray:
        """Count what BLEU needs of the lines at some places: a row for each."""
        targets = [self._targets[place] for place in places]
        return count_statistics(self._metric, self._form.apply(texts), [targets])

    def score(self, sums: np.ndarray) -> float:
        """Compute the score of counts that were added up."""
        return corpus_score(self._metric, sums)


MOST_TELLING = 5
"""The lines to show of each head: those that lose most without it."""


class CutLines:
    """Some lines, to be translated and scored without one head after another.

    Args:
        bundle: the model.
        searcher: translates and scores.
        decoder: of the unchanged model.
        bleu: compares with the targets of all lines.
        lines: all lines.
        places: those to look at, as indices.
    """

    def __init__(
        self,
        bundle: Bundle,
        searcher: Searcher,
        decoder: Decoder,
        bleu: Bleu,
        lines: Sequence[StudyLine],
        places: Sequence[int],
    ) -> None:
        self._bundle = bundle
        self._searcher = searcher
        self._decoder = decoder
        self._bleu = bleu
        self._places = places
        self._lines = [lines[place] for place in places]

    @cached_property
    def _logs(self) -> list[np.ndarray]:
        return self._searcher.score(self._decoder, self._lines)

    @cached_property
    def counts(self) -> np.ndarray:
        """What BLEU needs of each line's translation by the unchanged model."""
        return self._bleu.count([line.own for line in self._lines], self._places)

    def cut(self, head: Place) -> dict[str, Any]:
        """Translate and score the lines without a head.

        Returns:
            The sum of the ``effect`` on the log-probability of the targets, sums of ``counts`` for
            BLEU, the numbers of the ``changed`` lines, and the most ``telling`` ones.
        """
        under = self._decoder.change
        changes: list[Change | Probe] = [CutHead(head)]
        if under is not None:
            changes = [under.probe.probe, *changes]
        model, change = change_model(self._bundle.model, self._bundle.tokenizer, changes)
        decoder = make_decoder([model], self._bundle.tokenizer)
        if change is not None:
            decoder = self._decoder.under(change)
        sources = [(line.source, line.ids[0]) for line in self._lines]
        # Translated and scored: the first shows whether anything changes, the second how much.
        texts = [text for text, _ in self._searcher.translate(decoder, sources)]
        logs = self._searcher.score(decoder, self._lines)
        falls = [one - other for one, other in zip(logs, self._logs, strict=True)]
        effects = np.array([fall.sum() for fall in falls])
        # Only the lines that change need their counts again.
        rows = self.counts.copy()
        changed = [i for i, line in enumerate(self._lines) if texts[i] != line.own]
        if changed:
            places = [self._places[i] for i in changed]
            rows[changed] = self._bleu.count([texts[i] for i in changed], places)
        # A model without a head may overflow on a line; such a line tells nothing.
        lowest = [i for i in effects.argsort(kind="stable") if np.isfinite(effects[i])]
        return {
            "effect": float(effects.sum()),
            "counts": rows.sum(axis=0).tolist(),
            "changed": [self._lines[i].number for i in changed],
            "telling": [self._tell(i, texts[i], falls[i]) for i in lowest[:MOST_TELLING]],
        }

    def _tell(self, index: int, text: str, fall: np.ndarray) -> dict[str, Any]:
        line = self._lines[index]
        worst = int(fall.argmin())
        return {
            "line": line.number,
            "source": line.source,
            "target": line.target,
            "own": line.own,
            "cut": text,
            "effect": float(fall.sum()),
            "token": self._bundle.tokenizer.target_tokens(line.ids[1])[worst],
            "token_effect": float(fall[worst]),
        }
