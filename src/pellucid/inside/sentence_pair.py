"""A sentence and its translation, which can be measured, changed and patched."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pellucid.arguments import checked
from pellucid.config import DecodingConfig
from pellucid.inside.ask import Ask
from pellucid.inside.changes.given_changes import GivenChanges
from pellucid.inside.changes.what_if import WhatIf, what_if
from pellucid.inside.measures.contrast import Contrast, find_contrast
from pellucid.inside.measures.integrated import Baseline
from pellucid.inside.measures.maps import Map
from pellucid.inside.measures.registry import measure
from pellucid.inside.pair import PairData
from pellucid.inside.patches.patching import patch
from pellucid.inside.patches.two_runs import Metric
from pellucid.inside.replayed_pair import replay
from pellucid.inside.traces import Trace


@dataclass(frozen=True, eq=False, repr=False)
class Pair(PairData):
    """A sentence and its translation with a model, as `Translator.pair` makes it.

    `PairData` explains the attributes, and lies below everything that measures a pair.
    """

    @checked
    def measure(
        self,
        name: str,
        head: str | None = None,
        *,
        steps: int | None = None,
        baseline: Baseline | None = None,
        changes: GivenChanges | None = None,
    ) -> Map:
        """Measure what each word contributes; see `pellucid.inside.measure`."""
        return measure(self, name, head, steps=steps, baseline=baseline, changes=changes)

    @checked
    def what_if(
        self,
        changes: GivenChanges = (),
        *,
        prefix: str = "",
        max_length: int | None = None,
        num_random: int = 0,
        seed: int = 1,
        search: DecodingConfig | None = None,
    ) -> WhatIf:
        """Translate again under changes; see `pellucid.inside.what_if`."""
        return what_if(
            self,
            changes,
            prefix=prefix,
            max_length=max_length,
            num_random=num_random,
            seed=seed,
            search=search,
        )

    @checked
    def why(self, word: str | int, other: str | None = None) -> Contrast:
        """Explain why the model wrote a word, and not another one.

        Args:
            word: a word of the translation, or its number, from 0.
            other: what might stand there instead, one word or several; the word that the model
                finds likeliest after the one that was written unless given.

        Returns:
            The two continuations. ``print`` shows which source words decide; ``measure`` measures
            them with another measure.

        Raises:
            InputError: there is no such word, or several; or the other one cannot be compared.
        """
        target = self.tokenizer.decode_target(self.target_ids)
        return find_contrast(self, target, str(word), other)

    @checked
    def patch(
        self,
        pair: PairData,
        sites: str | Iterable[str] | None = None,
        positions: Iterable[int] | None = None,
        *,
        why: str | int | None = None,
        other: str | None = None,
        row: int | None = None,
        metric: Metric | None = None,
        by_gradient: bool = False,
    ) -> Map:
        """Put vectors of another pair into this one; see `pellucid.inside.patch`.

        Args:
            pair: the one whose vectors are taken, of the same translator.
            sites: names of arrays, such as ``encoder.0.self.value``, layers, or paths.
            positions: of this pair's source, or decoder rows.
            why: a word of the first pair's translation to ask about.
            other: the word of the second answer.
            row: the decoder row to ask about.
            metric: a number of its logits to restore.
            by_gradient: approximate each share by a gradient.
        """
        return patch(
            pair,
            self,
            sites,
            positions,
            why=why,
            other=other,
            row=row,
            metric=metric,
            by_gradient=by_gradient,
        )

    @checked
    def look(self, ask: Ask | None = None) -> Trace:
        """Record the arrays of this pair; see `pellucid.inside.Ask`.

        They are those of the pair's own precision; `Translator.look` computes in float64.
        """
        return replay(self, ask)
