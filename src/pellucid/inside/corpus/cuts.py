"""The effect of cutting each head on the lines of a corpus."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pellucid.bundle import Bundle
from pellucid.decode.decoder import Decoder
from pellucid.inside.changes.change import CutHead
from pellucid.inside.changes.cutting import change_model
from pellucid.inside.changes.place import Place
from pellucid.inside.corpus.lines import Bleu, Line, Searcher

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
        lines: Sequence[Line],
        places: Sequence[int],
    ) -> None:
        self._bundle, self._searcher, self._decoder, self._bleu = bundle, searcher, decoder, bleu
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
        model, tokenizer = self._bundle.model, self._bundle.tokenizer
        _, decoder = change_model(model, tokenizer, CutHead(head))
        sources = [(line.source, line.ids[0]) for line in self._lines]
        texts = [text for text, _ in self._searcher.translate(decoder, sources)]
        logs = self._searcher.score(decoder, self._lines)
        falls = [one - other for one, other in zip(logs, self._logs, strict=True)]
        effects = np.array([fall.sum() for fall in falls])
        rows = self.counts.copy()
        changed = [i for i, line in enumerate(self._lines) if texts[i] != line.own]
        if changed:
            places = [self._places[i] for i in changed]
            rows[changed] = self._bleu.count([texts[i] for i in changed], places)
        lowest = effects.argsort(kind="stable")[:MOST_TELLING].tolist()
        return {
            "effect": float(effects.sum()),
            "counts": rows.sum(axis=0).tolist(),
            "changed": [self._lines[i].number for i in changed],
            "telling": [self._tell(i, texts[i], falls[i]) for i in lowest],
        }

    def _tell(self, index: int, text: str, fall: np.ndarray) -> dict[str, Any]:
        """Describe a line that a head matters for."""
        line, worst = self._lines[index], int(fall.argmin())
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
