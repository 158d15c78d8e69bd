"""Validation: the loss of the true translations, and BLEU and chrF of the model's own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pellucid.evaluate import corpus_bleu_score, corpus_chrf_score
from pellucid.text import Pair
from pellucid.translator import Translator

__all__ = ["Validation", "validate_model"]


@dataclass(frozen=True)
class Validation:
    """One validation: loss per token in nats (unsmoothed), BLEU and chrF of greedy search.

    Search is greedy, whatever the recipe's ``[decoding]`` says for the finished model: it is fast,
    and the figures of several runs can be compared.

    Attributes:
        loss: NaN if no pair could be scored.
        bleu: of ``translations``.
        chrf: of ``translations``.
        translations: greedy translations of the sources; empty for a source that is too long.
        num_too_long: pairs too long for the model, which do not count for the loss.
    """

    loss: float
    bleu: float
    chrf: float
    translations: tuple[str, ...]
    num_too_long: int = 0

    @property
    def rank(self) -> float:
        """BLEU, by which models are compared; −∞ if the loss is not finite."""
        return self.bleu if math.isfinite(self.loss) else -math.inf

    def describe(self, step: int, *, is_best: bool) -> str:
        """Format the line of the log, and what the figures leave out."""
        text = (
            f"step {step:6d}  validation: loss {self.loss:.3f}, BLEU {self.bleu:.2f}, "
            f"chrF {self.chrf:.2f}{' (best so far)' if is_best else ''}"
        )
        if self.num_too_long:
            text += (
                f"\n             {self.num_too_long:,} of {len(self.translations):,} validation "
                "pairs are too long for the model: they do not count for the loss, and if the "
                "source is too long, BLEU and chrF count an empty translation."
            )
        return text


def validate_model(translator: Translator, pairs: Sequence[Pair]) -> Validation:
    """Translate the validation text greedily and score the true translations."""
    sources = [pair.source for pair in pairs]
    targets = [pair.target for pair in pairs]
    scored = [result for result in translator.score(sources, targets) if result.error is None]
    num_tokens = sum(len(result.ids) for result in scored)
    loss = math.nan
    if num_tokens:
        loss = -sum(result.log_probability for result in scored) / num_tokens
    hypotheses = [translation.text for translation in translator.translate(sources)]
    return Validation(
        loss,
        bleu=corpus_bleu_score(hypotheses, targets),
        chrf=corpus_chrf_score(hypotheses, targets),
        translations=tuple(hypotheses),
        num_too_long=len(pairs) - len(scored),
    )
