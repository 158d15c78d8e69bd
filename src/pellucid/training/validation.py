"""Validation: the loss of the true translations, BLEU and chrF of the model's own, and a rank."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pellucid.config import TokenizerConfig
from pellucid.evaluation.corpus_scores import bleu_for_ranking, corpus_chrf_score
from pellucid.evaluation.form import Form
from pellucid.evaluation.statistics import Scoring
from pellucid.evaluation.tokenization import DEFAULT, choose_tokenizer
from pellucid.text.outside import Outside
from pellucid.text.reading.sentence_pairs import SentencePair
from pellucid.translate.text_translator import BATCH_TOKENS
from pellucid.translate.translator import Translator

BestBy = Literal["auto", "bleu", "chrf", "loss"]

MEASURES: dict[BestBy, tuple[str, ...]] = {
    "auto": ("BLEU", "chrF", "loss"),
    "bleu": ("BLEU",),
    "chrf": ("chrF", "loss"),
    "loss": ("loss",),
}
"""The measures of ``training.best_by``; each decides if all before it are equal."""

TIE_BREAK = 1e-9
"""Factor on a measure after another one, in one number for both."""


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
        is_bleu_useful: False if BLEU says little about these translations: see
            `bleu_for_ranking`.
    """

    loss: float
    bleu: float
    chrf: float
    translations: tuple[str, ...]
    num_too_long: int = 0
    is_bleu_useful: bool = True

    def rank(self, best_by: BestBy) -> tuple[float, ...]:
        """Compute what models are compared by; larger is better. Empty if the loss is not finite.

        In ``auto`` BLEU counts as 0 if it says little, so that chrF decides.
        """
        if not math.isfinite(self.loss):
            return ()
        bleu = self.bleu if self.is_bleu_useful or best_by == "bleu" else 0.0
        values = {"BLEU": bleu, "chrF": self.chrf, "loss": -self.loss}
        return tuple(values[name] for name in MEASURES[best_by])

    def grade(self, best_by: BestBy) -> float:
        """Compute one number for an average of the best weights: the second measure breaks ties."""
        rank = self.rank(best_by)
        return (
            sum(value * TIE_BREAK**place for place, value in enumerate(rank)) if rank else -math.inf
        )

    def describe(self, step: int, *, best_by: str | None, outside: Outside | None = None) -> str:
        """Format the line of the log, and what the figures leave out.

        Args:
            step: the step of the model.
            best_by: the measure by which it is the best so far, such as ``chrF``; None if it is
                not.
            outside: the validation text's tokens outside the vocabulary, said if they are many.
        """
        best = "" if best_by is None else " (best so far)"
        if best_by not in (None, "BLEU"):
            best = f" (best so far, by {best_by})"
        text = (
            f"step {step:6d}  validation: loss {self.loss:.3f}, BLEU {self.bleu:.2f}, "
            f"chrF {self.chrf:.2f}{best}"
        )
        if outside is not None and outside.is_loud:
            text += f"\n             {outside.describe()} are unknown or single bytes."
        if self.num_too_long:
            text += (
                f"\n             {self.num_too_long:,} of {len(self.translations):,} validation "
                "pairs are too long for the model: they do not count for the loss, and if the "
                "source is too long, BLEU and chrF count an empty translation."
            )
        return text


def validate_model(
    translator: Translator, pairs: Sequence[SentencePair], *, batch_tokens: int = BATCH_TOKENS
) -> Validation:
    """Translate the validation text greedily and score the true translations.

    Both sides are compared in the model's own normalization. BLEU's tokenizer depends on the text
    only, and not on what is installed, so that a run can be continued on another machine.
    """
    sources = [pair.source for pair in pairs]
    targets = [pair.target for pair in pairs]
    scored = [
        result
        for result in translator.score(sources, targets, batch_tokens=batch_tokens)
        if result.error is None
    ]
    num_tokens = sum(len(result.ids) for result in scored)
    loss = math.nan
    if num_tokens:
        loss = -sum(result.log_probability for result in scored) / num_tokens
    translations = tuple(
        translation.text for translation in translator.translate(sources, batch_tokens=batch_tokens)
    )
    form = Form.of_model(translator.tokenizer.config)
    hypotheses = form.apply(translations)
    references = form.apply(targets)
    bleu, is_bleu_useful = bleu_for_ranking(
        hypotheses, references, tokenize=bleu_tokenizer(references)
    )
    return Validation(
        loss,
        bleu=bleu,
        chrf=corpus_chrf_score(hypotheses, references),
        translations=translations,
        num_too_long=len(pairs) - len(scored),
        is_bleu_useful=is_bleu_useful,
    )


def describe_measuring(
    pairs: Sequence[SentencePair], tokenizer: TokenizerConfig, best_by: BestBy
) -> Iterator[str]:
    """Describe how models are measured, if it is not as usual: a sentence each."""
    form = Form.of_model(tokenizer)
    targets = [pair.target for pair in pairs]
    references = form.apply(targets)
    num_changed = sum(map(str.__ne__, targets, references))
    name = bleu_tokenizer(references)
    if name != DEFAULT:
        yield f"Validation BLEU uses sacreBLEU's tokenizer {name}, which suits the targets' script."
    if num_changed:
        yield (
            f"Validation compares in the model's normalization ({form}), which changes "
            f"{num_changed:,} of {len(targets):,} targets."
        )
    is_short = Scoring(tokenize=name).bleu(references).effective_order
    if is_short:
        yield (
            "Most validation targets have fewer than four tokens, so BLEU counts shorter sequences"
            f"{' and the best model is chosen by chrF' if best_by == 'auto' else ''}."
        )
    if best_by != "auto":
        yield f"The best model is chosen by {', then '.join(MEASURES[best_by])}."


def bleu_tokenizer(references: Sequence[str]) -> str:
    """Choose sacreBLEU's tokenizer from the text only, whatever is installed."""
    return choose_tokenizer(references, may_use_mecab=False)
