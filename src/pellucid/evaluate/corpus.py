"""BLEU, chrF and TER of a corpus, each with a 95 % interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sacrebleu.metrics.chrf import CHRF

from pellucid.evaluate.form import NFC, Form
from pellucid.evaluate.statistics import (
    Method,
    Metric,
    Normalized,
    References,
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
    *,
    lowercased_tokenized: str | None = None,
    is_tokenized: bool = False,
    tokenize: str | None = None,
    language: str = "",
    form: Form = NFC,
    num_resamples: int = 1000,
    seed: int = 12345,
) -> Evaluation:
    """Score translations against one reference each, or against several.

    The interval comes from corpora of the same size, drawn with replacement from the sentences: it
    leaves out the lowest and the highest 2.5 % of their scores.

    Args:
        hypotheses: translations as they should be read.
        references: as many translations made by people; or a list of such texts. A line that
            is empty in some of them has fewer references.
        lowercased_tokenized: None scores the text as it is, with sacreBLEU's defaults. A language
            code first lower-cases and tokenizes both sides with the Moses chain and scores the
            result without further tokenization, for comparison with figures published that way.
        is_tokenized: True if both sides are tokenized already; BLEU then counts the words between
            spaces.
        tokenize: sacreBLEU's tokenizer for BLEU, by its name (`TOKENIZERS`). None takes the one
            that suits the references' script and the language: ``zh``, ``ja-mecab`` and
            ``ko-mecab`` if they are installed, ``char``, otherwise ``13a``.
        language: the code of the target language; ``""`` looks at the script only.
        form: the form into which both sides are brought before they are compared.
        num_resamples: the number of samples.
        seed: of the draws; the same seed gives the same interval.

    Returns:
        The three scores. If most references have fewer than four tokens, BLEU counts shorter
        sequences only (sacreBLEU's effective order, ``eff:yes`` in the signature).

    Raises:
        DataError: the texts have no lines, or not equally many.
        InputError: a text is not a sequence of strings.
        ConfigurationError: the language or the tokenizer is unknown, there are too few
            resamples, or the seed is negative.

    Source:
        Post 2018, "A Call for Clarity in Reporting BLEU Scores"; Koehn 2004, "Statistical
        Significance Tests for Machine Translation Evaluation".
    """
    method = Method(
        lowercased_tokenized, is_tokenized, tokenize, language, form, num_resamples, seed
    )
    resampled, normalized = resample_scores({"hypotheses": hypotheses}, references, method)
    scores: dict[str, Score] = {}
    for name, metric in resampled.items():
        (score,), (samples,) = metric.scores, np.sort(metric.samples)
        cut = num_resamples // 40  # 2.5 % of the samples at either end
        low, high = float(samples[cut]), float(samples[-1 - cut])
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
        tokenize: as for `evaluate_corpus`.
        form: as for `evaluate_corpus`.
    """
    check_lines({"hypotheses": hypotheses, "references": references})
    known = form.apply(references)
    return _quick_score(Method(tokenize=tokenize).bleu(known), form.apply(hypotheses), known)


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
        tokenize: as for `evaluate_corpus`.
    """
    check_lines({"hypotheses": hypotheses, "references": references})
    bleu = Method(tokenize=tokenize).bleu(references)
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
