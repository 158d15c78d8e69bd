"""Work on texts that requests share: translation and scores."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pellucid.decode.constraints.request import Constraints, LineConstraints
from pellucid.serve.answers.responses import about
from pellucid.serve.models import Options, ServedModel
from pellucid.text.language_tokens import with_codes
from pellucid.translate.judging import DOUBTFUL, MOST_LINKED, MOST_REPLAYED

if TYPE_CHECKING:
    from pellucid.config import DecodingConfig
    from pellucid.inside.align.linked_units import Aligned
    from pellucid.text.link_choices import UnitRule
    from pellucid.translate.results import Scored, TranslatedHypothesis, Translation

CHARACTERS_A_TOKEN = 4

# Characters of scripts that write no spaces between words, and signs: about a token each.
_DENSE = re.compile("[\u0e00-\u109f\u1100-\u11ff\u1780-\u17ff\u1950-\u1aff\u2e80-\U0010ffff]")


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text without cutting it, which takes too long for the event loop."""
    dense = 0 if text.isascii() else len(_DENSE.findall(text))
    others = (len(text) - dense) // CHARACTERS_A_TOKEN
    return 2 * count_units(text) + max(dense + others, len(text.split()))


def count_units(text: str) -> int:
    """Count the lines of a text that are translated one by one; at least one."""
    return max(1, sum(map(bool, map(str.strip, text.split("\n")))))


CHANGED_STEPS = 8
"""Factor by which a step is slower under a probe of the decoder."""


def estimate_search(text: str, config: DecodingConfig, longest: int, *, retry: bool = False) -> int:
    """Estimate the positions that a search computes: hypotheses times the longer of both sides.

    Args:
        text: the text.
        config: the options.
        longest: the most tokens that the model writes in a line.
        retry: True if translations that repeat themselves are searched for again.
    """
    lines = count_units(text)
    source = estimate_tokens(text) / lines
    most = config.max_length or config.max_length_ratio * source + config.max_length_offset
    target = max(source, config.min_length, config.min_length_ratio * source)
    # Otherwise translations are about as long as their sources; the estimate need not be right,
    # since long work gives way whatever it was estimated at.
    if config.sample or config.stopping == "never":  # nothing else ends it
        target = most
    width = config.n_best if config.sample else config.beam
    if config.alternatives:
        # Each alternative has its own beam.
        width *= config.n_best
    width += max(4, config.beam) * retry
    return math.ceil(lines * width * max(source, min(target, most, longest)))


@dataclass(frozen=True)
class Text:
    """A text to translate.

    Attributes:
        text: the text, of one line or several.
        constraints: what its translation may and must contain.
    """

    text: str
    constraints: LineConstraints = field(default_factory=Constraints)


@dataclass(frozen=True)
class Translate:
    """Translation with the same model and options.

    Attributes:
        model: the model.
        options: fields of the decoding options.
        treatment: further arguments of `Translator.translate`.
        align: the units, the layer and the head to link words by; None for no links.
        changes: of the model.
    """

    model: ServedModel
    options: Options
    treatment: tuple[tuple[str, Any], ...] = ()
    align: tuple[Any, ...] | None = None
    changes: tuple[str, ...] = ()

    def cost(self, item: Text) -> int:
        """Estimate the positions of a search for one text."""
        config, longest, retry = self._search
        cost = estimate_search(item.text, config, longest, retry=retry)
        # PyTorch computes the steps of most changes, which takes that much longer than in C.
        return cost * CHANGED_STEPS if self.changes else cost

    @cached_property
    def _search(self) -> tuple[DecodingConfig, int, bool]:
        translator = self.model.translator
        config = translator.decoding.model_copy(update=dict(self.options))
        longest = translator.config.max_target_length
        return config, longest, dict(self.treatment).get("retry", False)

    def run(self, items: Sequence[Text]) -> list[Translation]:
        """Translate some texts.

        Raises:
            InputError: the options are impossible.
        """
        found = self._translate(items)
        # A call looks at the attention of so many parts and no more. Larger calls are repeated in
        # smaller ones: what is noted about a text must not depend on those of other clients.
        if len(items) > 1 and sum(len(_parts(one)) for one in found) > MOST_LINKED:
            middle = len(items) // 2
            return self.run(items[:middle]) + self.run(items[middle:])
        doubtful = [place for place, one in enumerate(found) if any(map(_is_doubtful, _parts(one)))]
        if sum(len(_parts(found[place])) for place in doubtful) > MOST_REPLAYED:
            for place in doubtful:
                (found[place],) = self._translate([items[place]])
        return found

    def _translate(self, items: Sequence[Text]) -> list[Translation]:
        # The aligner is kept with the model, so that every request reads links from the same
        # head.
        with about("align_head"):
            align = False if self.align is None else self.model.aligner(*self.align)
        return self.model.changed(self.changes).translate(
            [item.text for item in items],
            constraints=[item.constraints for item in items],
            align=align,
            **dict(self.treatment),
            **dict(self.options),
        )


@dataclass(frozen=True)
class ScoreTask:
    """Log-probabilities of given translations with the same model.

    Attributes:
        model: the model.
        to: the language whose code every source gets, or None.
        changes: of the model.
    """

    model: ServedModel
    to: str | None = None
    changes: tuple[str, ...] = ()

    def cost(self, item: tuple[str, str]) -> int:
        """Estimate the tokens of both sides."""
        return sum(map(estimate_tokens, item))

    def run(self, items: Sequence[tuple[str, str]]) -> list[Scored]:
        """Score some pairs of a source and a target.

        Raises:
            InputError: the model has no such code.
        """
        sources = [source for source, _ in items]
        targets = [target for _, target in items]
        return self.model.changed(self.changes).score(sources, targets, to=self.to)


@dataclass(frozen=True)
class AlignTask:
    """Word links of given translations with the same model.

    Attributes:
        model: the model.
        units: how lines are cut into the words that links count.
        layer: of the decoder, to read links from.
        head: of that layer.
        to: the language whose code every source gets, or None.
    """

    model: ServedModel
    units: UnitRule = "auto"
    layer: int | None = None
    head: int | None = None
    to: str | None = None

    def cost(self, item: tuple[str, str]) -> int:
        """Estimate the tokens of both sides."""
        return sum(map(estimate_tokens, item))

    def run(self, items: Sequence[tuple[str, str]]) -> list[Aligned]:
        """Link the words of some pairs of a source and a target.

        Raises:
            InputError: the layer, the head or the code does not exist.
        """
        with about("head"):
            aligner = self.model.aligner(self.units, self.layer, self.head)
        if self.to is not None:
            tokenizer = self.model.translator.tokenizer
            sources = with_codes(tokenizer, self.to, [source for source, _ in items])
            items = [(source, target) for source, (_, target) in zip(sources, items, strict=True)]
        return aligner.link_pairs(items)


def _parts(translation: Translation) -> Sequence[TranslatedHypothesis]:
    if translation.error is not None:
        return ()
    return translation.best.parts or (translation.best,)


def _is_doubtful(part: TranslatedHypothesis) -> bool:
    return sum(part.token_log_probabilities) < DOUBTFUL * len(part.token_log_probabilities)
