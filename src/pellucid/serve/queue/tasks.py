"""Work on texts that requests share: translation and scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pellucid.serve.models import Options, ServedModel

if TYPE_CHECKING:
    from pellucid.translate.preparing import LineConstraints
    from pellucid.translate.results import Scored, Translation

CHARACTERS_A_TOKEN = 4

MOST_DOUBTFUL = 16
"""Texts of one call whose attention `Translator.translate` looks at, if they are doubtful. Calls
with more are repeated in parts, so that what is noted does not depend on the other texts."""

DOUBTFUL = -1.0
"""A translation is doubtful if the mean log-probability of its tokens is below this."""


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text without cutting it, which takes too long for the event loop."""
    return 2 + max(len(text) // CHARACTERS_A_TOKEN, text.count(" "))


@dataclass(frozen=True)
class Text:
    """A text to translate.

    Attributes:
        text: the text, of one line or several.
        constraints: what its translation may and must contain.
    """

    text: str
    constraints: LineConstraints


@dataclass(frozen=True)
class Translate:
    """Translation with the same model and options.

    Attributes:
        model: the model.
        options: fields of the decoding options.
        treatment: further arguments of `Translator.translate`.
        align: the units, the layer and the head to link words by; None for no links.
    """

    model: ServedModel
    options: Options
    treatment: tuple[tuple[str, Any], ...] = ()
    align: tuple[Any, ...] | None = None

    def cost(self, item: Text) -> int:
        """Estimate source tokens times hypotheses."""
        options = dict(self.options)
        config = self.model.translator.decoding
        beam = int(options.get("beam", config.beam))
        count = int(options.get("n_best", config.n_best))
        return estimate_tokens(item.text) * max(beam, count)

    def run(self, items: Sequence[Text]) -> list[Translation]:
        """Translate some texts.

        Raises:
            InputError: the options are impossible.
        """
        found = self._translate(items)
        doubtful = [place for place, one in enumerate(found) if _is_doubtful(one)]
        num_parts = sum(max(1, len(found[place].best.parts)) for place in doubtful)
        if num_parts > MOST_DOUBTFUL:
            for place in doubtful:
                (found[place],) = self._translate([items[place]])
        return found

    def _translate(self, items: Sequence[Text]) -> list[Translation]:
        align = False if self.align is None else self.model.aligner(*self.align)
        return self.model.translator.translate(
            [item.text for item in items],
            constraints=[item.constraints for item in items],
            align=align,
            **dict(self.treatment),
            **dict(self.options),
        )


@dataclass(frozen=True)
class Score:
    """Log-probabilities of given translations with the same model.

    Attributes:
        model: the model.
        to: the language whose code every source gets, or None.
    """

    model: ServedModel
    to: str | None = None

    def cost(self, item: tuple[str, str]) -> int:
        """Estimate the tokens of both sides."""
        return sum(map(estimate_tokens, item))

    def run(self, items: Sequence[tuple[str, str]]) -> list[Scored]:
        """Score some pairs of a source and a target.

        Raises:
            InputError: the model has no such code.
        """
        sources, targets = [source for source, _ in items], [target for _, target in items]
        return self.model.translator.score(sources, targets, to=self.to)


def _is_doubtful(translation: Translation) -> bool:
    if translation.error is not None:
        return False
    parts = translation.best.parts or (translation.best,)
    return any(
        sum(part.token_log_probabilities) < DOUBTFUL * len(part.token_log_probabilities)
        for part in parts
    )
