"""Scores from sufficient statistics, so that resampling never reads a sentence twice.

BLEU, chrF and TER of a corpus depend on sums over its sentences (matched n-grams, edits, lengths).
sacreBLEU counts these once a sentence; a bootstrap sample is then one weighted sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
    "Resampled",
    "check_lines",
    "check_resampling",
    "corpus_score",
    "count_statistics",
    "draw_samples",
    "resample_scores",
]

Floats: TypeAlias = NDArray[np.float64]
Metric: TypeAlias = BLEU | CHRF | BoundedTER


@dataclass(frozen=True)
class Resampled:
    """One metric of one system or several, on a corpus and on samples drawn from it.

    Attributes:
        scores: the corpus score of each system.
        samples: (systems, samples): the score of each system on each sample, in the order drawn.
            All systems are scored on the same samples, so they are paired.
        signature: how the scores were computed: sacreBLEU's, and the Moses chain if it was used.
    """

    scores: list[float]
    samples: Floats
    signature: str


def resample_scores(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str],
    *,
    lowercased_tokenized: str | None,
    is_tokenized: bool,
    num_resamples: int,
    seed: int,
) -> dict[str, Resampled]:
    """Score systems on their corpus, and on corpora of the same size drawn from its sentences.

    Args:
        systems: the lines of each system, with a name for messages (such as ``"hypotheses"``).
        references: as many lines, made by people.
        lowercased_tokenized: the language of the Moses chain, or None for the text as it is.
        is_tokenized: True if both sides are tokenized already.
        num_resamples: how many samples to draw.
        seed: of the draws.

    Returns:
        ``bleu``, ``chrf`` and ``ter``.

    Raises:
        InputError: a text is not a sequence of strings.
        DataError: the texts have no lines, or not equally many.
        ConfigurationError: the language is unknown, there are too few resamples, or the seed is
            negative.
    """
    check_resampling(num_resamples, seed)
    check_lines({**systems, "references": references})
    texts = [*systems.values(), references]
    if lowercased_tokenized is not None:
        texts = [lowercase_and_tokenize(lines, lowercased_tokenized) for lines in texts]
    *hypotheses, references = texts
    # Tokenized text must not be tokenized again; force silences the advice to detokenize it.
    is_tokenized = is_tokenized or lowercased_tokenized is not None
    bleu = BLEU(tokenize="none", force=True) if is_tokenized else BLEU()
    metrics: dict[str, Metric] = {"bleu": bleu, "chrf": CHRF(), "ter": BoundedTER()}
    found = {}
    for name, metric in metrics.items():
        # For each system (sentences, counts); a sample weights the sentences.
        statistics = [count_statistics(metric, lines, references) for lines in hypotheses]
        samples = np.empty((len(hypotheses), num_resamples))
        for index, times in enumerate(draw_samples(len(references), num_resamples, seed)):
            samples[:, index] = [corpus_score(metric, times @ rows) for rows in statistics]
        scores = [corpus_score(metric, rows.sum(axis=0)) for rows in statistics]
        signature = metric.get_signature()
        signature.update("bs", num_resamples)
        signature.update("seed", seed)
        text = signature.format()
        if lowercased_tokenized is not None:
            text += f"|{moses_signature(lowercased_tokenized)}"
        found[name] = Resampled(scores, samples, text)
    return found


def check_lines(texts: Mapping[str, Sequence[str]]) -> None:
    """Check texts that belong together line by line.

    Args:
        texts: the lines of each text, with a name for messages.

    Raises:
        InputError: a text is not a sequence of strings.
        DataError: the texts have no lines, or not equally many.
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
        listed = " and ".join(f"{count} {name}" for name, count in counts.items())
        raise DataError(
            f"Texts that are compared must have equally many lines, but there are {listed}. "
            f"Give texts that belong together line by line."
        )
    if not all(counts.values()):
        raise DataError(
            f"Texts that are compared must have at least one line, but {' and '.join(counts)} "
            f"have 0. Give at least one pair of lines."
        )


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


def draw_samples(num_sentences: int, num_resamples: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Draw corpora of the same size, with replacement.

    The draws depend only on the arguments; they are also those of sacreBLEU.

    Yields:
        How often each sentence was drawn: (num_sentences,). One sample at a time, because all at
        once would need gigabytes for a large corpus.
    """
    generator = np.random.default_rng(seed)
    for _ in range(num_resamples):
        drawn = generator.choice(num_sentences, size=num_sentences, replace=True)
        yield np.bincount(drawn, minlength=num_sentences)


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
