"""BLEU, chrF and TER with intervals, and the significance of differences."""

from pellucid.evaluate.comparison import Comparison, Difference, compare
from pellucid.evaluate.corpus import (
    Evaluation,
    Score,
    bleu_for_ranking,
    corpus_bleu_score,
    corpus_chrf_score,
    evaluate_corpus,
)
from pellucid.evaluate.form import AS_IT_IS, NFC, Form
from pellucid.evaluate.moses import MOSES_LANGUAGES, lowercase_and_tokenize
from pellucid.evaluate.statistics import Normalized
from pellucid.evaluate.tokenization import TOKENIZERS, check_tokenizer, choose_tokenizer

__all__ = [
    "AS_IT_IS",
    "MOSES_LANGUAGES",
    "NFC",
    "TOKENIZERS",
    "Comparison",
    "Difference",
    "Evaluation",
    "Form",
    "Normalized",
    "Score",
    "bleu_for_ranking",
    "check_tokenizer",
    "choose_tokenizer",
    "compare",
    "corpus_bleu_score",
    "corpus_chrf_score",
    "evaluate_corpus",
    "lowercase_and_tokenize",
]
