"""BLEU, chrF and TER of a corpus, each with a 95 % interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from pellucid.evaluate.statistics import (
    Metric,
    check_lines,
    corpus_score,
    count_statistics,
    resample_scores,
)

__all__ = ["Evaluation", "Score", "corpus_bleu_score", "corpus_chrf_score", "evaluate_corpus"]


@dataclass(frozen=True)
class Score:
    """A score between 0 and 100 (TER may be higher) and its confidence interval.

    Attributes:
        score: the score of the corpus.
        low: lower end of the 95 % bootstrap interval.
        high: upper end of it.
        signature: the exact computation, so that others can repeat it.
    """

    score: float
    low: float
    high: float
    signature: str


@dataclass(frozen=True)
class Evaluation:
    """The three scores of a corpus: for BLEU and chrF more is better, for TER less."""

    bleu: Score
    chrf: Score
    ter: Score


def evaluate_corpus(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    lowercased_tokenized: str | None = None,
    is_tokenized: bool = False,
    num_resamples: int = 1000,
    seed: int = 12345,
) -> Evaluation:
    """Score translations against one reference each.

    The interval comes from corpora of the same size, drawn with replacement from the sentences: it
    leaves out the lowest and the highest 2.5 % of their scores.

    Args:
        hypotheses: translations as they should be read.
        references: as many translations made by people.
        lowercased_tokenized: None scores the text as it is, with sacreBLEU's defaults. A language
            code first lower-cases and tokenizes both sides with the Moses chain and scores the
            result without further tokenization, for comparison with figures published that way.
        is_tokenized: True if both sides are tokenized already; BLEU then counts the words between
            spaces.
        num_resamples: the number of samples.
        seed: of the draws; the same seed gives the same interval.

    Returns:
        The three scores. BLEU is 0 if no hypothesis has four tokens, as in sacreBLEU.

    Raises:
        DataError: the texts have no lines, or not equally many.
        InputError: a text is not a sequence of strings.
        ConfigurationError: the language is unknown, there are too few resamples, or the seed is
            negative.

    Source:
        Post 2018, "A Call for Clarity in Reporting BLEU Scores"; Koehn 2004, "Statistical
        Significance Tests for Machine Translation Evaluation".
    """
    resampled = resample_scores(
        {"hypotheses": hypotheses},
        references,
        lowercased_tokenized=lowercased_tokenized,
        is_tokenized=is_tokenized,
        num_resamples=num_resamples,
        seed=seed,
    )
    scores: dict[str, Score] = {}
    for name, metric in resampled.items():
        (score,), (samples,) = metric.scores, np.sort(metric.samples)
        cut = num_resamples // 40  # 2.5 % of the samples at either end
        low, high = float(samples[cut]), float(samples[-1 - cut])
        scores[name] = Score(score=score, low=low, high=high, signature=metric.signature)
    return Evaluation(**scores)


def corpus_bleu_score(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Compute only BLEU, without an interval, which is fast enough for validation."""
    return _quick_score(BLEU(force=True), hypotheses, references)


def corpus_chrf_score(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Compute only chrF, without an interval, which is fast enough for validation."""
    return _quick_score(CHRF(), hypotheses, references)


def _quick_score(metric: Metric, hypotheses: Sequence[str], references: Sequence[str]) -> float:
    check_lines({"hypotheses": hypotheses, "references": references})
    return corpus_score(metric, count_statistics(metric, hypotheses, references).sum(axis=0))
