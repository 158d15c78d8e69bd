"""The built-in English–French corpus, with gold alignments and antecedents."""

from pellucid.corpora.baselines import antecedent_gender, baseline_accuracies, majority_gender
from pellucid.corpora.example import Example, Pronoun, example_files, write_examples
from pellucid.corpora.seeds import seed_examples, seed_sentences
from pellucid.corpora.splits import (
    DEFAULT_COUNTS,
    SplitName,
    held_out_combinations,
    iterate_split,
    make_split,
)

__all__ = [
    "DEFAULT_COUNTS",
    "Example",
    "Pronoun",
    "SplitName",
    "antecedent_gender",
    "baseline_accuracies",
    "example_files",
    "held_out_combinations",
    "iterate_split",
    "majority_gender",
    "make_split",
    "seed_examples",
    "seed_sentences",
    "write_examples",
]
