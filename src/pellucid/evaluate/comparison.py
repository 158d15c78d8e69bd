"""Paired bootstrap: the significance of the difference between two systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pellucid.evaluate.form import NFC, Form
from pellucid.evaluate.statistics import Floats, Method, References, resample_scores


@dataclass(frozen=True)
class Difference:
    """One metric of two systems.

    Attributes:
        score: the score of the system.
        baseline: the score of the system it is compared with.
        difference: ``score - baseline``.
        p_value: the probability, from 0 to 1, that chance gives a larger difference.
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
    *,
    lowercased_tokenized: str | None = None,
    is_tokenized: bool = False,
    tokenize: str | None = None,
    language: str = "",
    form: Form = NFC,
    num_resamples: int = 1000,
    seed: int = 12345,
) -> Comparison:
    """Compare two translations of the same text by paired bootstrap.

    Both systems are scored on the same samples of the sentences. The p-value is the share of
    samples in which the absolute difference exceeds its mean over all samples by more than the
    observed absolute difference.

    Args:
        hypotheses: translations of the system.
        baseline: translations of the system it is compared with.
        references: translations made by people; one text or several.
        lowercased_tokenized: as for `evaluate_corpus`, like the next four.
        is_tokenized: both sides are tokenized already.
        tokenize: sacreBLEU's tokenizer.
        language: the code of the target language.
        form: the form in which all sides are compared.
        num_resamples: the number of samples.
        seed: of the draws; the same seed gives the same p-values.

    Raises:
        DataError: the texts have no lines, or not equally many.
        InputError: a text is not a sequence of strings.
        ConfigurationError: the language or the tokenizer is unknown, there are too few
            resamples, or the seed is negative.

    Differs:
        The p-values are sacreBLEU's (``--paired-bs``), which counts one tail, with one exception:
        equal scores give 1, whereas sacreBLEU calls a system significantly different from itself.
        Because of the one tail, about one of ten pairs of equally good systems, in either order,
        falls below 0.05.

    Source:
        Koehn 2004, "Statistical Significance Tests for Machine Translation Evaluation".
    """
    method = Method(
        lowercased_tokenized, is_tokenized, tokenize, language, form, num_resamples, seed
    )
    systems = {"hypotheses": hypotheses, "baseline lines": baseline}
    resampled, _ = resample_scores(systems, references, method)
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
    if difference == 0:
        return 1.0
    sizes = np.abs(resampled_differences)
    num_larger = int(np.sum(sizes - sizes.mean() > abs(difference)))
    # Plus one, because the observed corpus is itself one of the possible draws.
    return (num_larger + 1) / (len(sizes) + 1)
