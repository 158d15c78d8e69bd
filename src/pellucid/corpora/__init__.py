"""The built-in English–French corpus, with gold alignments and antecedents.

Names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pellucid.corpora.baselines import antecedent_gender, baseline_accuracies, majority_gender
    from pellucid.corpora.example import Example, Pronoun
    from pellucid.corpora.holdout import held_out_combinations
    from pellucid.corpora.seeds import seed_examples, seed_sentences
    from pellucid.corpora.splits import DEFAULT_COUNTS, SplitName, iterate_split, make_split
    from pellucid.corpora.writing import write_examples

__all__ = [
    "DEFAULT_COUNTS",
    "Example",
    "Pronoun",
    "SplitName",
    "antecedent_gender",
    "baseline_accuracies",
    "held_out_combinations",
    "iterate_split",
    "majority_gender",
    "make_split",
    "seed_examples",
    "seed_sentences",
    "write_examples",
]

_HOMES = {
    "DEFAULT_COUNTS": "splits",
    "Example": "example",
    "Pronoun": "example",
    "SplitName": "splits",
    "antecedent_gender": "baselines",
    "baseline_accuracies": "baselines",
    "held_out_combinations": "holdout",
    "iterate_split": "splits",
    "majority_gender": "baselines",
    "make_split": "splits",
    "seed_examples": "seeds",
    "seed_sentences": "seeds",
    "write_examples": "writing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
