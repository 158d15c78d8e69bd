"""BLEU, chrF and TER with intervals, and the significance of differences."""

from pellucid.evaluate.comparison import Comparison, Difference, compare
from pellucid.evaluate.corpus import (
    Evaluation,
    Score,
    corpus_bleu_score,
    corpus_chrf_score,
    evaluate_corpus,
)
from pellucid.evaluate.moses import MOSES_LANGUAGES, lowercase_and_tokenize

__all__ = [
    "MOSES_LANGUAGES",
    "Comparison",
    "Difference",
    "Evaluation",
    "Score",
    "compare",
    "corpus_bleu_score",
    "corpus_chrf_score",
    "evaluate_corpus",
    "lowercase_and_tokenize",
]
