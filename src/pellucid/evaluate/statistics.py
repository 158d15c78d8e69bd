"""Scores from sufficient statistics, so that resampling never reads a sentence twice.

BLEU, chrF and TER of a corpus depend on sums over its sentences (matched n-grams, edits, lengths).
These are counted once a sentence by sacreBLEU; a bootstrap sample is then one weighted sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from pellucid.errors import ConfigurationError, DataError, InputError
from pellucid.evaluate.moses import lowercase_and_tokenize, moses_signature
from pellucid.evaluate.ter import BoundedTER

__all__ = [
    "Floats",
    "Metric",
    "check_resampling",
    "corpus_score",
    "count_statistics",
    "make_metrics",
    "prepare_lines",
    "resample_scores",
    "signature",
]

Floats: TypeAlias = NDArray[np.float64]
Metric: TypeAlias = BLEU | CHRF | BoundedTER


def make_metrics(*, is_tokenized: bool) -> dict[str, Metric]:
    """Make the three metrics with sacreBLEU's defaults; tokenised text is not tokenised again."""
    # force silences advice to detokenise, which is beside the point for text tokenised on purpose.
    bleu = BLEU(tokenize="none", force=True) if is_tokenized else BLEU()
    return {"bleu": bleu, "chrf": CHRF(), "ter": BoundedTER()}


def prepare_lines(
    texts: dict[str, Sequence[str]], lowercased_tokenized: str | None
) -> list[Sequence[str]]:
    """Check texts that belong together line by line, and tokenise them if asked to.

    Args:
        texts: what each text is (such as ``"hypotheses"``), and its lines.
        lowercased_tokenized: the language of the Moses chain, or None for text as it is.

    Returns:
        The texts in their order.

    Raises:
        InputError: for something that is not a sequence of strings.
        DataError: for no lines at all, or different numbers of lines.
        ConfigurationError: for an unknown language.
    """
    for name, lines in texts.items():
        kinds = {type(lines)} if isinstance(lines, str) else {type(line) for line in lines}
        if isinstance(lines, str) or not all(issubclass(kind, str) for kind in kinds):
            found = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise InputError(
                f"The {name} must be a sequence of strings, one a line, but hold {found}. "
                f"Give a list of strings."
            )
    counts = {name: len(lines) for name, lines in texts.items()}
    if len(set(counts.values())) > 1:
        told = " and ".join(f"{count} {name}" for name, count in counts.items())
        raise DataError(
            f"Texts that are compared must have equally many lines, but there are {told}. "
            f"Give texts that belong together line by line."
        )
    if not all(counts.values()):
        raise DataError(
            f"Texts that are compared must have at least one line, but {' and '.join(counts)} "
            f"have 0. Give at least one pair of lines."
        )
    if lowercased_tokenized is None:
        return list(texts.values())
    return [lowercase_and_tokenize(lines, lowercased_tokenized) for lines in texts.values()]


def check_resampling(num_resamples: int, seed: int) -> None:
    """Refuse numbers of resamples and seeds that cannot be used."""
    if num_resamples < 2:
        raise ConfigurationError(
            f"The number of bootstrap resamples must be at least 2, but is {num_resamples} "
            f"(num_resamples). Use 1000, as is usual."
        )
    if seed < 0:
        raise ConfigurationError(
            f"The seed of the bootstrap must be at least 0, but is {seed} (seed). "
            f"Use 12345, as is usual."
        )


def count_statistics(
    metric: Metric, hypotheses: Sequence[str], references: Sequence[str]
) -> Floats:
    """Count what the metric needs: one row a sentence, whose sums decide the corpus score.

    Differs:
        sacreBLEU has no public name for this step, and its own bootstrap keeps only half the
        width of the interval, takes its seed from the environment and holds every resample in
        memory at once. Parity tests watch that the numbers stay the same.
    """
    return np.array(metric._extract_corpus_statistics(hypotheses, [references]), dtype=np.float64)


def corpus_score(metric: Metric, sums: Floats) -> float:
    """Compute the score of a corpus whose statistics add up to ``sums``."""
    return float(metric._compute_score_from_stats(sums.tolist()).score)


def resample_scores(metric: Metric, statistics: Floats, *, num_resamples: int, seed: int) -> Floats:
    """Score corpora of the same size drawn with replacement from the sentences.

    The draws depend only on the seed and the number of sentences: two systems scored with the
    same seed are therefore paired. They are also the draws of sacreBLEU.

    Returns:
        ``num_resamples`` scores, in the order drawn.
    """
    num_sentences = len(statistics)
    generator = np.random.default_rng(seed)
    scores = np.empty(num_resamples)
    for index in range(num_resamples):
        # One draw at a time: all at once would need gigabytes for a large corpus.
        drawn = generator.choice(num_sentences, size=num_sentences, replace=True)
        times = np.bincount(drawn, minlength=num_sentences)
        scores[index] = corpus_score(metric, times @ statistics)
    return scores


def signature(
    metric: Metric, *, num_resamples: int, seed: int, lowercased_tokenized: str | None
) -> str:
    """Say how a score was computed: sacreBLEU's signature, and the Moses chain if it was used."""
    info = metric.get_signature()
    info.update("bs", num_resamples)
    info.update("seed", seed)
    text = info.format()
    return (
        text if lowercased_tokenized is None else f"{text}|{moses_signature(lowercased_tokenized)}"
    )
