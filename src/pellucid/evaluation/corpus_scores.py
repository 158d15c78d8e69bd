"""BLEU, chrF and TER of a corpus with 95 % intervals, and the significance of differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sacrebleu.metrics.chrf import CHRF

from pellucid.evaluation.form import NFC, Form
from pellucid.evaluation.statistics import (
    PLAIN,
    Floats,
    Metric,
    Normalized,
    References,
    Scoring,
    check_lines,
    corpus_score,
    count_statistics,
    resample_scores,
)


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
    """The three scores of a corpus: for BLEU and chrF more is better, for TER less.

    Attributes:
        bleu: with its interval and signature.
        chrf: as well.
        ter: as well.
        normalized: the lines that the normalization of both sides changed; None if it changed
            none. If so, the signatures name it.
    """

    bleu: Score
    chrf: Score
    ter: Score
    normalized: Normalized | None = None


def evaluate_corpus(
    hypotheses: Sequence[str],
    references: References,
    scoring: Scoring = PLAIN,
) -> Evaluation:
    """Score translations against one reference each, or against several.

    The interval comes from corpora of the same size, drawn with replacement from the sentences: it
    leaves out the lowest and the highest 2.5 % of their scores.

    Args:
        hypotheses: translations as they should be read.
        references: as many translations made by people; or a list of such texts. A line that
            is empty in some of them has fewer references.
        scoring: the form of both sides, how words are cut, and the samples.

    Returns:
        The three scores. If most references have fewer than four tokens, BLEU counts shorter
        sequences only (sacreBLEU's effective order, ``eff:yes`` in the signature).

    Raises:
        DataError: the texts have no lines, or not equally many.
        InputError: a text is not a sequence of strings.
        ConfigurationError: the language or the tokenizer is unknown.

    Source:
        Post 2018, "A Call for Clarity in Reporting BLEU Scores"; Koehn 2004, "Statistical
        Significance Tests for Machine Translation Evaluation".
    """
    resampled, normalized = resample_scores({"hypotheses": hypotheses}, references, scoring)
    scores: dict[str, Score] = {}
    for name, metric in resampled.items():
        (score,) = metric.scores
        (samples,) = np.sort(metric.samples)
        cut = scoring.num_resamples // 40  # 2.5 % of the samples at either end
        low = float(samples[cut])
        high = float(samples[-1 - cut])
        scores[name] = Score(score=score, low=low, high=high, signature=metric.signature)
    return Evaluation(**scores, normalized=normalized)


def corpus_bleu_score(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    tokenize: str | None = None,
    form: Form = NFC,
) -> float:
    """Compute only BLEU, without an interval, which is fast enough for validation.

    Args:
        hypotheses: translations.
        references: as many translations made by people.
        tokenize: as in `Scoring`.
        form: as in `Scoring`.
    """
    check_lines({"hypotheses": hypotheses, "references": references})
    known = form.apply(references)
    # The references decide about the tokenizer, so they are brought into the form first.
    return _quick_score(Scoring(tokenize=tokenize).bleu(known), form.apply(hypotheses), known)


def bleu_for_ranking(
    hypotheses: Sequence[str], references: Sequence[str], *, tokenize: str
) -> tuple[float, bool]:
    """Compute BLEU, and tell whether it tells good translations from bad ones.

    It does not before the first sequence of four tokens is right: sacreBLEU's smoothing then
    prefers short translations. Nor does it if most references have fewer than four tokens: a
    single translation of four takes off ten points.

    Args:
        hypotheses: translations.
        references: as many translations made by people.
        tokenize: as in `Scoring`.
    """
    check_lines({"hypotheses": hypotheses, "references": references})
    bleu = Scoring(tokenize=tokenize).bleu(references)
    sums = count_statistics(bleu, hypotheses, [references]).sum(axis=0)
    # Two lengths come first, then the numbers of right sequences of 1, 2, 3 and 4 tokens.
    num_right = sums[1 + bleu.max_ngram_order]
    return corpus_score(bleu, sums), bool(num_right > 0 and not bleu.effective_order)


def corpus_chrf_score(
    hypotheses: Sequence[str], references: Sequence[str], *, form: Form = NFC
) -> float:
    """Compute only chrF, without an interval, which is fast enough for validation."""
    check_lines({"hypotheses": hypotheses, "references": references})
    return _quick_score(CHRF(), form.apply(hypotheses), form.apply(references))


def _quick_score(metric: Metric, hypotheses: Sequence[str], references: Sequence[str]) -> float:
    return corpus_score(metric, count_statistics(metric, hypotheses, [references]).sum(axis=0))


FEW_LINES = 50
"""Fewer lines show too little of how scores vary: too many p-values are low by chance."""


@dataclass(frozen=True)
class Difference:
    """One metric of two systems.

    Attributes:
        score: the score of the system.
        baseline: the score of the system it is compared with.
        difference: ``score - baseline``.
        p_value: the probability, from 0 to 1, that chance gives so large a difference between
            equally good systems, in either direction.
        signature: the exact computation, so that others can repeat it.
    """

    score: float
    baseline: float
    difference: float
    p_value: float
    signature: str


@dataclass(frozen=True)
class Comparison:
    """Two systems by three metrics: for BLEU and chrF more is better, for TER less."""

    bleu: Difference
    chrf: Difference
    ter: Difference


def compare(
    hypotheses: Sequence[str],
    baseline: Sequence[str],
    references: References,
    scoring: Scoring = PLAIN,
) -> Comparison:
    """Compare two translations of the same text by paired bootstrap.

    Both systems are scored on the same samples of the sentences. The p-value is the share of
    samples whose difference is at least as far from the mean of all samples, up or down, as the
    observed difference is from 0. Two equally good systems fall below 0.05 about one time in 20;
    with fewer lines than `FEW_LINES` more often.

    Args:
        hypotheses: translations of the system.
        baseline: translations of the system it is compared with.
        references: translations made by people; one text or several.
        scoring: the form of all sides, how words are cut, and the samples.

    Raises:
        DataError: the texts have no lines, or not equally many.
        InputError: a text is not a sequence of strings.
        ConfigurationError: the language or the tokenizer is unknown.

    Differs:
        sacreBLEU (``--paired-bs``) counts one tail, by the mean of absolute differences, so its
        p-values are about half of these. It also calls a system significantly different from
        itself; here equal scores give 1, and so do samples that are all equal.

    Source:
        Koehn 2004, "Statistical Significance Tests for Machine Translation Evaluation".
    """
    # Together, so that both are scored on the same samples: that makes the test paired.
    systems = {"hypotheses": hypotheses, "baseline lines": baseline}
    resampled, _ = resample_scores(systems, references, scoring)
    differences: dict[str, Difference] = {}
    for name, metric in resampled.items():
        score, baseline_score = metric.scores
        differences[name] = Difference(
            score=score,
            baseline=baseline_score,
            difference=score - baseline_score,
            p_value=_p_value(metric.samples[0] - metric.samples[1], score - baseline_score),
            signature=metric.signature,
        )
    return Comparison(**differences)


def _p_value(resampled_differences: Floats, difference: float) -> float:
    # Samples that never differ, as those of one line, show nothing about chance.
    if difference == 0 or not np.ptp(resampled_differences):
        return 1.0
    # Without the mean, the samples are those of two systems that are equally good.
    by_chance = np.abs(resampled_differences - resampled_differences.mean())
    num_as_large = int(np.sum(by_chance >= abs(difference)))
    # Plus one, because the observed corpus is itself one of the possible draws.
    return (num_as_large + 1) / (len(by_chance) + 1)
